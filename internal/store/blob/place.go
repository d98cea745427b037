package blob

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Options say how patient a store is. The zero value is right for most.
type Options struct {
	// Patience is how long an operation is tried again when the cause may pass: the server is busy (500, 503, SlowDown),
	// the connection broke, the host is away. 0 means 3 minutes; negative means one try.
	Patience time.Duration
	// Idle is how long a connection may be idle before it is considered dead. 0 means a minute.
	Idle time.Duration
	// Notice is called for each failed try that is followed by another. It may be called from several goroutines.
	Notice func(op string, err error, wait time.Duration)
	// PartSize is how much of a blob S3 gets at a time, in bytes, at least 5 MiB; 0 means 8 MiB. See s3parts.go.
	PartSize int64
}

func (o Options) filled() Options {
	if o.Patience == 0 {
		o.Patience = 3 * time.Minute
	}
	if o.Idle <= 0 {
		o.Idle = time.Minute
	}
	if o.PartSize == 0 {
		o.PartSize = 8 << 20
	}
	return o
}

func (o Options) retry() retry { return retry{patience: o.Patience, notice: o.Notice} }

// PlaceError says that a place cannot be read as one: wrong use, not a failure.
type PlaceError struct {
	Place string // as given, without what may be secret
	What  string
}

func (e *PlaceError) Error() string {
	return fmt.Sprintf("place %q: %s", e.Place, e.What)
}

// ExitCode is that of wrong use.
func (e *PlaceError) ExitCode() int { return 2 }

// Forms are the places that Open knows, for the help of commands.
const Forms = `DIR | s3://BUCKET/PREFIX?endpoint=HOST&region=REGION | sftp://USER@HOST:PORT/DIR`

// Open opens a place. It creates nothing there: a folder is created by the first Put, a bucket must exist. A place that
// cannot be read is a *PlaceError; one that cannot be reached is another error, returned soon whatever Patience says.
//
//	DIR or file:///DIR       a folder of this machine
//	s3://BUCKET/PREFIX?…     see s3Params
//	sftp://USER@HOST:PORT/DIR?…   DIR from the root; /~/DIR from the user's home; see sftpParams
func Open(ctx context.Context, place string, o Options) (Store, error) {
	o = o.filled()
	scheme, _, isURL := strings.Cut(place, "://")
	switch {
	case place == "":
		return nil, &PlaceError{place, "empty; it should be " + Forms}
	case strings.ContainsAny(place, "\x00\n\r"):
		return nil, &PlaceError{fmt.Sprintf("%.40s", place), "a line break or a zero byte is not allowed"}
	case !isURL:
		if name, _, ok := strings.Cut(place, ":"); ok && slices.Contains([]string{"s3", "sftp", "ssh", "file", "http", "https"}, name) {
			return nil, &PlaceError{redact(place), fmt.Sprintf("a folder, or is it meant as %s://…? A folder of that name is ./%s", name, redact(place))}
		}
		return openFolder(place)
	}
	u, err := url.Parse(place)
	if err != nil {
		return nil, &PlaceError{redact(place), "not a URL: " + plainURLError(err)}
	}
	switch scheme {
	case "file":
		if u.Host != "" || u.RawQuery != "" || u.Path == "" {
			return nil, &PlaceError{redact(place), "a file URL has three slashes and a path: file:///backups"}
		}
		return openFolder(u.Path)
	case "s3":
		c, err := s3Place(u)
		if err != nil {
			return nil, err
		}
		return openS3(ctx, c, o)
	case "sftp":
		c, err := sftpPlace(u)
		if err != nil {
			return nil, err
		}
		return openSFTP(ctx, c, o)
	}
	return nil, &PlaceError{redact(place), fmt.Sprintf("%q is not a kind of place; use %s", scheme, Forms)}
}

// Check reads a place without going there: nil, or a *PlaceError.
func Check(place string) error {
	u, err := url.Parse(place)
	if err == nil && strings.Contains(place, "://") {
		switch u.Scheme {
		case "s3":
			_, err = s3Place(u)
			return err
		case "sftp":
			_, err = sftpPlace(u)
			return err
		}
	}
	_, err = Open(context.Background(), place, Options{})
	return err
}

// plainURLError leaves the URL, which may hold a password, out of the parser's error.
func plainURLError(err error) string {
	if e, ok := err.(*url.Error); ok {
		err = e.Err
	}
	if strings.Contains(err.Error(), "userinfo") || strings.Contains(err.Error(), "port") {
		return "the part between // and the next / cannot be read"
	}
	return err.Error()
}

// redact takes out what may be a password: all between the first colon of the user's part and the @.
// An @ after the question mark is one too many: all of that is left out.
func redact(place string) string {
	if before, question, ok := strings.Cut(place, "?"); ok && strings.Contains(question, "@") {
		place = before + "?…"
	}
	scheme, rest, ok := strings.Cut(place, "://")
	if !ok {
		scheme, rest, ok = "", place, true
	} else {
		scheme += "://"
	}
	host, path, _ := strings.Cut(rest, "/")
	at := strings.LastIndexByte(host, '@')
	if colon := strings.IndexByte(host, ':'); at >= 0 && colon >= 0 && colon < at {
		host = host[:colon] + ":…" + host[at:]
	}
	if len(host)+1 > len(rest) {
		return scheme + host
	}
	return scheme + host + "/" + path
}

// params reads the question part of a place: each known key at most once, except those that may repeat.
func params(u *url.URL, known ...string) (url.Values, error) {
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, &PlaceError{redact(u.String()), "what follows the ? cannot be read: " + err.Error()}
	}
	for k, v := range q {
		name, repeats := k, false
		if slices.Contains(known, k+"*") {
			repeats = true
		} else if !slices.Contains(known, k) {
			var list []string
			for _, s := range known {
				list = append(list, strings.TrimSuffix(s, "*"))
			}
			return nil, &PlaceError{redact(u.String()), fmt.Sprintf("unknown parameter %q; use %s", name, strings.Join(list, ", "))}
		}
		if len(v) > 1 && !repeats {
			return nil, &PlaceError{redact(u.String()), fmt.Sprintf("%s is given twice", name)}
		}
	}
	return q, nil
}

// s3Config is an S3 place as read.
type s3Config struct {
	place        string
	bucket       string
	prefix       string // "" or ends with a slash
	endpoint     string // host or host:port
	secure       bool
	region       string
	pathStyle    bool
	tags         map[string]string
	kindTag      bool
	storageClass string
	sse          string // "", s3, kms, c
	kmsKey       string
	sseKeyFile   string
	caFile       string
	profile      string
}

// s3Params are what may follow the ? of an S3 place.
//
//	endpoint=HOST[:PORT] or http(s)://HOST[:PORT]   without it, Amazon's
//	region=REGION                     without it, the bucket is asked; most other servers take any
//	path-style=on|off                 bucket in the path or in the host name; without it, in the path except at Amazon's
//	sse=s3 | sse=kms&kms-key=KEY | sse=c&sse-key-file=FILE   encryption on S3's side
//	tag=KEY:VALUE (repeatable), tag-kind=on   tags of the objects, for lifecycle rules
//	storage-class=CLASS               for instance STANDARD_IA
//	ca-file=FILE                      certificates to trust, for a server with its own authority
//	profile=NAME                      of the shared credentials file
var s3Params = []string{"endpoint", "region", "path-style", "sse", "kms-key", "sse-key-file", "tag*", "tag-kind", "storage-class", "ca-file", "profile"}

func s3Place(u *url.URL) (s3Config, error) {
	wrong := func(format string, args ...any) (s3Config, error) {
		return s3Config{}, &PlaceError{redact(u.String()), fmt.Sprintf(format, args...)}
	}
	if u.User != nil {
		return wrong("keys do not belong in a place, where others can see them: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use the shared credentials file")
	}
	c := s3Config{bucket: u.Host, prefix: strings.Trim(u.Path, "/"), secure: true}
	if !validBucket(c.bucket) {
		return wrong("%q is not the name of a bucket; the form is s3://BUCKET/PREFIX?endpoint=HOST&region=REGION", c.bucket)
	}
	if c.prefix != "" {
		if err := ValidName(c.prefix); err != nil {
			return wrong("prefix: %v", err)
		}
		c.prefix += "/"
	}
	q, err := params(u, s3Params...)
	if err != nil {
		return s3Config{}, err
	}
	c.region, c.storageClass, c.caFile, c.profile = q.Get("region"), q.Get("storage-class"), q.Get("ca-file"), q.Get("profile")
	c.sse, c.kmsKey, c.sseKeyFile = q.Get("sse"), q.Get("kms-key"), q.Get("sse-key-file")
	c.endpoint = q.Get("endpoint")
	if scheme, rest, ok := strings.Cut(c.endpoint, "://"); ok {
		if scheme != "http" && scheme != "https" {
			return wrong("endpoint: %q is neither http nor https", scheme)
		}
		c.secure, c.endpoint = scheme == "https", strings.TrimSuffix(rest, "/")
	}
	if strings.ContainsAny(c.endpoint, "/?#@ ") {
		return wrong("endpoint: must be a host, or a host and a port")
	}
	amazon := c.endpoint == "" || strings.HasSuffix(hostOf(c.endpoint), ".amazonaws.com") || strings.HasSuffix(hostOf(c.endpoint), ".amazonaws.com.cn")
	if c.endpoint == "" {
		c.endpoint = "s3.amazonaws.com"
	}
	if c.pathStyle, err = onOff(q, "path-style", !amazon); err != nil {
		return wrong("%v", err)
	}
	if c.kindTag, err = onOff(q, "tag-kind", false); err != nil {
		return wrong("%v", err)
	}
	for _, t := range q["tag"] {
		k, v, ok := strings.Cut(t, ":")
		if !ok || k == "" {
			return wrong("tag=%s: must be KEY:VALUE", t)
		}
		if c.tags == nil {
			c.tags = map[string]string{}
		}
		c.tags[k] = v
	}
	if n := len(c.tags); n > 9 {
		return wrong("%d tags: S3 allows 10 per object, and one may be needed by Risso", n)
	}
	switch {
	case !slices.Contains([]string{"", "s3", "kms", "c"}, c.sse):
		return wrong("sse=%s: s3, kms or c", c.sse)
	case (c.kmsKey != "") && c.sse != "kms":
		return wrong("kms-key is for sse=kms")
	case (c.sseKeyFile != "") != (c.sse == "c"):
		return wrong("sse=c and sse-key-file=FILE belong together; the file holds 32 bytes, raw or in hex or base64")
	case c.sse == "c" && !c.secure:
		return wrong("sse=c sends the key with each request: the endpoint must be https")
	}
	c.place = s3Shown(c, u)
	return c, nil
}

// s3Shown is the place in its shortest form.
func s3Shown(c s3Config, u *url.URL) string {
	s := "s3://" + c.bucket + "/" + strings.TrimSuffix(c.prefix, "/")
	if u.RawQuery != "" {
		s += "?" + u.RawQuery
	}
	return s
}

// validBucket knows the rules that all S3 servers share: 3 to 63 of [a-z0-9.-], a letter or digit at both ends.
func validBucket(s string) bool {
	if len(s) < 3 || len(s) > 63 || strings.Contains(s, "..") {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if alnum := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'; !alnum && (c != '-' && c != '.' || i == 0 || i == len(s)-1) {
			return false
		}
	}
	return true
}

func onOff(q url.Values, key string, preset bool) (bool, error) {
	switch v := q.Get(key); v {
	case "":
		return preset, nil
	case "on":
		return true, nil
	case "off":
		return false, nil
	default:
		return false, fmt.Errorf("%s=%s: on or off", key, v)
	}
}

func hostOf(hostPort string) string {
	if h, _, err := net.SplitHostPort(hostPort); err == nil {
		return h
	}
	return hostPort
}

// sftpConfig is an SFTP place as read.
type sftpConfig struct {
	place      string
	user       string
	addr       string // host:port
	dir        string // from the root, or from the user's home
	keyFile    string
	knownHosts string
}

// sftpParams are what may follow the ? of an SFTP place.
//
//	key-file=FILE      the private key; without it the agent's keys and those of ~/.ssh
//	known-hosts=FILE   keys of hosts; without it ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts
var sftpParams = []string{"key-file", "known-hosts"}

func sftpPlace(u *url.URL) (sftpConfig, error) {
	wrong := func(format string, args ...any) (sftpConfig, error) {
		return sftpConfig{}, &PlaceError{redact(u.String()), fmt.Sprintf(format, args...)}
	}
	if _, secret := u.User.Password(); secret {
		return wrong("a password does not belong in a place, where others can see it: use an SSH agent or key-file=FILE")
	}
	q, err := params(u, sftpParams...)
	if err != nil {
		return sftpConfig{}, err
	}
	c := sftpConfig{user: u.User.Username(), keyFile: q.Get("key-file"), knownHosts: q.Get("known-hosts")}
	if c.user == "" {
		c.user = os.Getenv("USER")
	}
	port := u.Port()
	if port == "" {
		port = "22"
	}
	n, err := strconv.Atoi(port)
	switch {
	case u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-"):
		return wrong("no host; the form is sftp://USER@HOST:PORT/DIR")
	case err != nil || n < 1 || n > 65535:
		return wrong("port %q", port)
	case c.user == "":
		return wrong("no user; the form is sftp://USER@HOST:PORT/DIR")
	case strings.Trim(u.Path, "/") == "":
		return wrong("no folder; the form is sftp://USER@HOST:PORT/DIR, or /~/DIR for one below the user's home")
	}
	c.addr = net.JoinHostPort(u.Hostname(), port)
	c.dir = strings.TrimRight(u.Path, "/")
	if home, ok := strings.CutPrefix(c.dir, "/~/"); ok {
		c.dir = home
	} else if strings.HasPrefix(c.dir, "/~") {
		return wrong("a folder below the user's home is /~/DIR")
	}
	c.place = "sftp://" + c.user + "@" + c.addr + u.EscapedPath()
	return c, nil
}

// homeFile is a file below the user's home, "" if that is unknown.
func homeFile(parts ...string) string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(append([]string{home}, parts...)...)
}
