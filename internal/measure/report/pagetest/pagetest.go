// Package pagetest looks at pages of reports in a real browser, for tests.
package pagetest

import (
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/lack"
)

// script looks at frames, each with a page at one width: how wide it is, and which words overlap.
const script = `addEventListener('load', () => {
  const all = [];
  for (const f of document.querySelectorAll('iframe')) {
    const doc = f.contentDocument, d = doc.documentElement, boxes = [], out = [];
    for (const e of doc.querySelectorAll('svg text, h1, h2, h3, td, th, p, li')) {
      const r = e.getBoundingClientRect();
      if (r.width > 0 && r.height > 0 && e.textContent.trim() && !e.closest('details:not([open])')) boxes.push([e, r]);
    }
    for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length; j++) {
      const [a, x] = boxes[i], [b, y] = boxes[j];
      if (a.contains(b) || b.contains(a)) continue;
      const w = Math.min(x.right, y.right) - Math.max(x.left, y.left), h = Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top);
      if (w > 2 && h > 3) out.push('upon each other: ' + a.textContent.trim().slice(0, 40) + ' | ' + b.textContent.trim().slice(0, 40));
    }
    for (const e of doc.querySelectorAll('svg text')) {
      const h = e.getBoundingClientRect().height;
      if (h > 0 && h < 7) out.push('too small: ' + e.textContent);
    }
    for (const e of doc.querySelectorAll('td')) {
      const w = e.getBoundingClientRect().width;
      if (e.textContent.trim().length > 12 && w > 0 && w < 60) out.push('squeezed: ' + e.textContent.trim().slice(0, 40));
    }
    if (d.scrollWidth > d.clientWidth) out.push('scrolls sideways: ' + d.scrollWidth + ' wide');
    if (!boxes.length) out.push('nothing is shown');
    all.push(f.title + ', ' + d.clientWidth + ' wide: ' + (out.slice(0, 6).join(' ;; ') || 'fits'));
  }
  document.body.textContent = 'LOOKED\n' + all.join('\n') + '\nEND';
});`

// Fits fails the test when one of the pages is wider than the window, if words overlap, or when some cannot be
// widths are those of screens, and of a telephone, in pixels.
var widths = []int{1600, 1280, 1024, 800, 390}

// read, on a screen and on a telephone. It skips if there is no Chromium.
func Fits(t *testing.T, pages map[string]string) {
	t.Helper()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		lack.Of(t, "chromium is not installed: run script/setup")
	}
	var b strings.Builder
	b.WriteString("<!DOCTYPE html><meta charset=utf-8><script>" + script + "</script><body>")
	for name, page := range pages {
		if keep := os.Getenv("RISSO_KEEP_PAGES"); keep != "" { // to look at them oneself
			if err := os.WriteFile(filepath.Join(keep, name+".html"), []byte(page), 0o600); err != nil {
				t.Error(err)
			}
		}
		for _, width := range widths {
			fmt.Fprintf(&b, `<iframe title="%s" style="border:0;width:%dpx;height:900px" srcdoc="%s"></iframe>`, html.EscapeString(name), width, html.EscapeString(page))
		}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "pages.html")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--user-data-dir="+filepath.Join(dir, "browser"), "--window-size=1400,900", "--dump-dom", "file://"+path).Output()
	if err != nil {
		t.Fatalf("look at the pages: %v", err)
	}
	_, text, _ := strings.Cut(string(out), "LOOKED\n")
	text, _, ok := strings.Cut(text, "\nEND")
	if !ok {
		t.Fatalf("the pages were not looked at: %.500s", out)
	}
	lines := strings.Split(html.UnescapeString(text), "\n")
	if len(lines) != len(widths)*len(pages) {
		t.Errorf("got %d looks at %d pages, want %d", len(lines), len(pages), len(widths)*len(pages))
	}
	for _, line := range lines {
		if !strings.HasSuffix(line, ": fits") {
			t.Errorf("got %v, want \": fits\" at its end", line)
		}
	}
}
