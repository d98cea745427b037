package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// pageFile is a file of the page as it is sent: made once, so that a slow reader holds nothing.
type pageFile struct {
	kind        string
	etag        string
	raw, packed []byte
}

// page serves the built page; every path that is no file is the page itself, which reads its state from the URL.
func (s *server) page() http.Handler {
	files, err := pageFiles(s.Page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'")
		h.Set("Cache-Control", "no-cache")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			writeError(w, failed(http.StatusMethodNotAllowed, "there is no "+r.Method+" "+r.URL.Path, ""))
			return
		}
		f := files[strings.TrimPrefix(path.Clean(r.URL.Path), "/")]
		if f == nil && strings.Contains(path.Base(r.URL.Path), ".") && !strings.HasPrefix(r.URL.Path, "/server/") {
			http.NotFound(w, r)
			return
		}
		if f == nil {
			f = files["index.html"]
		}
		if f == nil {
			http.Error(w, "this Risso was built without its page", http.StatusNotFound)
			s.Logger.Error("the page cannot be read", "err", err)
			return
		}
		h.Set("ETag", f.etag)
		h.Set("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("If-None-Match"), f.etag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		body := f.raw
		if len(f.packed) < len(body) && takesGzip(r) {
			h.Set("Content-Encoding", "gzip")
			body = f.packed
		}
		h.Set("Content-Type", f.kind)
		h.Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body) // a client that went away is not our concern
	})
}

func pageFiles(page fs.FS) (map[string]*pageFile, error) {
	if page == nil {
		return nil, fs.ErrNotExist
	}
	files := map[string]*pageFile{}
	err := fs.WalkDir(page, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(page, name)
		if err != nil {
			return err
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err := z.Write(raw); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		sum := sha256.Sum256(raw)
		files[name] = &pageFile{kind: mime.TypeByExtension(path.Ext(name)), etag: `"` + hex.EncodeToString(sum[:8]) + `"`, raw: raw, packed: packed.Bytes()}
		return nil
	})
	return files, err
}
