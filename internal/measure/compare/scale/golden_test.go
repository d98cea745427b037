package scale

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/measure/stats"
)

// TestForms holds what reports look like in each form: of a law that fits, of one that is doubted, of a sweep without a law.
// testdata has them; RISSO_WRITE=1 rewrites them, and differences must be reviewed.
func TestForms(t *testing.T) {
	for name, c := range map[string]struct {
		points []Point
		o      Options
	}{
		"fits":      {lawful(stats.USL{Lambda: 1000, Sigma: .03, Kappa: .0005}, .01, powers, 3), Options{Source: "db1, oltp", Processors: 8, Seed: 3}},
		"doubted":   {published(t), Options{Source: "EPYC", Processors: 16, Predict: []int{600, 96, 96, 40}, Seed: 1}},
		"linear":    {lawful(stats.USL{Lambda: 10}, .002, []int{1, 2, 3, 4, 6}, 1), Options{Processors: 6}},
		"cliff":     {[]Point{{1, 100}, {2, 200}, {4, 400}, {8, 800}, {16, 100}, {32, 90}, {64, 95}}, Options{Processors: 64}},
		"too few":   {[]Point{{4, 30}, {1, 10}, {2, 20}, {2, 22}}, Options{}},
		"one count": {[]Point{{4, 30}}, Options{Processors: 2}},
	} {
		r, err := Fit(c.points, c.o)
		if err != nil {
			t.Fatal(err)
		}
		var text, markdown, csv bytes.Buffer
		if err := errors.Join(r.Text(&text, true), r.Markdown(&markdown), r.CSV(&csv)); err != nil {
			t.Fatal(err)
		}
		law, err := json.Marshal(r.Law)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join([]string{text.String(), strings.Join(r.Chart(false), "\n"), markdown.String(), csv.String(), r.SVG(), string(law)}, "\n--\n") + "\n"
		file := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".txt")
		if os.Getenv("RISSO_WRITE") != "" {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
		for i := range min(len(g), len(w)) {
			if g[i] != w[i] {
				t.Errorf("%s, line %d: got\n%s\nwant\n%s", name, i+1, g[i], w[i])
				break
			}
		}
		if len(g) != len(w) {
			t.Errorf("%s: got %d lines, want %d", name, len(g), len(w))
		}
	}
}
