package advise

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// rule compares one setting with what it should be. Sources of what settings do are the chapters "Server System Variables", "InnoDB Startup
// Options and System Variables" and "Replication and Binary Logging Options and Variables" of the MySQL manual, and MariaDB's
// documentation, under the setting's name.
type rule struct {
	names    []string                // of the setting, the newest first: the first one that the server has counts
	bad      func(value string) bool // the value is wrong
	if_      func(s *Server) bool    // and this holds; nil: always
	want     string                  // what to set; "": no value is right for everybody
	start    bool                    // it can only be set when the server is started
	sessions bool                    // sessions that are open keep their own
	severity fleet.Severity
	what     string // follows "sync_binlog is 0: "
	why      string
	risk     string
	effect   string // if there is more to say than that it is so at once
	advice   string
	doubt    string                   // what it depends on; "": certain
	more     func(s *Server) []string // further evidence
}

// settings are rules of one ID.
type settings struct {
	Check
	rules []rule
}

// look applies the rules.
func (c settings) look(s *Server) (list []Finding) {
	for i := range c.rules {
		r := &c.rules[i]
		for _, name := range r.names {
			value, ok := s.Variables[name]
			if !ok {
				continue
			}
			if r.bad(value) && (r.if_ == nil || r.if_(s)) {
				list = append(list, r.finding(s, name, value))
			}
			break
		}
	}
	return list
}

// finding says that a setting is wrong.
func (r *rule) finding(s *Server, name, value string) Finding {
	f := Finding{Object: name, Severity: r.severity, What: name + " is " + shown(value) + ": " + r.what, Why: r.why, Advice: r.advice,
		Evidence: []string{name + " = " + shown(value)}, Cost: Cost{Risk: r.risk}, Since: s.started()}
	if r.more != nil {
		f.Evidence = append(f.Evidence, r.more(s)...)
	}
	if r.doubt != "" {
		f.Sure, f.Doubt = Likely, r.doubt
	}
	if r.want == "" {
		return f
	}
	change(&f, s, name, value, r.want, r.start)
	if f.Statement != "" {
		f.Effect = r.effect
		if f.Effect == "" {
			f.Effect = "at once, without locks"
		}
		if r.sessions {
			f.Effect += "; sessions that are open keep the value that they have"
		}
	}
	return f
}

// change fills in how a setting is changed: by a statement, or in the option file where the server takes it only when it is started.
func change(f *Finding, s *Server, name, old, value string, start bool) {
	line := optionLine(name, value)
	switch {
	case start:
		f.Advice = strings.TrimPrefix(f.Advice+"; ", "; ") + "set " + line + ", and restart the server"
	default:
		f.Statement, f.Undo = s.SetLasting(name, value), s.SetLasting(name, old)
		if !s.KeepsSettings() {
			f.Advice = strings.TrimPrefix(f.Advice+"; ", "; ") + "also set " + line + ", or the next restart takes it back"
		}
	}
}

// optionLine is a setting as it stands in the option file.
func optionLine(name, value string) string {
	return fmt.Sprintf("%s = %s below [mysqld] in the option file", name, mysql.SettingText(value))
}

// shown is a value as findings show it.
func shown(value string) string {
	if value == "" {
		return "empty"
	}
	return value
}

// What values are wrong.

func is(values ...string) func(string) bool {
	return func(v string) bool {
		for _, x := range values {
			if strings.EqualFold(v, x) {
				return true
			}
		}
		return false
	}
}

func isNot(values ...string) func(string) bool {
	f := is(values...)
	return func(v string) bool { return !f(v) }
}

func above(limit float64) func(string) bool {
	return func(v string) bool { x, err := strconv.ParseFloat(v, 64); return err == nil && x > limit }
}

func below(limit float64) func(string) bool {
	return func(v string) bool { x, err := strconv.ParseFloat(v, 64); return err == nil && x < limit }
}

func lacks(word string) func(string) bool {
	return func(v string) bool { return !strings.Contains(strings.ToUpper(v), word) }
}

func has(word string) func(string) bool {
	f := lacks(word)
	return func(v string) bool { return !f(v) }
}

func filled(v string) bool { return v != "" }

// When rules hold.

func logs(s *Server) bool      { return s.logs() }
func replica(s *Server) bool   { return len(s.Channels) > 0 }
func cluster(s *Server) bool   { return s.galera() }
func hasMyISAM(s *Server) bool { return s.Tables.Engines["MYISAM"] > 0 }
func parallel(s *Server) bool {
	return above(1)(s.first("replica_parallel_workers", "slave_parallel_workers"))
}

// first is the value of the first variable that there is.
func (s *Server) first(names ...string) string {
	for _, n := range names {
		if v, ok := s.Variables[n]; ok {
			return v
		}
	}
	return ""
}

const (
	mega = 1 << 20
	giga = 1 << 30
)

// bytesOf shows a variable's value as a size.
func bytesOf(name string) func(s *Server) []string {
	return func(s *Server) []string {
		v, ok := s.number(name)
		if !ok {
			return nil
		}
		return []string{"that is " + digits.Bytes(v)}
	}
}

// integer is a number as SQL takes it.
func integer(v float64) string { return strconv.FormatInt(int64(v), 10) }
