package advise

import (
	"fmt"
	"math"
	"strconv"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
)

func dirtyEvidence(s *Server) string {
	return fmt.Sprintf("%s of %s pages wait to be written; statements waited for a free page %s", digits.Count(s.status("innodb_buffer_pool_pages_dirty")), digits.Count(s.status("innodb_buffer_pool_pages_total")), digits.Plural(int64(s.status("innodb_buffer_pool_wait_free")), "time", "times"))
}

// connectionRules are about who cannot connect, or takes long to.
func connectionRules() []settings {
	return []settings{
		{Check{"conn.limits", "limits of connections that keep people out, or let too many in", "pt-variable-advisor: max_connect_errors, connect_timeout, max_connections"}, []rule{
			{names: []string{"max_connect_errors"}, bad: below(1000), if_: func(s *Server) bool { return !s.on("skip_name_resolve") && s.text("host_cache_size") != "0" }, want: "1000000", severity: fleet.SeverityInfo,
				what: "after so many connections that were cut, a host is kept out", why: "a network fault, or a monitor that only knocks, locks out a machine until somebody runs FLUSH HOSTS", risk: "clients cannot connect"},
			{names: []string{"connect_timeout"}, bad: above(30), want: "10", severity: fleet.SeverityInfo, what: "somebody who does not log in keeps a connection for so many seconds", why: "max_connections of them keep everybody out"},
			{names: []string{"max_connections"}, bad: above(1000), if_: func(s *Server) bool {
				m, _ := s.number("max_connections")
				return s.counts("max_used_connections") && s.status("max_used_connections") < m/4 && s.uptime().Hours() > 24
			}, severity: fleet.SeverityInfo,
				what: "far more sessions are allowed than there ever were", why: "if a program goes wild, the server runs out of memory instead of refusing", more: func(s *Server) []string {
					return []string{"most at a time: " + digits.Count(s.status("max_used_connections"))}
				}},
			{names: []string{"thread_cache_size"}, bad: func(string) bool { return true }, if_: func(s *Server) bool {
				made, all := s.status("threads_created"), s.status("connections")
				return s.text("thread_handling") != "pool-of-threads" && all > 1000 && made/all > 0.1
			}, severity: fleet.SeverityInfo, what: "threads are made anew for many connections", why: "each takes a moment longer",
				more: func(s *Server) []string {
					return []string{digits.Percent(s.status("threads_created")/s.status("connections")) + " of connections since the server was started"}
				}, advice: "raise thread_cache_size, or let programs keep their connections"},
			{names: []string{"skip_name_resolve"}, bad: is("OFF"), if_: listens, want: "ON", start: true, severity: fleet.SeverityInfo, what: "the server asks the DNS for the name of each address that connects", why: "when the DNS is slow, so are logins", doubt: "accounts whose host is a name then cannot log in"},
			{names: []string{"back_log"}, bad: below(50), want: "128", start: true, severity: fleet.SeverityInfo, what: "few connections may wait to be accepted", why: "in a burst others are refused"},
		}},
	}
}

// saturation looks at how many of max_connections were ever taken.
func saturation(s *Server) []Finding {
	most, ok := s.number("max_connections")
	used, refused := s.status("max_used_connections"), s.status("connection_errors_max_connections")
	if !ok || most == 0 || used/most < 0.85 && refused == 0 {
		return nil
	}
	f := Finding{Object: "max_connections", Severity: fleet.SeverityWarning, Since: s.started(), What: fmt.Sprintf("%s of %s connections were taken at a time", digits.Count(used), digits.Count(most)),
		Why:      "at the limit nobody else can connect",
		Evidence: []string{"Max_used_connections = " + digits.Count(used), "max_connections = " + digits.Count(most), "now: " + digits.Count(s.status("threads_connected"))},
		Advice:   "first look at what opened them: programs without a pool, or one whose pool is too large", Effect: "at once; each session takes memory when it works", Cost: Cost{Risk: "clients cannot connect"}}
	if refused > 0 {
		f.Severity = fleet.SeverityCritical
		f.What += "; " + digits.Plural(int64(refused), "attempt was", "attempts were") + " refused"
		f.Evidence = append(f.Evidence, "Connection_errors_max_connections = "+digits.Count(refused))
	}
	change(&f, s, "max_connections", s.text("max_connections"), strconv.Itoa(int(math.Ceil(most*1.5/10))*10), false)
	return []Finding{f}
}

// memoryRules are about memory of each session.
func memoryRules() settings {
	const many = "each session may take so much, some statements several times"
	const why = "many sessions at a time run the machine out of memory, and clearing so much takes time that a smaller one saves"
	large := func(limit float64, want string, names ...string) rule {
		return rule{names: names, bad: above(limit), want: want, sessions: true, severity: fleet.SeverityInfo, what: many, why: why, doubt: "single reports may need it: they can set it for themselves", more: bytesOf(names[0])}
	}
	return settings{Check{"mem.session_buffers", "buffers of each session that are too large for all of them", "pt-variable-advisor: sort_buffer_size, read_buffer_size, read_rnd_buffer_size"}, []rule{
		large(4*mega, "262144", "sort_buffer_size"), large(8*mega, "131072", "read_buffer_size"), large(4*mega, "262144", "read_rnd_buffer_size"), large(8*mega, "262144", "join_buffer_size"),
		{names: []string{"innodb_log_buffer_size"}, bad: above(256 * mega), severity: fleet.SeverityInfo, what: "the buffer of the redo log is very large", why: "it takes memory that pages could have", more: bytesOf("innodb_log_buffer_size")},
		{names: []string{"tmp_table_size"}, bad: func(string) bool { return true }, if_: func(s *Server) bool {
			t, _ := s.number("tmp_table_size")
			h, ok := s.number("max_heap_table_size")
			return ok && t > h && s.text("internal_tmp_mem_storage_engine") != "TempTable"
		}, severity: fleet.SeverityInfo, what: "it is larger than max_heap_table_size, and the smaller of both counts", why: "temporary tables go to disk earlier than it says", more: func(s *Server) []string { return []string{"max_heap_table_size = " + s.text("max_heap_table_size")} }},
	}}
}

// overcommit adds up what the server may take.
func overcommit(s *Server) []Finding {
	sum := func(names ...string) (total float64) {
		for _, n := range names {
			v, _ := s.number(n)
			total += v
		}
		return total
	}
	global := sum("innodb_buffer_pool_size", "innodb_log_buffer_size", "key_buffer_size", "aria_pagecache_buffer_size")
	if s.text("query_cache_type") != "OFF" {
		global += sum("query_cache_size")
	}
	tmp := sum("tmp_table_size")
	if h := sum("max_heap_table_size"); h > 0 {
		tmp = min(tmp, h)
	}
	session := sum("read_buffer_size", "read_rnd_buffer_size", "sort_buffer_size", "join_buffer_size", "thread_stack", "binlog_cache_size", "net_buffer_length") + tmp
	used := s.status("max_used_connections")
	all := global + used*session
	if s.Memory <= 0 || all < 0.9*s.Memory {
		return nil
	}
	f := Finding{Object: "memory", Severity: fleet.SeverityWarning, Since: s.started(), What: fmt.Sprintf("the server may take %s of the %s that there are", digits.Bytes(all), digits.Bytes(s.Memory)),
		Why:      "when memory runs out, the machine swaps, or the kernel ends the server",
		Evidence: []string{digits.Bytes(global) + " for all", fmt.Sprintf("%s for each of %s sessions, the most that there were at a time", digits.Bytes(session), digits.Count(used)), "the buffer pool alone: " + digits.Bytes(sum("innodb_buffer_pool_size"))},
		Cost:     Cost{Bytes: all - s.Memory, Risk: "the server is ended for lack of memory"}, Sure: Likely, Doubt: "not all sessions take all of theirs at a time; performance_schema and what the allocator keeps come on top"}
	if global > 0.95*s.Memory {
		f.Severity, f.Sure, f.Doubt = fleet.SeverityCritical, Certain, ""
	}
	pool := math.Floor(0.7*s.Memory/(128*mega)) * 128 * mega
	if pool > 0 && pool < sum("innodb_buffer_pool_size") {
		change(&f, s, "innodb_buffer_pool_size", s.text("innodb_buffer_pool_size"), integer(pool), false)
		f.Effect = "within seconds to minutes, while statements go on and wait for moments"
	} else {
		f.Advice = "make tmp_table_size and the buffers of sessions smaller, or allow fewer sessions"
	}
	return []Finding{f}
}

// starved looks at whether the buffer pool holds what is read.
func starved(s *Server) []Finding {
	size, ok := s.number("innodb_buffer_pool_size")
	waits, reads, asked := s.status("innodb_buffer_pool_wait_free"), s.status("innodb_buffer_pool_reads"), s.status("innodb_buffer_pool_read_requests")
	data := s.Tables.Data + s.Tables.Index
	missing := asked > 1e6 && reads/asked > 0.01
	small := s.Whole && size <= 128*mega && data > 4*size
	if !ok || waits == 0 && !missing && !small {
		return nil
	}
	f := Finding{Object: "innodb_buffer_pool_size", Severity: fleet.SeverityWarning, Since: s.started(), What: "the buffer pool of " + digits.Bytes(size) + " is too small for what is read",
		Why:      "a page that is not in it is read from disk, which takes a thousand times as long",
		Evidence: []string{fmt.Sprintf("%s of %s reads of pages went to disk", digits.Count(reads), digits.Count(asked)), "waits for a free page: " + digits.Count(waits)},
		Effect:   "within seconds, while statements go on and wait for moments", Cost: Cost{Risk: "reads from disk"}}
	if data > 0 {
		f.Evidence = append(f.Evidence, digits.Bytes(data)+" of tables and indexes")
	}
	if !missing && waits == 0 {
		f.What = "the buffer pool has " + digits.Bytes(size) + ", which nobody has chosen, for " + digits.Bytes(data) + " of data"
	}
	want := min(max(2*size, math.Ceil(1.1*data/giga)*giga), 8*size)
	if s.Memory == 0 {
		f.Sure, f.Doubt = Likely, "how much memory the machine has is not known from here"
	} else if want = min(want, math.Floor(0.7*s.Memory/(128*mega))*128*mega); want <= size {
		f.Advice = "the machine has no more memory: give it some, or read less"
		return []Finding{f}
	}
	change(&f, s, "innodb_buffer_pool_size", s.text("innodb_buffer_pool_size"), integer(want), false)
	return []Finding{f}
}

// redoSmall looks at whether the redo log holds less than a quarter of an hour of writes, on average since the server was started.
func redoSmall(s *Server) []Finding {
	name, size := s.RedoLimit(s.text)
	hours, written := s.uptime().Hours(), s.status("innodb_os_log_written")
	if size == 0 || hours < 1 || written < 4*size {
		return waits(s)
	}
	perHour := written / hours
	if perHour < 4*size {
		return waits(s)
	}
	want := math.Ceil(perHour/giga) * giga
	want = min(want, 64*giga)
	f := Finding{Object: name, Severity: fleet.SeverityWarning, Since: s.started(), What: fmt.Sprintf("the redo log of %s is written over every %s", digits.Bytes(size), digits.Seconds(3600*size/perHour)),
		Why:      "pages have to be written before they are complete, and when it is nearly full all writes wait",
		Evidence: []string{digits.Bytes(perHour) + " an hour on average since the server was started", name + " = " + s.text(name)}, Cost: Cost{Risk: "writes stall"}}
	change(&f, s, name, s.text(name), integer(want), !s.RedoGrows())
	if f.Statement != "" {
		f.Effect = "within seconds, while statements go on; it takes the disk"
	}
	return append([]Finding{f}, waits(s)...)
}

// waits looks at whether statements waited for room in the buffer of the redo log.
func waits(s *Server) []Finding {
	n := s.status("innodb_log_waits")
	size, ok := s.number("innodb_log_buffer_size")
	if n < 1 || !ok || size >= 64*mega {
		return nil
	}
	f := Finding{Object: "innodb_log_buffer_size", Severity: fleet.SeverityInfo, Since: s.started(), What: "statements waited for room in the buffer of the redo log " + digits.Plural(int64(n), "time", "times"),
		Why: "large transactions, or large values, do not fit into it", Evidence: []string{"Innodb_log_waits = " + digits.Count(n), "innodb_log_buffer_size = " + s.text("innodb_log_buffer_size")}, Effect: "at once"}
	change(&f, s, "innodb_log_buffer_size", s.text("innodb_log_buffer_size"), "67108864", !s.GrowsLogBuffer())
	return []Finding{f}
}

// diskTables looks at how many temporary tables of statements went to disk.
func diskTables(s *Server) []Finding {
	disk, all := s.status("created_tmp_disk_tables"), s.status("created_tmp_tables")
	if all < 10000 || disk/all < 0.25 || s.uptime().Seconds() > 0 && disk/s.uptime().Seconds() < 0.1 {
		return nil
	}
	f := Finding{Object: "tmp_table_size", Severity: fleet.SeverityInfo, Since: s.started(), What: digits.Percent(disk/all) + " of temporary tables of statements were made on disk", Why: "sorting and grouping there takes many times as long",
		Evidence: []string{"Created_tmp_disk_tables = " + digits.Count(disk), "Created_tmp_tables = " + digits.Count(all), "tmp_table_size = " + s.text("tmp_table_size"), "max_heap_table_size = " + s.text("max_heap_table_size")},
		Advice:   "first look at the statements: risso digest shows those that need them; an index that gives the order saves most", Sure: Likely, Doubt: "TEXT and BLOB columns go to disk whatever the size, before MySQL 8.0.13 and in MariaDB"}
	return []Finding{f}
}

// tableCache looks at whether tables are closed to make room for others.
func tableCache(s *Server) (list []Finding) {
	size, _ := s.number("table_open_cache")
	open, hits, misses, over := s.status("open_tables"), s.status("table_open_cache_hits"), s.status("table_open_cache_misses"), s.status("table_open_cache_overflows")
	if size > 0 && open >= 0.95*size && over > 1000 && misses/(hits+misses+1) > 0.05 {
		f := Finding{Object: "table_open_cache", Severity: fleet.SeverityInfo, Since: s.started(), What: digits.Percent(misses/(hits+misses)) + " of tables that were needed had to be opened", Why: "it takes locks that others wait for, and reads definitions from disk",
			Evidence: []string{"Table_open_cache_misses = " + digits.Count(misses), "Table_open_cache_overflows = " + digits.Count(over), "table_open_cache = " + s.text("table_open_cache")}, Effect: "at once; each open table takes some kilobytes, and a file"}
		change(&f, s, "table_open_cache", s.text("table_open_cache"), integer(2*size), false)
		list = append(list, f)
	}
	limit, _ := s.number("open_files_limit")
	if files := s.status("open_files"); limit > 0 && files > 0.85*limit {
		f := Finding{Object: "open_files_limit", Severity: fleet.SeverityWarning, Since: s.started(), What: fmt.Sprintf("%s of %s files are open", digits.Count(files), digits.Count(limit)), Why: "at the limit tables cannot be opened, and connections are refused",
			Evidence: []string{"Open_files = " + digits.Count(files)}, Cost: Cost{Risk: "statements fail"}}
		change(&f, s, "open_files_limit", s.text("open_files_limit"), integer(2*limit), true)
		list = append(list, f)
	}
	return list
}

// keyCache looks at whether indexes of MyISAM tables are in memory.
func keyCache(s *Server) []Finding {
	reads, asked := s.status("key_reads"), s.status("key_read_requests")
	size, _ := s.number("key_buffer_size")
	if s.Tables.Engines["MYISAM"] == 0 || asked < 1e6 || reads/asked < 0.01 || s.status("key_blocks_unused") > s.status("key_blocks_used") {
		return nil
	}
	f := Finding{Object: "key_buffer_size", Severity: fleet.SeverityInfo, Since: s.started(), What: digits.Percent(reads/asked) + " of reads of MyISAM indexes went to disk", Why: "they are not in memory",
		Evidence: []string{"Key_reads = " + digits.Count(reads), "Key_read_requests = " + digits.Count(asked), "key_buffer_size = " + s.text("key_buffer_size")}, Effect: "at once; MyISAM tables wait for a moment"}
	change(&f, s, "key_buffer_size", s.text("key_buffer_size"), integer(2*size), false)
	return []Finding{f}
}
