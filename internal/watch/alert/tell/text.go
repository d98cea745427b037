package tell

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/watch/alert"
)

// Text is a message as plain text, for people. It has at most most characters: what does not fit is left out by whole alerts, or by whole
// lines of the first one, and the last line says so.
func Text(m *alert.Message, most int) string {
	var out strings.Builder
	out.WriteString(quiet(m))
	for i := range m.Alerts {
		left := len(m.Alerts) - i + m.Held
		rest := "\n" + leftOut(left)
		block := strings.Join(Lines(&m.Alerts[i]), "\n") + "\n"
		if words := ChartWords(m.Chart); i == 0 && words != "" {
			block += "chart: " + words + "\n"
		}
		if i > 0 {
			block = "\n" + block
		}
		room := most - utf8.RuneCountInString(out.String())
		if left > 1 || i > 0 {
			room -= utf8.RuneCountInString(rest)
		}
		if utf8.RuneCountInString(block) <= room {
			out.WriteString(block)
			continue
		}
		if i == 0 {
			out.WriteString(someLines(block, room))
			if left > 1 {
				out.WriteString("\n" + leftOut(left-1))
			}
			return out.String()
		}
		return out.String() + rest
	}
	if m.Held > 0 {
		out.WriteString("\n" + leftOut(m.Held))
	}
	return out.String()
}

// quiet says of a message that its alerts waited for quiet hours to end, and how many of them still fire; of others it says nothing.
func quiet(m *alert.Message) string {
	if m.Quiet.IsZero() {
		return ""
	}
	n, firing := len(m.Alerts)+m.Held, m.Firing()
	fires := "none of them still fires"
	switch {
	case firing == n:
		fires = "all still fire"
	case firing > 0:
		fires = fmt.Sprintf("%d still firing", firing)
	}
	return "While it was quiet, from " + m.Quiet.UTC().Format("15:04 MST") + " to " + m.Made.UTC().Format("15:04 MST") + ": " + digits.Counted(n, "alert") + ", " + fires + ".\n\n"
}

// leftOut says how many alerts a text lacks.
func leftOut(n int) string { return "Left out here: " + digits.Counted(n, "more alert") + ".\n" }

// someLines is as many whole lines of a text as most characters take, and a line that says that there are more.
func someLines(text string, most int) string {
	const more = "[shortened]\n"
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	var out strings.Builder
	most -= len(more)
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(line); n <= most {
			out.WriteString(line)
			most -= n
			continue
		}
		break
	}
	return out.String() + more
}

// Lines is what a person needs to know of an alert: what, since when, how bad, why, what to do next, and where to look.
func Lines(a *alert.Alert) []string {
	lines := []string{head(a), "since " + when(a)}
	add := func(name, text string) {
		if text = oneline.Of(text); text != "" {
			lines = append(lines, name+oneline.Cut(text, 1000))
		}
	}
	add("why: ", a.Why)
	for i, e := range a.Evidence {
		if i == 12 {
			lines = append(lines, "  "+digits.Counted(len(a.Evidence)-i, "more line")+" of evidence left out")
			break
		}
		add("  ", e)
	}
	add("also there: ", strings.Join(a.Affected, ", "))
	if a.Times > 1 {
		lines = append(lines, fmt.Sprintf("it came and went %d times", a.Times))
	}
	if a.Flapping {
		lines = append(lines, "it comes and goes: its end is told only when it has been gone for longer")
	}
	if a.Phase != alert.Resolved {
		add("next: ", a.Remedy)
	}
	add("look: ", a.Link)
	return lines
}

// head is how bad an alert is, where, and what.
func head(a *alert.Alert) string {
	word := strings.ToUpper(a.Severity.String())
	if a.Phase == alert.Resolved {
		word = "RESOLVED"
	}
	return oneline.Cut(oneline.Of(fmt.Sprintf("%s %s: %s", word, a.Server, a.Says())), 300)
}

// when is since when an alert is there, and how long it was.
func when(a *alert.Alert) string {
	text := a.Began.UTC().Format("2006-01-02 15:04:05 MST")
	if !a.Ended.IsZero() {
		end := "ended "
		if a.Unseen {
			end = "ended by "
		}
		text += ", " + end + a.Ended.UTC().Format("15:04:05 MST") + ", after " + digits.Span(a.Ended.Sub(a.Began).Round(time.Second))
	}
	return text
}

// cut shortens a line to what a field takes, without anything that a terminal or a header would obey.
func cut(text string, most int) string { return oneline.Cut(oneline.Of(text), most) }
