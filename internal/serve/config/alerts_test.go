package config

import (
	"fmt"
	"testing"
)

func TestParseHours(t *testing.T) {
	for text, want := range map[string]string{
		"22:00-07:00":                     "[] 22h0m0s 7h0m0s Local",
		"mon-fri 22:00-07:00 UTC":         "[Monday Tuesday Wednesday Thursday Friday] 22h0m0s 7h0m0s UTC",
		"Sat,sun 00:00-24:00 Asia/Tokyo":  "[Saturday Sunday] 0s 24h0m0s Asia/Tokyo",
		"fri-mon 10:30-11:00":             "[Friday Saturday Sunday Monday] 10h30m0s 11h0m0s Local",
		"":                                "error",
		"22:00":                           "error",
		"mon":                             "error",
		"moon 22:00-23:00":                "error",
		"22:00-22:00":                     "error",
		"24:00-07:00":                     "error",
		"22:00-25:00":                     "error",
		"22:00-07:00 Atlantis/Everywhere": "error",
		"22:00-07:00 UTC UTC":             "error",
	} {
		h, err := ParseHours(text)
		got := "error"
		if err == nil {
			got = fmt.Sprint(h.Days, " ", h.From, " ", h.To, " ", h.Zone)
		}
		if got != want {
			t.Errorf("%q: got %s (%v), want %s", text, got, err, want)
		}
	}
}
