package advise

import (
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
)

// endOfLife looks at whether the server's series is still maintained.
func endOfLife(s *Server) []Finding {
	e, known := s.EndOfLife()
	if !known {
		return nil
	}
	left := e.Ends.Sub(s.Now)
	f := Finding{Object: "version", Evidence: []string{"version " + s.Version, e.Series + " ends on " + e.Ends.Format("2006-01-02") + ": " + e.Source}, Why: "faults that are found after it are not mended, security holes among them",
		Advice: "go to " + e.Next + ": try it first with the server's own schemas and statements. Which patch release is the newest is not known from here", Cost: Cost{Risk: "holes stay open"}, Since: e.Ends}
	switch days := left.Hours() / 24; {
	case days <= -365:
		f.Severity, f.What = fleet.SeverityCritical, fmt.Sprintf("version %s has not been maintained for %s", e.Series, digits.Age(-left.Seconds()))
	case days <= 0:
		f.Severity, f.What = fleet.SeverityWarning, fmt.Sprintf("version %s has not been maintained for %s", e.Series, digits.Age(-left.Seconds()))
	case days <= 180:
		f.Severity, f.What = fleet.SeverityInfo, fmt.Sprintf("version %s is maintained for %s yet", e.Series, digits.Age(left.Seconds()))
		f.Since = s.Now
	default:
		return nil
	}
	return []Finding{f}
}

// debugBuild finds servers that were built for those who develop them.
func debugBuild(s *Server) []Finding {
	if !strings.Contains(strings.ToLower(s.Version), "debug") && s.text("debug") == "" {
		return nil
	}
	return []Finding{{Object: "version", Severity: fleet.SeverityWarning, What: "the server was built with debugging", Why: "it is many times slower, and ends itself at what another build only notes", Evidence: []string{"version " + s.Version}, Advice: "install the ordinary build of the same version"}}
}

// timeZones looks at whether names of time zones mean anything.
func timeZones(s *Server) []Finding {
	if s.TimeZones != 0 {
		return nil
	}
	return []Finding{{Object: "mysql.time_zone_name", Severity: fleet.SeverityInfo, What: "the server knows no time zones by name", Why: "CONVERT_TZ with a name gives NULL without an error, and SET time_zone with one fails",
		Evidence: []string{"mysql.time_zone_name is empty"}, Advice: "load them on the server's machine: mysql_tzinfo_to_sql /usr/share/zoneinfo | mysql mysql", Cost: Cost{Risk: "NULL instead of times"}}}
}

// queryCache says what to do with a query cache that is on, by what it shows. A hit saves a SELECT; a miss pays to look and to store, under one
// lock that all sessions share; each write to a table throws away all that was stored of it (MariaDB documentation, "Query Cache"). How
// much it gains or costs on a machine is measured in docs/advise.md.
func queryCache(s *Server) []Finding {
	size, ok := s.number("query_cache_size")
	if !ok || size == 0 || s.text("query_cache_type") == "OFF" {
		return nil
	}
	hits, selects, inserts := s.status("qcache_hits"), s.status("com_select"), s.status("qcache_inserts")
	prunes, running := s.status("qcache_lowmem_prunes"), s.status("threads_running")
	if s.HitsAreSelects() {
		selects -= hits
	}
	rate := 0.0
	if hits+selects > 0 {
		rate = hits / (hits + max(selects, 0))
	}
	f := Finding{Object: "query_cache_size", Since: s.started(), Evidence: []string{
		fmt.Sprintf("%s of SELECTs were answered from it: Qcache_hits = %s, others = %s", digits.Percent(rate), digits.Count(hits), digits.Count(max(selects, 0))),
		fmt.Sprintf("Qcache_lowmem_prunes = %s of %s stored", digits.Count(prunes), digits.Count(inserts)), "sessions that run now: " + digits.Count(running),
		fmt.Sprintf("query_cache_size = %s, of which %s are free", digits.Bytes(size), digits.Bytes(s.status("qcache_free_memory")))}}
	waited := s.status("qcache_lock_waits")
	if waited > 0 {
		f.Evidence = append(f.Evidence, "sessions that wait for it now: "+digits.Count(waited))
	}
	few := hits+selects < 1000
	switch {
	case waited >= 2, running >= 16 && rate < 0.9, !few && rate < 0.3:
		f.Severity, f.What, f.Why = fleet.SeverityWarning, "the query cache costs more than it gains", "each SELECT, and each write, waits for the one lock of the cache; most look in vain"
		f.Cost.Risk, f.Effect = "sessions wait for one lock", "at once; query_cache_size = 0 gives the memory back"
		change(&f, s, "query_cache_type", s.text("query_cache_type"), "OFF", false)
		f.Object = "query_cache_type"
	case size > 128*mega, !few && prunes > 0.5*inserts && size > 64*mega:
		f.Severity, f.What, f.Why = fleet.SeverityInfo, "the query cache is large", "the larger it is, the longer a write holds its lock to throw away what it stored"
		f.Effect = "at once; what it has stored is thrown away"
		change(&f, s, "query_cache_size", s.text("query_cache_size"), "67108864", false)
	case few:
		return nil
	default:
		f.Severity, f.What, f.Why, f.Sure, f.Doubt = fleet.SeverityInfo, "the query cache is worth its cost as things are", "most SELECTs are answered from it, and few sessions run at a time", Likely, "with more sessions at a time it becomes the lock that all wait for"
		f.Advice = "keep it, and look again when there is more to do"
	}
	return []Finding{f}
}

// scheduler looks at events that do not run.
func scheduler(s *Server) (list []Finding) {
	enabled := 0
	for _, p := range s.Programs {
		switch {
		case p.Kind != "event":
		case p.Disabled == "":
			enabled++
		case strings.HasPrefix(p.Disabled, "SLAVESIDE") || strings.HasPrefix(p.Disabled, "REPLICA"):
			if len(s.Channels) > 0 {
				continue // as it should be
			}
			list = append(list, eventFinding(p, fleet.SeverityWarning, "it was made by replication, and this server is no replica any more: nobody switched it on when it became the source"))
		default:
			list = append(list, eventFinding(p, fleet.SeverityInfo, "it is disabled"))
		}
	}
	if v := s.text("event_scheduler"); enabled > 0 && v != "ON" && v != "1" && len(s.Channels) == 0 {
		f := Finding{Object: "event_scheduler", Severity: fleet.SeverityWarning, What: digits.Plural(enabled, "event is enabled, but the scheduler is ", "events are enabled, but the scheduler is ") + shown(v), Why: "no event runs: what they clean up or count is not done",
			Evidence: []string{"event_scheduler = " + shown(v)}, Effect: "at once; events that are due begin", Cost: Cost{Risk: "events do not run"}, Since: s.started()}
		change(&f, s, "event_scheduler", v, "ON", v == "DISABLED")
		list = append(list, f)
	}
	return list
}

func eventFinding(p Program, severity fleet.Severity, what string) Finding {
	name := tableName(p).String()
	f := Finding{Object: p.Schema + "." + p.Name, Severity: severity, What: "event " + p.Schema + "." + p.Name + " does not run: " + what, Why: "what it cleans up or counts is not done", Evidence: []string{"status " + p.Disabled, "definer " + p.Definer},
		Statement: "ALTER EVENT " + name + " ENABLE", Undo: "ALTER EVENT " + name + " DISABLE", Effect: "at once; it runs when it is due", Sure: Likely, Doubt: "it may be meant so: then drop it, so that nobody wonders"}
	return f
}
