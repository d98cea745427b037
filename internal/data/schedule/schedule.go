// Package schedule says when something is due next. It is pure: time is passed in.
//
// Two notations are understood: five fields as in cron, minute hour day-of-month month day-of-week, with lists,
// ranges, steps, names, and @hourly, @daily, @weekly, @monthly; or words:
//
//	every 6h at 02:00          02:00, 08:00, 14:00, 20:00
//	every 15m                  00:00, 00:15, …
//	every day at 02:30         also: daily at 02:30
//	every 2 days at 03:00
//	every sunday at 04:00      also: every mon,wed,fri at 04:00
//	monthly at 05:00           the first of the month; also: monthly on 15 at 05:00
package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrForm is what every error about the form of a schedule wraps.
var ErrForm = errors.New("not a schedule")

// Schedule is a set of days, and of times of the day.
type Schedule struct {
	text     string
	minutes  []int  // of the day, ascending
	days     uint32 // bit n: the nth of the month
	months   uint16 // bit n: the nth month
	weekdays uint8  // bit n: time.Weekday(n)
	either   bool   // a day fits when the day of the month or that of the week does, as cron has it where both are given
	each     int    // every n days, counted from Monday, 5 January 1970; 0 and 1: every day
}

const (
	allDays     = 1<<32 - 2
	allMonths   = 1<<13 - 2
	allWeekdays = 1<<7 - 1
	minutesADay = 24 * 60
)

// String is the text as it was written.
func (s Schedule) String() string { return s.text }

// horizon is how far ahead a time is looked for: 29 February comes every eight years at the latest (1896-1904, 2096-2104),
// and on a certain weekday within 40.
const horizon = 41 * 366

// Next is the first moment after now at which it is due, in now's time zone; the zero time when there is none. A time of
// the day that does not exist, because clocks are put forward, is due when they are; one that exists twice is due once.
func (s Schedule) Next(now time.Time) time.Time {
	year, month, day := now.Date()
	for n := range horizon {
		noon := time.Date(year, month, day+n, 12, 0, 0, 0, time.UTC) // of the calendar's day, wherever clocks change
		if !s.fits(noon) {
			continue
		}
		for _, m := range s.minutes {
			if at := onDay(noon, m, now.Location()); at.After(now) {
				return at
			}
		}
	}
	return time.Time{}
}

// onDay is a minute of a day in a time zone.
func onDay(day time.Time, minute int, loc *time.Location) time.Time {
	y, m, d := day.Date()
	at := time.Date(y, m, d, minute/60, minute%60, 0, 0, loc)
	const wall = "20060102 1504"
	want, got := time.Date(y, m, d, minute/60, minute%60, 0, 0, time.UTC).Format(wall), at.Format(wall)
	if got == want {
		return at
	}
	// It does not exist: time.Date gives a time on one side or the other of the moment when clocks are set forward.
	start, end := at.ZoneBounds()
	if got < want {
		return end
	}
	return start
}

// fits reports whether a day is one of the schedule's.
func (s Schedule) fits(day time.Time) bool {
	if s.months&(1<<day.Month()) == 0 {
		return false
	}
	if s.each > 1 {
		const monday = 4 // 5 January 1970 in days since the 1st
		return (day.Unix()/86400-monday)%int64(s.each) == 0
	}
	ofMonth, ofWeek := s.days&(1<<day.Day()) != 0, s.weekdays&(1<<day.Weekday()) != 0
	if s.either {
		return ofMonth || ofWeek
	}
	return ofMonth && ofWeek
}

// Parse reads a schedule. Errors wrap ErrForm and say what would be right.
func Parse(text string) (Schedule, error) {
	words := strings.Fields(strings.ToLower(text))
	s := Schedule{text: strings.Join(strings.Fields(text), " "), days: allDays, months: allMonths, weekdays: allWeekdays}
	var err error
	switch {
	case len(words) == 0:
		err = errors.New("it is empty")
	case len(words) == 1 && words[0][0] == '@':
		err = s.nickname(words[0])
	case words[0] == "every" || strings.HasSuffix(words[0], "ly"):
		err = s.words(words)
	case len(words) == 5:
		err = s.cron(words)
	default:
		err = fmt.Errorf("%d fields, cron has five", len(words))
	}
	if err == nil && s.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		err = errors.New("no day matches it")
	}
	if err != nil {
		return Schedule{}, fmt.Errorf("%w: %q: %w; write it as 'every 6h at 02:00', 'every sunday at 03:30' or five fields as cron has them", ErrForm, text, err)
	}
	return s, nil
}

func (s *Schedule) nickname(word string) error {
	fields, ok := map[string]string{
		"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
	}[word]
	if !ok {
		return errors.New("there are @hourly, @daily, @weekly, @monthly, @yearly")
	}
	return s.cron(strings.Fields(fields))
}

// cron reads five fields.
func (s *Schedule) cron(f []string) error {
	var sets [5]uint64
	for i, field := range []struct {
		name     string
		low, top int
		names    []string
	}{{"minute", 0, 59, nil}, {"hour", 0, 23, nil}, {"day of the month", 1, 31, nil}, {"month", 1, 12, monthNames}, {"day of the week", 0, 7, dayNames}} {
		set, err := fieldSet(f[i], field.low, field.top, field.names)
		if err != nil {
			return fmt.Errorf("%s %q: %w", field.name, f[i], err)
		}
		sets[i] = set
	}
	for h := range 24 {
		for m := range 60 {
			if sets[1]&(1<<h) != 0 && sets[0]&(1<<m) != 0 {
				s.minutes = append(s.minutes, h*60+m)
			}
		}
	}
	if sets[4]&(1<<7) != 0 { // 7 is Sunday too
		sets[4] |= 1
	}
	s.days, s.months, s.weekdays = uint32(sets[2]), uint16(sets[3]), uint8(sets[4])&allWeekdays
	// crontab(5): where both are restricted, either will do.
	s.either = f[2][0] != '*' && f[4][0] != '*'
	return nil
}

var (
	monthNames = []string{"", "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"}
	dayNames   = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}
)

// fieldSet reads a list of numbers, ranges and steps as a set of bits.
func fieldSet(field string, low, top int, names []string) (set uint64, err error) {
	for _, part := range strings.Split(field, ",") {
		span, stepText, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			if step, err = strconv.Atoi(stepText); err != nil || step < 1 {
				return 0, fmt.Errorf("the step %q is not a number above 0", stepText)
			}
		}
		from, to := low, top
		if span != "*" {
			a, b, isRange := strings.Cut(span, "-")
			if from, err = number(a, low, top, names); err != nil {
				return 0, err
			}
			switch {
			case isRange:
				if to, err = number(b, low, top, names); err != nil {
					return 0, err
				}
			case !stepped:
				to = from
			}
		}
		if from > to {
			return 0, fmt.Errorf("%d comes after %d", from, to)
		}
		for n := from; n <= to; n += step {
			set |= 1 << n
		}
	}
	return set, nil
}

// number reads a number, or a name of which at least three letters are written.
func number(text string, low, top int, names []string) (int, error) {
	if i := named(text, names); i >= 0 {
		return i, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > top {
		return 0, fmt.Errorf("%q is not one of %d to %d", text, low, top)
	}
	return n, nil
}

func named(text string, names []string) int {
	if len(text) < 3 {
		return -1
	}
	return slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, text) })
}
