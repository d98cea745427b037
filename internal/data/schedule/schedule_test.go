package schedule

import (
	"errors"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // zones are here on every machine
)

// form is how the tests write a time: with the day of the week, so that a wrong one is seen.
const form = "Mon 2006-01-02 15:04 -0700"

func TestNext(t *testing.T) {
	for _, c := range []struct{ text, now, want string }{
		{"every 6h at 02:00", "2026-11-21T18:40:00Z", "Sat 2026-11-21 20:00; Sun 2026-11-22 02:00; Sun 2026-11-22 08:00"},
		{"every 6h at 20:00", "2026-11-21T01:59:59Z", "Sat 2026-11-21 02:00; Sat 2026-11-21 08:00; Sat 2026-11-21 14:00"},
		{"every 15m", "2026-11-21T23:45:00Z", "Sun 2026-11-22 00:00; Sun 2026-11-22 00:15"},
		{"every 90 minutes at 00:30", "2026-11-21T22:00:00Z", "Sat 2026-11-21 23:00; Sun 2026-11-22 00:30; Sun 2026-11-22 02:00"},
		{"Every Day at 02:30", "2026-11-21T02:30:00Z", "Sun 2026-11-22 02:30; Mon 2026-11-23 02:30"},
		{"daily", "2026-11-21T02:30:00Z", "Sun 2026-11-22 00:00"},
		{"hourly at 00:17", "2026-11-21T02:30:00Z", "Sat 2026-11-21 03:17; Sat 2026-11-21 04:17"},
		{"every sunday at 04:00", "2026-11-22T04:00:00Z", "Sun 2026-11-29 04:00; Sun 2026-12-06 04:00"},
		{"every mon,wed,fri at 04:00", "2026-11-22T04:00:00Z", "Mon 2026-11-23 04:00; Wed 2026-11-25 04:00; Fri 2026-11-27 04:00; Mon 2026-11-30 04:00"},
		{"weekly at 03:00", "2026-11-21T18:40:00Z", "Sun 2026-11-22 03:00; Sun 2026-11-29 03:00"},
		{"weekly on saturday at 19:00", "2026-11-21T18:40:00Z", "Sat 2026-11-21 19:00; Sat 2026-11-28 19:00"},
		{"monthly on 31 at 05:00", "2026-11-21T18:40:00Z", "Thu 2026-12-31 05:00; Sun 2027-01-31 05:00; Wed 2027-03-31 05:00"},
		{"monthly", "2026-11-21T18:40:00Z", "Tue 2026-12-01 00:00; Fri 2027-01-01 00:00"},
		{"every 2 weeks at 01:00", "2026-11-21T18:40:00Z", "Mon 2026-11-23 01:00; Mon 2026-12-07 01:00"},
		{"every 2 days at 03:00", "2026-12-30T18:40:00Z", "Thu 2026-12-31 03:00; Sat 2027-01-02 03:00; Mon 2027-01-04 03:00"},
		{"*/20 8-9 * * mon-fri", "2026-11-20T09:20:00Z", "Fri 2026-11-20 09:40; Mon 2026-11-23 08:00; Mon 2026-11-23 08:20"},
		{"30 2 13 * 5", "2026-11-13T02:30:00Z", "Fri 2026-11-20 02:30; Fri 2026-11-27 02:30; Fri 2026-12-04 02:30; Fri 2026-12-11 02:30; Sun 2026-12-13 02:30"},
		{"0 0 29 feb *", "2026-11-21T18:40:00Z", "Tue 2028-02-29 00:00; Sun 2032-02-29 00:00"},
		{"0 0 29 2 */7", "2098-11-21T18:40:00Z", "Sun 2128-02-29 00:00"}, // 2100 is no leap year
		{"5,10-12/2,50/5 1 * * 7", "2026-11-22T01:04:00Z", "Sun 2026-11-22 01:05; Sun 2026-11-22 01:10; Sun 2026-11-22 01:12; Sun 2026-11-22 01:50; Sun 2026-11-22 01:55; Sun 2026-11-29 01:05"},
		{"@weekly", "2026-11-21T18:40:00Z", "Sun 2026-11-22 00:00"},
	} {
		s, err := Parse(c.text)
		if err != nil {
			t.Error(err)
			continue
		}
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for range strings.Count(c.want, ";") + 1 {
			now = s.Next(now)
			got = append(got, now.Format("Mon 2006-01-02 15:04"))
		}
		if g := strings.Join(got, "; "); g != c.want {
			t.Errorf("%s: %s, not %s", c.text, g, c.want)
		}
	}
}

// TestClocksChange holds that a time in the hour that is left out is not left out, and one in the hour that comes twice
// comes once.
func TestClocksChange(t *testing.T) {
	for _, c := range []struct{ zone, text, now, want string }{
		{"Europe/Vienna", "every day at 02:30", "Sat 2026-03-28 12:00 +0100", "Sun 2026-03-29 03:00 +0200; Mon 2026-03-30 02:30 +0200"},
		{"America/New_York", "every day at 02:30", "Sat 2026-03-07 12:00 -0500", "Sun 2026-03-08 03:00 -0400; Mon 2026-03-09 02:30 -0400"},
		{"Europe/Vienna", "every 6h at 02:00", "Sat 2026-03-28 21:00 +0100", "Sun 2026-03-29 03:00 +0200; Sun 2026-03-29 08:00 +0200"},
		{"America/Santiago", "daily", "Sat 2026-09-05 12:00 -0400", "Sun 2026-09-06 01:00 -0300; Mon 2026-09-07 00:00 -0300"}, // midnight does not exist
	} {
		loc, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		now, err := time.ParseInLocation(form, c.now, loc)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for range strings.Count(c.want, ";") + 1 {
			now = s.Next(now.In(loc))
			got = append(got, now.Format(form))
		}
		if g := strings.Join(got, "; "); g != c.want {
			t.Errorf("%s in %s: %s, not %s", c.text, c.zone, g, c.want)
		}
	}
	loc, err := time.LoadLocation("Europe/Vienna")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse("every day at 02:30") // which comes twice on 25 October 2026
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 10, 24, 12, 0, 0, 0, loc)
	first := s.Next(now)
	second := s.Next(first)
	if first.Format("02 15:04") != "25 02:30" || second.Format("02 15:04") != "26 02:30" {
		t.Errorf("got %s, then %s; want first.Format(\"02 15:04\") \"25 02:30\", second.Format(\"02 15:04\") \"26 02:30\"",
			first.Format(form), second.Format(form))
	}
}

func TestParseRefuses(t *testing.T) {
	for text, say := range map[string]string{
		"":                    "empty",
		"every":               "follows 'every'",
		"every 7h":            "not a multiple",
		"every 6h at 2":       "not a time of day",
		"every 6h at 24:00":   "not a time of day",
		"every 6h at 02:00 ,": "follows 'at'",
		"every fortnight":     "not a day of the week",
		"every 2 sundays":     "not a unit",
		"every 0h":            "from 1 to 1000",
		"weekly on the moon":  "not understood",
		"monthly on 32":       "not a day of the month",
		"nightly":             "not understood",
		"@reboot":             "@hourly",
		"* * * *":             "4 fields",
		"60 * * * *":          "minute \"60\"",
		"* * * * * *":         "6 fields",
		"0 0 30 2 *":          "no day matches",
		"0 0 10-5 * *":        "comes after",
		"*/0 * * * *":         "above 0",
		"x * * * *":           "minute \"x\"",
	} {
		s, err := Parse(text)
		if !errors.Is(err, ErrForm) || err != nil && !strings.Contains(err.Error(), say) {
			t.Errorf("%q: %v %v", text, s, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"every 6h at 02:00", "*/5 1-3 1,15 jan-mar mon", "monthly on 15 at 05:00", "@daily"} {
		f.Add(s)
	}
	now := time.Date(2026, 11, 21, 18, 40, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		next := s.Next(now)
		if !next.After(now) {
			t.Errorf("%q: got %s, want After(now) true", text, next)
		}
		if again, err := Parse(s.String()); err != nil || !again.Next(now).Equal(next) {
			t.Errorf("%q reads back as %q: %v", text, s, err)
		}
	})
}

// TestEdges: the last that is taken, and the first that is refused.
func TestEdges(t *testing.T) {
	for _, c := range []struct{ good, next, bad string }{
		{"59 23 31 12 7", "2026-12-06 23:59", "59 24 31 12 7"}, {"0 0 31 12 *", "2026-12-31 00:00", "0 0 32 12 *"}, {"0 0 1 1 *", "2027-01-01 00:00", "0 0 0 1 *"},
		{"0 0 * 12 *", "2026-12-01 00:00", "0 0 * 13 *"}, {"0 0 * 1 *", "2027-01-01 00:00", "0 0 * 0 *"}, {"0 0 * * 7", "2026-11-22 00:00", "0 0 * * 8"}, {"0 0 * * sun", "2026-11-22 00:00", "0 0 * * su"},
		{"59 * * * *", "2026-11-21 18:59", "60 * * * *"}, {"*/1 * * * *", "2026-11-21 18:41", "*/0 * * * *"}, {"0 0 * * sat", "2026-11-28 00:00", "0 0 * * day"},
		{"monthly on 1 at 00:00", "2026-12-01 00:00", "monthly on 0 at 00:00"}, {"monthly on 31", "2026-12-31 00:00", "monthly on 32"}, {"monthly on 7", "2026-12-07 00:00", "monthly on x"},
		{"daily at 23:59", "2026-11-21 23:59", "daily at 23:60"}, {"daily at 00:00", "2026-11-22 00:00", "daily at 24:00"}, {"daily at 1:05", "2026-11-22 01:05", "daily at 1:5"},
		{"every 1 days", "2026-11-22 00:00", "every 0 days"}, {"every 1000 days", "2027-07-05 00:00", "every 1001 days"}, {"every 720m at 03:00", "2026-11-22 03:00", "every 721m at 03:00"},
		{"every 24h", "2026-11-22 00:00", "every 48h"}, {"every 12h at 19:00", "2026-11-21 19:00", "every 13h"}, {"every 2 minutes", "2026-11-21 18:42", "every 2 minute s x"}, {"every 1 hour at 00:45", "2026-11-21 18:45", "every 1 hourss"},
		{"every hours at 00:45", "2026-11-21 18:45", "every sundays"}, {"every minute", "2026-11-21 18:41", "every"}, {"every min", "2026-11-21 18:41", "every mi"}, {"every 5 min", "2026-11-21 18:45", "every 5 s"},
		{"hourly at 00:41", "2026-11-21 18:41", "hourly on sunday"}, {"daily on sat at 18:41", "2026-11-21 18:41", "daily on sat on sun"}, {"weekly on wed,sat at 18:39", "2026-11-25 18:39", "weekly on"},
	} {
		s, err := Parse(c.good)
		if err != nil {
			t.Error(err)
		} else if got := s.Next(time.Date(2026, 11, 21, 18, 40, 0, 0, time.UTC)).Format("2006-01-02 15:04"); got != c.next {
			t.Errorf("%s: got %s, want %s", c.good, got, c.next)
		}
		if s, err := Parse(c.bad); !errors.Is(err, ErrForm) {
			t.Errorf("%s: got %v, %v; want an error", c.bad, s, err)
		}
	}
	for text, say := range map[string]string{"0 24 * * *": `hour "24"`, "0 0 32 * *": `day of the month "32"`, "0 0 * 13 *": `month "13"`, "0 0 * * 8": `day of the week "8"`, "60 0 * * *": `minute "60"`, "every 25h": "not a multiple",
		"every 2880m": "from 1 to 1000", "every 48h": "not a multiple", "monthly on x": "not a day of the month", "daily at 0230": "not a time of day", "daily at x:30": "not a time of day", "daily at 02:xx": "not a time of day", "every m": "", "every s": "not a day of the week"} {
		if _, err := Parse(text); say != "" && (err == nil || !strings.Contains(err.Error(), say)) || say == "" && err != nil {
			t.Errorf("%s: got %v, want %q", text, err, say)
		}
	}
	if s, err := Parse("  every   6h  at 02:00 "); err != nil || s.String() != "every 6h at 02:00" {
		t.Errorf("got %q, %v; want it without needless spaces", s, err)
	}
	if _, err := Parse("weekly today and tomorrow"); err == nil || !strings.Contains(err.Error(), `"today and tomorrow" is not understood`) {
		t.Errorf("got %v, want all that is not understood", err)
	}
	if got := (Schedule{}).Next(time.Now()); !got.IsZero() {
		t.Errorf("no schedule: got %v, want no time", got)
	}
	// 29 February on a Sunday comes 28 years later, or 40 if there is a century that is no leap year in between.
	if s, err := Parse("0 0 29 2 */7"); err != nil {
		t.Error(err)
	} else if got := s.Next(time.Date(2076, 3, 1, 0, 0, 0, 0, time.UTC)); got.Format("2006-01-02") != "2104-02-29" && got.IsZero() {
		t.Errorf("got %v", got)
	}
	// How many times a day: nothing is due twice, nothing is left out.
	for text, want := range map[string]int{"every 15m": 96, "every 90m": 16, "* * * * *": 1440, "*/7 * * * *": 216, "every 8h at 23:59": 3, "5-59/6 1,2 * * *": 20} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.minutes) != want {
			t.Errorf("%s: got %d times a day, want %d", text, len(s.minutes), want)
		}
	}
}
