package check

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
	"github.com/rissodb/risso/internal/watch/live"
	"github.com/rissodb/risso/internal/watch/rules"
)

// What Nagios takes: MAX_PLUGIN_OUTPUT_LENGTH of its version 4 is 8,192 bytes for all.
const (
	mostLine = 500  // characters of the status line's words
	mostPerf = 3000 // bytes of performance data
	mostLong = 3500 // bytes of the lines after the first
)

// perf is one value of the performance data.
type perf struct {
	label string
	value float64
	unit  string // as the guidelines have it: s, ms, %, B, c, or none
	warn  string // the range that is no warning, or none
	max   string
}

// label makes a label of the performance data. Source: Monitoring Plugins Development Guidelines: any characters but = and '.
func label(text string) string {
	return "'" + strings.Map(func(r rune) rune {
		if r == '=' || r == '\'' || r == '|' || r == '"' {
			return '_'
		}
		return r
	}, oneline.Cut(oneline.Of(text), 80)) + "'"
}

// write is 'label'=value[unit];[warn];[crit];[min];[max], without the semicolons at its end.
func (p perf) write(server string) string {
	name := p.label
	if server != "" {
		name = server + " " + name
	}
	value := "U"
	if !math.IsNaN(p.value) && !math.IsInf(p.value, 0) {
		value = strconv.FormatFloat(math.Round(p.value*1000)/1000, 'f', -1, 64)
	}
	return fmt.Sprintf("%s=%s%s;%s;;0", label(name), value, p.unit, p.warn) + strings.TrimSuffix(";"+p.max, ";")
}

// perfOf are the numbers of a server or host.
func perfOf(r live.Row, s Service, maxAge time.Duration) []perf {
	var list []perf
	if s.Age >= 0 {
		list = append(list, perf{label: "age", value: s.Age, unit: "s", warn: strconv.FormatFloat(maxAge.Seconds(), 'f', -1, 64)})
	}
	list = append(list, perf{label: "findings", value: float64(len(s.Findings))})
	add := func(label string, v *float64, factor float64, unit, most string) {
		if v != nil {
			list = append(list, perf{label: label, value: *v * factor, unit: unit, max: most})
		}
	}
	add("questions_per_second", r.QPS, 1, "", "")
	add("threads_running", r.ThreadsRunning, 1, "", "")
	add("lag", r.Lag, 1, "s", "")
	add("cpu", r.CPU, 100, "%", "100")
	for _, f := range s.Findings {
		if f.Value == 0 {
			continue
		}
		kind, _ := rules.KindOf(f.ID)
		list = append(list, perf{label: strings.TrimSpace(f.ID + " " + f.Subject), value: f.Value, unit: kind.Unit})
	}
	return list
}

// text is an answer as a plug-in prints it: a line with performance data, and further lines.
func (a Answer) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "RISSO %s - %s", a.State, plain(a.Words, mostLine))
	several := len(a.Services) > 1
	used, bar := 0, " |"
	for _, s := range a.Services {
		server := ""
		if several {
			server = s.Server
		}
		for _, p := range s.perf {
			text := p.write(server)
			if used += len(text) + 1; used > mostPerf { // a value that is cut would be another one
				break
			}
			b.WriteString(bar + " " + text)
			bar = ""
		}
	}
	b.WriteByte('\n')
	long, left := 0, 0
	for _, s := range a.Services {
		for _, line := range s.lines() {
			line += "\n"
			if long+len(line) > mostLong {
				left++
				continue
			}
			long += len(line)
			b.WriteString(line)
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, "left out here: %d more lines\n", left)
	}
	return b.String()
}

// lines say what holds of a service, and the next step for each.
func (s Service) lines() []string {
	if len(s.Findings) == 0 && s.Code != OK {
		return []string{plain(fmt.Sprintf("[%s] %s: %s", s.State, s.Server, s.Words), mostLine)}
	}
	var list []string
	for _, f := range s.Findings {
		state := checkWords[codeOf(f.Severity)]
		if f.Severity == fleet.SeverityInfo {
			state = "info"
		}
		list = append(list, plain(fmt.Sprintf("[%s] %s %s: %s", state, s.Server, strings.TrimSpace(f.ID+" "+f.Subject), f.What), mostLine))
		if f.Remedy != "" {
			command, _, _ := strings.Cut(f.Remedy, " | ") // a bar begins performance data; the first command of a pipe shows the same, and more
			list = append(list, plain("next: "+command, 1000))
		}
	}
	return list
}

// plain is text from outside in one line, without the character after which performance data begin.
func plain(text string, most int) string { return noBar(oneline.Cut(oneline.Of(text), most)) }
