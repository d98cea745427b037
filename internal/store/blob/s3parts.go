package blob

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
)

// S3's limits, https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html
const (
	minPart  = 5 << 20
	maxParts = 10000
)

// How many parts of one blob are sent at the same time: of a source that can be read again, and of a stream, whose parts have to be in
// memory while another one fills.
const (
	partsInFlight       = 3
	streamPartsInFlight = 1
)

// sizeOfPart is that of part n, counted from 1. It depends on n alone, so that an upload that goes on finds the same parts.
// All of the first thousand are equal (some servers take only equal parts); after each thousand they grow, so that 8 MiB at
// first are enough for 430 GiB in 10,000 parts.
func (s *s3) sizeOfPart(n int) int64 { return s.partSize * int64(1+(n-1)/1000) }

// part is a piece of a blob that can be read again.
type part struct {
	n      int
	body   *io.SectionReader
	sha256 string // hex
	free   func() // gives the buffer back
}

// sum reads a part once and fills its hash in. With md5 it returns that hash too, in hex.
func (p *part) sum(withMD5 bool) (string, error) {
	h, m := sha256.New(), md5.New()
	var w io.Writer = h
	if withMD5 {
		w = io.MultiWriter(h, m)
	}
	if _, err := p.body.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	if _, err := io.Copy(w, p.body); err != nil {
		return "", err
	}
	p.sha256 = hex.EncodeToString(h.Sum(nil))
	if !withMD5 {
		return "", nil
	}
	return hex.EncodeToString(m.Sum(nil)), nil
}

// send hands the body from its beginning to one try. When the server answers early, the library goes on reading the body
// although the try has ended; from then on it gets nothing, because the bytes may be used for something else.
func (p *part) send(try func(io.Reader) error) error {
	b := &lent{r: io.NewSectionReader(p.body, 0, p.body.Size())}
	defer b.takeBack()
	return try(b)
}

// lent is a reader that can be taken back.
type lent struct {
	mu   sync.Mutex
	r    io.Reader
	back bool
}

func (l *lent) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.back {
		return 0, errors.New("the request has ended")
	}
	return l.r.Read(p)
}

func (l *lent) takeBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.back = true
}

// Put sends small blobs in one request and others in parts. Each request carries the SHA-256 of its body in its signature, so
// the server refuses what changed on the way; it is then sent again.
func (s *s3) Put(ctx context.Context, name string, r io.Reader, o PutOptions) (Info, error) {
	key, err := s.key(name)
	if err != nil {
		return Info{}, err
	}
	next := s.parts(ctx, r)
	first, last, err := next()
	var size int64
	switch {
	case err != nil:
	case last:
		size = first.body.Size()
		err = s.putWhole(ctx, key, name, first, o.Fresh)
		first.free()
	default:
		u := &upload{s: s, key: key, name: name, resume: o.Resume, again: again(r) != nil}
		size, err = u.run(ctx, first, next)
	}
	if err != nil {
		return Info{}, fail("put", s.c.place, name, s3Explain(err))
	}
	return Info{Name: name, Size: size, Modified: time.Now()}, nil
}

// parts cuts a source: what it returns yields part after part, and whether it was the last one.
func (s *s3) parts(ctx context.Context, r io.Reader) func() (*part, bool, error) {
	if src := again(r); src != nil {
		n, at := 0, int64(0)
		return func() (*part, bool, error) {
			n++
			size := min(s.sizeOfPart(n), src.Size()-at)
			p := &part{n: n, body: io.NewSectionReader(src, at, size), free: func() {}}
			at += size
			return p, at == src.Size(), ctx.Err()
		}
	}
	// A stream: whether a part is the last one shows only in the first byte of the next, so that is read ahead.
	n := 0
	src := &peeked{r: reader{ctx, r}}
	return func() (*part, bool, error) {
		n++
		buf := s.buffers.get()
		b, err := readFull(src, buf, s.sizeOfPart(n))
		if err == nil && src.more() {
			return newPart(n, b, s.buffers), false, nil
		}
		if err == nil {
			err = src.err
		}
		if err != nil && err != io.EOF {
			s.buffers.put(b)
			return nil, false, err
		}
		return newPart(n, b, s.buffers), true, nil
	}
}

func newPart(n int, b []byte, pool *bufferPool) *part {
	return &part{n: n, body: io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))), free: sync.OnceFunc(func() { pool.put(b) })}
}

// peeked is a stream of which one byte may be read ahead.
type peeked struct {
	r    io.Reader
	b    [1]byte
	have bool
	err  error // why there is no more
}

func (p *peeked) more() bool {
	if !p.have && p.err == nil {
		_, p.err = io.ReadFull(p.r, p.b[:])
		p.have = p.err == nil
	}
	return p.have
}

func (p *peeked) Read(b []byte) (int, error) {
	if len(b) > 0 && p.have {
		b[0], p.have = p.b[0], false
		return 1, nil
	}
	if p.err != nil {
		return 0, p.err
	}
	return p.r.Read(b)
}

// readFull reads up to n bytes into b, which grows as they come. At the end of the stream it returns io.EOF with what was left.
func readFull(r io.Reader, b []byte, n int64) ([]byte, error) {
	for int64(len(b)) < n {
		if len(b) == cap(b) {
			b = slices.Grow(b, int(min(n-int64(len(b)), max(int64(len(b)), 256<<10))))
		}
		free := b[len(b):min(int64(cap(b)), n)]
		m, err := r.Read(free)
		b = b[:len(b)+m]
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

// bufferPool keeps buffers of parts for the next ones.
type bufferPool struct{ pool sync.Pool }

func newBufferPool() *bufferPool { return &bufferPool{} }

func (p *bufferPool) get() []byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return nil
}

func (p *bufferPool) put(b []byte) {
	if cap(b) > 0 {
		p.pool.Put(&b)
	}
}

// options are those of a new object.
func (s *s3) options(name string) minio.PutObjectOptions {
	o := minio.PutObjectOptions{ServerSideEncryption: s.sse, StorageClass: s.c.storageClass, DisableContentSha256: true}
	if len(s.c.tags) > 0 || s.c.kindTag {
		o.UserTags = map[string]string{}
		for k, v := range s.c.tags {
			o.UserTags[k] = v
		}
		if s.c.kindTag {
			// data, backups, physical, binlog, proofs, locks: what a rule of the bucket may tell apart.
			o.UserTags["risso-kind"], _, _ = strings.Cut(name, "/")
		}
	}
	return o
}

func (s *s3) putWhole(ctx context.Context, key, name string, p *part, fresh bool) error {
	if _, err := p.sum(false); err != nil {
		return err
	}
	options := s.options(name)
	if fresh {
		// A server that does not know the header ignores it, so it is asked first, too.
		if _, err := s.Stat(ctx, name); !errors.Is(err, ErrNotFound) {
			return cmp.Or(err, ErrExists)
		}
		options.SetMatchETagExcept("*")
	}
	err := s.retry.do(ctx, "put "+name, s3Passes, func(ctx context.Context) error {
		return p.send(func(body io.Reader) error {
			_, err := s.core.PutObject(ctx, s.c.bucket, key, body, p.body.Size(), "", p.sha256, options)
			return err
		})
	})
	switch {
	case fresh && s3Is(err, "PreconditionFailed", "ConditionalRequestConflict"):
		return ErrExists
	case fresh && s3Is(err, "NotImplemented"):
		return s.putWhole(ctx, key, name, p, false)
	}
	return err
}

// upload is one blob on its way in parts.
type upload struct {
	s         *s3
	key, name string
	resume    bool
	again     bool // the source can be read again
	id        string
	there     map[int]minio.ObjectPart // what an interrupted upload left

	mu   sync.Mutex
	done []minio.CompletePart
	kept map[int]*part // parts that can be sent again
}

// run sends all parts and completes the upload. What fails is aborted, unless it may go on later.
func (u *upload) run(ctx context.Context, first *part, next func() (*part, bool, error)) (size int64, err error) {
	if err := u.begin(ctx); err != nil {
		first.free()
		return 0, err
	}
	size, err = u.send(ctx, first, next)
	if err == nil {
		err = u.complete(ctx, size)
	}
	if err != nil && !u.resume {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if err2 := u.s.abort(clean, u.key, u.id); err2 != nil {
			err = fmt.Errorf("%w; its parts could not be removed: %v", err, err2)
		}
	}
	return size, err
}

// begin finds the upload to go on with, or makes a new one.
func (u *upload) begin(ctx context.Context) error {
	if u.resume {
		if err := u.find(ctx); err != nil || u.id != "" {
			return err
		}
	}
	return u.s.retry.do(ctx, "put "+u.name, s3Passes, func(ctx context.Context) (err error) {
		u.id, err = u.s.core.NewMultipartUpload(ctx, u.s.c.bucket, u.key, u.s.options(u.name))
		return err
	})
}

// find looks for the newest unfinished upload of the key, and its parts.
func (u *upload) find(ctx context.Context) error {
	var began time.Time
	err := u.s.uploads(ctx, u.key, func(m minio.ObjectMultipartInfo) bool {
		if m.Key == u.key && (u.id == "" || m.Initiated.After(began)) {
			u.id, began = m.UploadID, m.Initiated
		}
		return true
	})
	if err != nil || u.id == "" {
		return err
	}
	u.there, err = u.listed(ctx)
	if s3Is(err, "NoSuchUpload") { // ended just now
		u.id, err = "", nil
	}
	return err
}

// listed are the parts that the server has.
func (u *upload) listed(ctx context.Context) (map[int]minio.ObjectPart, error) {
	list := map[int]minio.ObjectPart{}
	for marker := 0; ; {
		var page minio.ListObjectPartsResult
		err := u.s.retry.do(ctx, "list parts of "+u.name, s3Passes, func(ctx context.Context) (err error) {
			page, err = u.s.core.ListObjectParts(ctx, u.s.c.bucket, u.key, u.id, marker, 1000)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, p := range page.ObjectParts {
			list[p.PartNumber] = p
		}
		if !page.IsTruncated || page.NextPartNumberMarker <= marker {
			return list, nil
		}
		marker = page.NextPartNumberMarker
	}
}

// send sends the parts, some at the same time.
func (u *upload) send(ctx context.Context, first *part, next func() (*part, bool, error)) (size int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	inFlight := streamPartsInFlight
	if u.again {
		inFlight = partsInFlight
	}
	slots := make(chan struct{}, inFlight)
	var workers sync.WaitGroup
	defer workers.Wait()
	u.kept = map[int]*part{}
	for p, last := first, false; ; {
		if p.n > maxParts {
			p.free()
			return 0, fmt.Errorf("more than %d parts: the blob is too large", maxParts)
		}
		size += p.body.Size()
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			p.free()
			workers.Wait()
			return 0, context.Cause(ctx)
		}
		workers.Add(1)
		go func(p *part) {
			defer func() { <-slots; workers.Done() }()
			if err := u.sendPart(ctx, p); err != nil {
				cancel(err)
			}
		}(p)
		if last {
			break
		}
		if p, last, err = next(); err != nil {
			cancel(err)
			break
		}
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	return size, nil
}

// sendPart sends one part, unless the server has the same bytes already: then its ETag is their MD5 (not so with SSE-KMS and
// SSE-C, where all is sent again).
func (u *upload) sendPart(ctx context.Context, p *part) error {
	old, there := u.there[p.n]
	there = there && old.Size == p.body.Size()
	sum, err := p.sum(there)
	if err != nil {
		p.free()
		return err
	}
	etag := ""
	if there && strings.EqualFold(strings.Trim(old.ETag, `"`), sum) {
		etag = strings.Trim(old.ETag, `"`)
	} else if etag, err = u.transmit(ctx, p); err != nil {
		p.free()
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.done = append(u.done, minio.CompletePart{PartNumber: p.n, ETag: etag})
	if u.again {
		u.kept[p.n] = p // costs no memory: it is read from the source
	}
	p.free()
	return nil
}

func (u *upload) transmit(ctx context.Context, p *part) (etag string, err error) {
	err = u.s.retry.do(ctx, "put "+u.name, s3Passes, func(ctx context.Context) error {
		return p.send(func(body io.Reader) error {
			done, err := u.s.core.PutObjectPart(ctx, u.s.c.bucket, u.key, u.id, p.n, body, p.body.Size(),
				minio.PutObjectPartOptions{Sha256Hex: p.sha256, SSE: u.s.sse, DisableContentSha256: true})
			etag = done.ETag
			return err
		})
	})
	return etag, err
}

// complete makes the object of its parts, and checks whether it is as long as what was sent.
func (u *upload) complete(ctx context.Context, size int64) error {
	err := u.tryComplete(ctx)
	if s3Is(err, "InvalidPart", "InvalidPartOrder") {
		if err = u.mend(ctx); err == nil {
			err = u.tryComplete(ctx)
		}
	}
	if s3Is(err, "NoSuchUpload") {
		// Completed by a try whose answer was lost, or by another process that resumed it: then it is there.
		if st, err2 := u.s.Stat(ctx, u.name); err2 == nil && st.Size == size {
			return nil
		}
	}
	if err != nil {
		return err
	}
	st, err := u.s.Stat(ctx, u.name)
	if err != nil {
		return err
	}
	if st.Size != size {
		return errors.Join(fmt.Errorf("%w: %d bytes of %d", errDamagedUpload, st.Size, size), u.s.Delete(ctx, u.name))
	}
	return nil
}

func (u *upload) tryComplete(ctx context.Context) error {
	slices.SortFunc(u.done, func(a, b minio.CompletePart) int { return a.PartNumber - b.PartNumber })
	return u.s.retry.do(ctx, "put "+u.name, s3Passes, func(ctx context.Context) error {
		_, err := u.s.core.CompleteMultipartUpload(ctx, u.s.c.bucket, u.key, u.id, u.done, minio.PutObjectOptions{ServerSideEncryption: u.s.withKey()})
		return err
	})
}

// mend resends parts that the server accepted and lost. A stream cannot be read again: that is a failure.
func (u *upload) mend(ctx context.Context) error {
	list, err := u.listed(ctx)
	if err != nil {
		return err
	}
	for i, d := range u.done {
		if have, ok := list[d.PartNumber]; ok && strings.Trim(have.ETag, `"`) == d.ETag {
			continue
		}
		p := u.kept[d.PartNumber]
		if p == nil {
			return fmt.Errorf("%w: part %d was accepted but is missing", errDamagedUpload, d.PartNumber)
		}
		if u.done[i].ETag, err = u.transmit(ctx, p); err != nil {
			return err
		}
	}
	return nil
}
