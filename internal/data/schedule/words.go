package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// words reads a schedule in words: what repeats, and after "at" the time of day.
func (s *Schedule) words(words []string) error {
	at := 0
	for i, w := range words {
		if w != "at" {
			continue
		}
		if i != len(words)-2 {
			return errors.New("one time follows 'at', such as 02:00")
		}
		var err error
		if at, err = clock(words[i+1]); err != nil {
			return err
		}
		words = words[:i]
		break
	}
	s.minutes = []int{at}
	if words[0] != "every" {
		return s.adverb(words, at)
	}
	count, unit, err := amount(words[1:])
	if err != nil {
		return err
	}
	switch unit {
	case "minute", "min", "m":
		return s.within(count, at)
	case "hour", "h":
		return s.within(count*60, at)
	case "day", "d":
		s.each = count
	case "week", "w":
		s.each = 7 * count
	default:
		if count > 1 {
			return fmt.Errorf("%q is not a unit: use m, h, days or weeks", unit)
		}
		return s.onWeekdays(unit)
	}
	return nil
}

// adverb reads hourly, daily, weekly [on DAY] and monthly [on N].
func (s *Schedule) adverb(words []string, at int) error {
	on := ""
	switch {
	case len(words) == 3 && words[1] == "on":
		on = words[2]
	case len(words) != 1:
		return fmt.Errorf("%q is not understood", strings.Join(words[1:], " "))
	}
	switch words[0] {
	case "hourly":
		if on != "" {
			return errors.New("hourly has no days")
		}
		return s.within(60, at)
	case "daily":
		if on != "" {
			return s.onWeekdays(on)
		}
		return nil
	case "weekly":
		if on == "" {
			on = "sunday"
		}
		return s.onWeekdays(on)
	case "monthly":
		day := 1
		if on != "" {
			var err error
			if day, err = strconv.Atoi(on); err != nil || day < 1 || day > 31 {
				return fmt.Errorf("%q is not a day of the month", on)
			}
		}
		s.days = 1 << day
		return nil
	}
	return fmt.Errorf("%q is not understood", words[0])
}

// amount reads "6h", "6 hours", "day", "2 days", "mon,wed".
func amount(words []string) (count int, unit string, err error) {
	text := strings.Join(words, "")
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	count, unit = 1, text[digits:]
	if digits > 0 {
		if count, err = strconv.Atoi(text[:digits]); err != nil || count < 1 || count > 1000 {
			return 0, "", fmt.Errorf("%q is not a number from 1 to 1000", text[:digits])
		}
	}
	if unit == "" {
		return 0, "", errors.New("a time or a day follows 'every', such as 6h or sunday")
	}
	if len(unit) > 1 && (strings.HasPrefix("minutes", unit) || strings.HasPrefix("hours", unit) || unit == "days" || unit == "weeks") && strings.HasSuffix(unit, "s") {
		unit = strings.TrimSuffix(unit, "s")
	}
	return count, unit, nil
}

// within repeats it within the day, so that one of the times is at.
func (s *Schedule) within(step, at int) error {
	if step > minutesADay || minutesADay%step != 0 {
		return errors.New("a day is not a multiple of that: use 5m, 10m, 15m, 30m, 1h, 2h, 3h, 4h, 6h, 8h, 12h, or days")
	}
	s.minutes = nil
	for m := at % step; m < minutesADay; m += step {
		s.minutes = append(s.minutes, m)
	}
	return nil
}

func (s *Schedule) onWeekdays(list string) error {
	s.weekdays = 0
	for _, name := range strings.Split(list, ",") {
		i := named(name, dayNames)
		if i < 0 {
			return fmt.Errorf("%q is not a day of the week", name)
		}
		s.weekdays |= 1 << i
	}
	return nil
}

// clock reads a time of the day as its minute.
func clock(text string) (int, error) {
	h, m, ok := strings.Cut(text, ":")
	hour, err1 := strconv.Atoi(h)
	minute, err2 := strconv.Atoi(m)
	if !ok || err1 != nil || err2 != nil || hour < 0 || hour > 23 || minute < 0 || minute > 59 || len(m) != 2 {
		return 0, fmt.Errorf("%q is not a time of day: write it as 02:30", text)
	}
	return hour*60 + minute, nil
}
