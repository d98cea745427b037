package tell

import (
	"bytes"
	"image/color"
	"image/png"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/watch/alert"
)

// TestPicture: the line is where the values are, missing values are missing, and the mark is where it began.
func TestPicture(t *testing.T) {
	text := picture(sampleChart())
	if !bytes.Equal(text, picture(sampleChart())) || len(text) > 20_000 {
		t.Errorf("got %d bytes, want few and the same each time", len(text))
	}
	img, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if img.Bounds().Dx() != pictureWidth || img.Bounds().Dy() != pictureHeight {
		t.Errorf("got %v, want %d×%d", img.Bounds(), pictureWidth, pictureHeight)
	}
	near := func(x int, want color.RGBA) bool { // somewhere in that column
		for y := pictureMargin / 2; y < pictureHeight-pictureMargin/2; y++ {
			r, g, b, _ := img.At(x, y).RGBA()
			if d := math.Abs(float64(r>>8)-float64(want.R)) + math.Abs(float64(g>>8)-float64(want.G)) + math.Abs(float64(b>>8)-float64(want.B)); d < 230 {
				return true
			}
		}
		return false
	}
	at := func(i float64) int {
		return int(pictureMargin + (pictureWidth-2*pictureMargin)*i/float64(len(sampleChart().Values)-1))
	}
	for i, want := range map[float64]bool{0.5: true, 2.5: false, 3: false, 3.5: false, 5.5: true, 7: true} {
		if got := near(at(i), pictureLine); got != want {
			t.Errorf("at %v: got a line %v, want %v", i, got, want)
		}
	}
	if !near(at(6), pictureMark) || near(at(4.5), pictureMark) {
		t.Error("the mark is not at 02:06, want it there alone")
	}
	one, nan, inf := 1.0, math.NaN(), math.Inf(1)
	for name, c := range map[string]*alert.Chart{"none": nil, "no values": {Step: 1}, "none known": {Step: 1, Values: []*float64{nil, nil, &nan, &inf}}, "no step": {Values: []*float64{&one, &one}}} {
		if got := picture(c); got != nil {
			t.Errorf("%s: got a picture of %d bytes, want none", name, len(got))
		}
	}
	odd := &alert.Chart{Step: 1, Values: []*float64{nil, &one, nil, &nan, &one}, From: time.Now(), Mark: time.Now().Add(-time.Hour)}
	if got := picture(odd); got == nil {
		t.Error("single values: got no picture, want one")
	}
}

// TestTelegramPicture: the message comes first, and is delivered even if the picture is not.
func TestTelegramPicture(t *testing.T) {
	var got []string
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.URL.Path)
		if !strings.HasSuffix(r.URL.Path, "/sendPhoto") {
			return
		}
		f, _, err := r.FormFile("photo")
		if err != nil {
			t.Errorf("got %v, want a file", err)
			return
		}
		if text, _ := io.ReadAll(f); !bytes.Equal(text, picture(sampleChart())) || r.FormValue("chat_id") != "1" || !strings.HasPrefix(r.FormValue("caption"), "threads running from") {
			t.Errorf("got %d bytes, %v, want the picture of the chart", len(text), r.Form)
		}
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer fake.Close()
	r, err := Open(Config{Name: "x", Telegram: &Telegram{Token: "s3cret", Chat: "1", URL: fake.URL}})
	if err != nil {
		t.Fatal(err)
	}
	m := message(1)
	m.Chart = sampleChart()
	if err := r.Send(t.Context(), m); err != nil || strings.Join(got, " ") != "/bots3cret/sendMessage /bots3cret/sendPhoto" {
		t.Errorf("got %v, %v, want the message, then the picture", got, err)
	}
}

// TestEndless: a receiver that took a message need not end its answer, and one that did not is read to a limit only.
func TestEndless(t *testing.T) {
	status := http.StatusOK
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		for r.Context().Err() == nil {
			if _, err := w.Write(bytes.Repeat([]byte("s3cret\u202e\x1b\n"), 1<<10)); err != nil {
				return
			}
		}
	}))
	defer fake.Close()
	r, err := Open(Config{Name: "x", Webhook: &Webhook{URL: fake.URL}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Send(t.Context(), message(1)); err != nil {
		t.Errorf("it took the message: got %v, want none", err)
	}
	status = http.StatusInternalServerError
	if err := r.Send(t.Context(), message(1)); err == nil || len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\u202e\x1b\n") {
		t.Errorf("it did not: got %.2000v, want a short line", err)
	}
}
