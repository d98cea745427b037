package blob

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/encrypt"
)

// s3 keeps each blob as an object. S3 shows an object only when it is whole.
type s3 struct {
	c         s3Config
	core      minio.Core
	transport *http.Transport
	retry     retry
	sse       encrypt.ServerSide // nil: what the bucket does by itself
	partSize  int64
	buffers   *bufferPool
}

// openTime is how long the first question to a place may take: a wrong host should not cost minutes.
const openTime = 20 * time.Second

func openS3(ctx context.Context, c s3Config, o Options) (Store, error) {
	tr := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dial(o.Idle),
		TLSHandshakeTimeout: 20 * time.Second,
		MaxIdleConnsPerHost: 32,
		IdleConnTimeout:     o.Idle,
		DisableCompression:  true, // the bytes as they are kept
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if c.caFile != "" {
		pem, err := os.ReadFile(c.caFile)
		if err != nil {
			return nil, fmt.Errorf("place %s: ca-file: %w", c.place, err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, &PlaceError{c.place, "ca-file: no certificate in " + c.caFile}
		}
		tr.TLSClientConfig.RootCAs = pool
	}
	s := &s3{c: c, transport: tr, retry: o.retry(), partSize: max(o.PartSize, minPart), buffers: newBufferPool()}
	var err error
	if s.sse, err = c.serverSide(); err != nil {
		return nil, err
	}
	region := c.region
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		if region == "" {
			region = os.Getenv(name)
		}
	}
	lookup := minio.BucketLookupDNS
	if c.pathStyle {
		lookup = minio.BucketLookupPath
	}
	keys := credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{},
		&credentials.FileAWSCredentials{Profile: c.profile},
		&credentials.IAM{Client: &http.Client{Timeout: 3 * time.Second}},
	})
	core, err := minio.NewCore(c.endpoint, &minio.Options{Creds: keys, Secure: c.secure, Transport: tr, Region: region, BucketLookup: lookup, MaxRetries: 1})
	if err != nil {
		return nil, &PlaceError{c.place, "endpoint: " + err.Error()}
	}
	s.core = *core
	if v, err := keys.GetWithContext(&credentials.CredContext{Client: &http.Client{Timeout: 3 * time.Second}, Context: ctx}); err != nil || v.AccessKeyID == "" {
		return nil, fmt.Errorf("place %s: no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write them to ~/.aws/credentials", c.place)
	}
	if err := s.check(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// check asks for the bucket, so that a wrong place is reported before work begins.
func (s *s3) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, openTime+10*time.Second, fmt.Errorf("no answer in %s", openTime+10*time.Second))
	defer cancel()
	var found bool
	r := s.retry
	r.patience = min(r.patience, openTime)
	err := r.do(ctx, "open", s3Passes, func(ctx context.Context) (err error) {
		found, err = s.core.BucketExists(ctx, s.c.bucket)
		return err
	})
	switch {
	case err != nil:
		return fail("open", s.c.place, "", s3Explain(err))
	case !found:
		return fmt.Errorf("open %s: there is no bucket %q at %s; create it first", s.c.place, s.c.bucket, s.c.endpoint)
	}
	return nil
}

// serverSide is the encryption requested from S3.
func (c s3Config) serverSide() (encrypt.ServerSide, error) {
	switch c.sse {
	case "s3":
		return encrypt.NewSSE(), nil
	case "kms":
		return encrypt.NewSSEKMS(c.kmsKey, nil)
	case "c":
		b, err := os.ReadFile(c.sseKeyFile)
		if err != nil {
			return nil, fmt.Errorf("place %s: sse-key-file: %w", c.place, err)
		}
		key, ok := key32(b)
		if !ok {
			return nil, &PlaceError{c.place, "sse-key-file: must be 32 bytes, raw or in hex or base64"}
		}
		return encrypt.NewSSEC(key)
	}
	return nil, nil
}

// key32 reads a key of 32 bytes in any of its usual forms.
func key32(b []byte) ([]byte, bool) {
	if len(b) == 32 {
		return b, true
	}
	text := strings.TrimSpace(string(b))
	if key, err := hex.DecodeString(text); err == nil && len(key) == 32 {
		return key, true
	}
	key, err := base64.StdEncoding.DecodeString(text)
	return key, err == nil && len(key) == 32
}

// withKey is the encryption to name when reading: only SSE-C needs its key again.
func (s *s3) withKey() encrypt.ServerSide {
	if s.sse != nil && s.sse.Type() == encrypt.SSEC {
		return s.sse
	}
	return nil
}

func (s *s3) Place() string { return s.c.place }

func (s *s3) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}

// s3Passes reports whether an error may be gone at the next try. The codes are those of
// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html that are temporary, not a mistake; the digests
// are wrong when a bit flipped on the way.
func s3Passes(err error) bool {
	var e minio.ErrorResponse
	if !errors.As(err, &e) {
		return networkPasses(err) || requestPasses(err)
	}
	if slices.Contains([]string{"SlowDown", "RequestTimeout", "InternalError", "Throttling", "ThrottlingException", "RequestThrottled",
		"RequestLimitExceeded", "ServiceUnavailable", "OperationAborted", "BadDigest", "XAmzContentSHA256Mismatch", "IncompleteBody"}, e.Code) {
		return true
	}
	return e.StatusCode == 408 || e.StatusCode == 429 || e.StatusCode >= 500 && e.StatusCode != 501
}

// requestPasses knows what the library makes of a connection that was closed: an error with nothing to tell it by but that it
// is one of a request, and none of a certificate or a name.
func requestPasses(err error) bool {
	var request *url.Error
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var dns *net.DNSError
	return errors.As(err, &request) && !errors.As(err, &certificate) && !errors.As(err, &record) && !errors.As(err, &dns) &&
		!errors.Is(err, http.ErrSchemeMismatch)
}

func s3Is(err error, codes ...string) bool {
	var e minio.ErrorResponse
	return errors.As(err, &e) && slices.Contains(codes, e.Code)
}

// s3Explain adds the code of an answer to its words, and turns "no such key" into the store's own error.
func s3Explain(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		if strings.Contains(request.Err.Error(), "Connection closed by foreign host") { // minio-go makes words of an io.EOF, and leaves no type
			return errors.New("the server closed the connection")
		}
		return request.Err // without the URL, which is long and says nothing new
	}
	var e minio.ErrorResponse
	if !errors.As(err, &e) {
		return err
	}
	if e.Code == "NoSuchKey" {
		return ErrNotFound
	}
	if e.Code == "" || strings.Contains(err.Error(), e.Code) {
		return err
	}
	return fmt.Errorf("%w (%s)", err, e.Code)
}

func (s *s3) key(name string) (string, error) {
	if err := ValidName(name); err != nil {
		return "", err
	}
	return s.c.prefix + name, nil
}

func (s *s3) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	key, err := s.key(name)
	if err != nil {
		return nil, err
	}
	if offset < 0 {
		return nil, fail("get", s.c.place, name, errors.New("negative offset"))
	}
	if length == 0 {
		if _, err := s.Stat(ctx, name); err != nil {
			return nil, err
		}
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	var etag string
	end := offset + length // what is open may begin later, after a break
	open := func(ctx context.Context, from int64) (io.ReadCloser, int64, error) {
		o := minio.GetObjectOptions{ServerSideEncryption: s.withKey()}
		if etag != "" {
			if err := o.SetMatchETag(etag); err != nil {
				return nil, 0, err
			}
		}
		switch {
		case length > 0:
			o.Set("Range", fmt.Sprintf("bytes=%d-%d", from, end-1))
		case from > 0:
			o.Set("Range", fmt.Sprintf("bytes=%d-", from))
		}
		body, info, _, err := s.core.GetObject(ctx, s.c.bucket, key, o)
		if s3Is(err, "InvalidRange") && etag == "" {
			return io.NopCloser(bytes.NewReader(nil)), 0, nil // it begins after the end
		}
		if err != nil {
			return nil, 0, err
		}
		if info.Size < 0 {
			body.Close()
			return nil, 0, errors.New("the server does not say how long its answer is")
		}
		etag = info.ETag
		return body, info.Size, nil
	}
	r, err := newResuming(ctx, &resuming{retry: s.retry, op: "get " + name, passes: s3Passes, open: open}, offset)
	if err != nil {
		return nil, fail("get", s.c.place, name, s3Explain(err))
	}
	return r, nil
}

func (s *s3) Stat(ctx context.Context, name string) (Info, error) {
	key, err := s.key(name)
	if err != nil {
		return Info{}, err
	}
	var st minio.ObjectInfo
	err = s.retry.do(ctx, "stat "+name, s3Passes, func(ctx context.Context) (err error) {
		st, err = s.core.StatObject(ctx, s.c.bucket, key, minio.StatObjectOptions{ServerSideEncryption: s.withKey()})
		return err
	})
	if err != nil {
		return Info{}, fail("stat", s.c.place, name, s3Explain(err))
	}
	return Info{Name: name, Size: st.Size, Modified: st.LastModified}, nil
}

func (s *s3) Delete(ctx context.Context, name string) error {
	key, err := s.key(name)
	if err != nil {
		return err
	}
	err = s.retry.do(ctx, "delete "+name, s3Passes, func(ctx context.Context) error {
		return s.core.RemoveObject(ctx, s.c.bucket, key, minio.RemoveObjectOptions{})
	})
	if s3Is(err, "NoSuchKey") {
		return nil
	}
	return fail("delete", s.c.place, name, s3Explain(err))
}

func (s *s3) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		after := ""
		stopped := false
		err := s.retry.do(ctx, "list "+prefix, s3Passes, func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			owner := false
			for o := range s.core.ListObjectsIter(ctx, s.c.bucket, minio.ListObjectsOptions{Prefix: s.c.prefix + prefix, Recursive: true, StartAfter: after, FetchOwner: &owner}) {
				if o.Err != nil {
					return o.Err
				}
				if o.Key <= after {
					return fmt.Errorf("the server's list is not in the order of names: %q after %q", o.Key, after)
				}
				after = o.Key
				name := strings.TrimPrefix(o.Key, s.c.prefix)
				if ValidName(name) != nil {
					continue // a marker of a folder, or somebody else's
				}
				if !yield(Info{Name: name, Size: o.Size, Modified: o.LastModified}, nil) {
					stopped = true
					return nil
				}
			}
			return ctx.Err()
		})
		if err != nil && !stopped {
			yield(Info{}, fail("list", s.c.place, prefix, s3Explain(err)))
		}
	}
}

// Leftovers are uploads in parts that were never completed. S3 keeps their parts, and charges for them, until they are aborted.
func (s *s3) Leftovers(ctx context.Context, before time.Time) iter.Seq2[Leftover, error] {
	return func(yield func(Leftover, error) bool) {
		err := s.uploads(ctx, s.c.prefix, func(u minio.ObjectMultipartInfo) bool {
			name := strings.TrimPrefix(u.Key, s.c.prefix)
			if !u.Initiated.Before(before) || ValidName(name) != nil {
				return true
			}
			return yield(Leftover{Name: name, Began: u.Initiated, Size: -1, id: u.UploadID}, nil)
		})
		if err != nil {
			yield(Leftover{}, fail("list uploads", s.c.place, "", s3Explain(err)))
		}
	}
}

// uploads passes the unfinished uploads of keys with a prefix to give.
func (s *s3) uploads(ctx context.Context, prefix string, give func(minio.ObjectMultipartInfo) bool) error {
	key, id := "", ""
	for {
		var page minio.ListMultipartUploadsResult
		err := s.retry.do(ctx, "list uploads", s3Passes, func(ctx context.Context) (err error) {
			page, err = s.core.ListMultipartUploads(ctx, s.c.bucket, prefix, key, id, "", 1000)
			return err
		})
		if err != nil {
			return err
		}
		for _, u := range page.Uploads {
			if strings.HasPrefix(u.Key, prefix) && !give(u) {
				return nil
			}
		}
		if !page.IsTruncated || page.NextKeyMarker == key && page.NextUploadIDMarker == id {
			return nil
		}
		key, id = page.NextKeyMarker, page.NextUploadIDMarker
	}
}

func (s *s3) Discard(ctx context.Context, l Leftover) error {
	key, err := s.key(l.Name)
	if err != nil {
		return err
	}
	err = s.abort(ctx, key, l.id)
	return fail("discard", s.c.place, l.Name, s3Explain(err))
}

func (s *s3) abort(ctx context.Context, key, id string) error {
	err := s.retry.do(ctx, "abort "+key, s3Passes, func(ctx context.Context) error {
		return s.core.AbortMultipartUpload(ctx, s.c.bucket, key, id)
	})
	if s3Is(err, "NoSuchUpload") {
		return nil
	}
	return err
}
