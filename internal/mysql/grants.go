package mysql

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"slices"
	"strings"
)

// Job is a kind of work for which Risso needs privileges.
type Job string

// The jobs, by the names of their commands.
const (
	JobServe    Job = "serve"
	JobDigest   Job = "digest"
	JobExplain  Job = "explain"
	JobTrace    Job = "trace"
	JobBackup   Job = "backup"
	JobPhysical Job = "physical" // backup --physical
	JobFollow   Job = "follow"   // binlog follow
	JobChecksum Job = "checksum"
	JobMend     Job = "mend" // checksum --mend
	JobRestore  Job = "restore"
	JobBench    Job = "bench"
)

// Jobs are all of them, in the order in which help lists them.
func Jobs() []Job {
	return []Job{JobServe, JobDigest, JobExplain, JobTrace, JobBackup, JobPhysical, JobFollow, JobChecksum, JobMend, JobRestore, JobBench}
}

// privileges of an account on an object: *.*, schema.*.
type privileges struct {
	on   string
	list []string
}

// Grants are the statements that give the account (quoted, as QuotedAccount gives it) what the jobs need on this server, and no
// more: one for each object. schema is where bench works. Sources: "Privileges Provided by MySQL" in MySQL's manual, "GRANT" in
// MariaDB's Knowledge Base; a test runs every job but physical with just these.
func (s Server) Grants(account, schema string, jobs ...Job) []string {
	var out []string
	for _, p := range s.merged(schema, jobs) {
		out = append(out, p.statement(account))
	}
	return out
}

// statement gives them to an account.
func (p privileges) statement(account string) string {
	if slices.Contains(p.list, "ALL PRIVILEGES") {
		return "GRANT ALL PRIVILEGES ON " + p.on + " TO " + account + " WITH GRANT OPTION"
	}
	return "GRANT " + strings.Join(p.list, ", ") + " ON " + p.on + " TO " + account
}

// merged is what the jobs need, each privilege once.
func (s Server) merged(schema string, jobs []Job) []privileges {
	var all []privileges
	for _, j := range jobs {
		for _, p := range s.needs(j, schema) {
			at := slices.IndexFunc(all, func(a privileges) bool { return a.on == p.on })
			if at < 0 {
				all, at = append(all, privileges{on: p.on}), len(all)
			}
			for _, name := range p.list {
				if !slices.Contains(all[at].list, name) {
					all[at].list = append(all[at].list, name)
				}
			}
		}
	}
	return all
}

func (s Server) needs(j Job, schema string) []privileges {
	everywhere := func(list ...string) privileges { return privileges{"*.*", list} }
	performance := privileges{"performance_schema.*", []string{"SELECT"}}
	switch j {
	case JobServe:
		return []privileges{everywhere("PROCESS", s.replicaPrivilege()), performance}
	case JobDigest:
		return []privileges{performance}
	case JobExplain:
		return []privileges{everywhere("SELECT", "SHOW VIEW", "PROCESS"), performance}
	case JobTrace:
		return []privileges{everywhere("PROCESS"), {"performance_schema.*", []string{"SELECT", "UPDATE"}}}
	case JobBackup:
		list := []string{"SELECT", "SHOW VIEW", "TRIGGER", "EVENT", "PROCESS", "RELOAD", "LOCK TABLES", s.logsPrivilege()}
		switch {
		case s.MariaDB() && s.Number >= 100502:
			list = append(list, s.replicaPrivilege())
		case s.atLeast(80000):
			list = append(list, "BACKUP_ADMIN")
		}
		return []privileges{everywhere(list...)} // who may SELECT everywhere sees routines, too
	case JobPhysical:
		return []privileges{everywhere(s.copyPrivileges(s.CopyTools()[0])...)}
	case JobFollow:
		return []privileges{everywhere("REPLICATION SLAVE", s.logsPrivilege())}
	case JobChecksum:
		return []privileges{everywhere("SELECT", "SHOW VIEW", "PROCESS", s.replicaPrivilege(), s.replicasPrivilege())}
	case JobMend:
		return []privileges{everywhere("SELECT", "SHOW VIEW", "PROCESS", s.replicaPrivilege(), s.replicasPrivilege(), "INSERT", "DELETE", s.logsPrivilege(), s.formatPrivilege())}
	case JobRestore:
		return []privileges{everywhere("ALL PRIVILEGES")}
	case JobBench:
		return []privileges{{scopeOf(schema), []string{"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "INDEX", "ALTER"}}, everywhere("PROCESS")}
	}
	return nil
}

// logsPrivilege is what SHOW BINARY LOGS and SHOW MASTER STATUS need: https://mariadb.com/kb/en/grant/#binlog-monitor.
func (s Server) logsPrivilege() string {
	if s.MariaDB() && s.Number >= 100502 {
		return "BINLOG MONITOR"
	}
	return "REPLICATION CLIENT"
}

// replicasPrivilege is what SHOW REPLICAS needs.
func (s Server) replicasPrivilege() string {
	if s.MariaDB() && s.Number >= 100500 {
		return "REPLICATION MASTER ADMIN"
	}
	return "REPLICATION SLAVE"
}

// formatPrivilege is what SET SESSION binlog_format needs.
func (s Server) formatPrivilege() string {
	switch {
	case s.MariaDB() && s.Number >= 100500:
		return "BINLOG ADMIN"
	case s.atLeast(80014):
		return "SESSION_VARIABLES_ADMIN"
	}
	return "SUPER"
}

// Held are the privileges that an account has by itself, on everything and on schemas.
type Held struct {
	on    map[string]map[string]bool // "*.*", "`schema`.*" → privileges
	Roles bool                       // it has roles, too, whose privileges are not in here
}

// ReadHeld asks what the account of a connection may do. information_schema shows everybody their own privileges.
func ReadHeld(ctx context.Context, c *Conn) (Held, error) {
	h := Held{on: map[string]map[string]bool{}}
	at := strings.LastIndexByte(c.Server.Account, '@')
	grantee := "'" + c.Server.Account[:max(0, at)] + "'@'" + c.Server.Account[at+1:] + "'" // not escaped there
	err := c.Query(ctx, `SELECT /* risso: what may this account do? */ GRANTEE, NULL, PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES
UNION ALL SELECT GRANTEE, TABLE_SCHEMA, PRIVILEGE_TYPE FROM information_schema.SCHEMA_PRIVILEGES`, func(row []sqldriver.Value) error {
		if text(row[0]) != grantee {
			return nil
		}
		on := "*.*"
		if row[1] != nil {
			on = scopeOf(text(row[1]))
		}
		if h.on[on] == nil {
			h.on[on] = map[string]bool{}
		}
		h.on[on][canonicalPrivilege(text(row[2]))] = true
		return nil
	})
	if err != nil {
		return h, fmt.Errorf("ask what the account may do: %w", err)
	}
	if !c.Server.MariaDB() && !c.Server.atLeast(80000) {
		return h, nil // no roles before 8.0
	}
	err = c.Query(ctx, `SELECT /* risso: has the account a role? */ CURRENT_ROLE()`, func(row []sqldriver.Value) error {
		role := text(row[0])
		h.Roles = role != "" && role != "NONE"
		return nil
	})
	if err != nil {
		return h, fmt.Errorf("ask for the account's role: %w", err)
	}
	return h, nil
}

// scopeOf is the object of a GRANT on a schema; performance_schema stands without quotes, as in the manual.
func scopeOf(schema string) string {
	if schema == "performance_schema" {
		return schema + ".*"
	}
	return Quote(schema) + ".*"
}

// canonicalPrivilege gives one name to those that MariaDB has two for: https://mariadb.com/kb/en/grant/#replica-monitor.
func canonicalPrivilege(p string) string {
	switch p {
	case "SLAVE MONITOR":
		return "REPLICA MONITOR"
	case "REPLICATION REPLICA":
		return "REPLICATION SLAVE"
	}
	return p
}

// Missing are the statements that give the account of the connection what it lacks for the jobs; none when it may all that.
func (s Server) Missing(h Held, schema string, jobs ...Job) []string {
	var out []string
	for _, p := range s.merged(schema, jobs) {
		var lack []string
		for _, name := range p.list {
			if !h.on["*.*"][name] && !h.on[p.on][name] && name != "ALL PRIVILEGES" {
				lack = append(lack, name)
			}
		}
		if slices.Contains(p.list, "ALL PRIVILEGES") && !h.on["*.*"]["CREATE USER"] {
			lack = p.list
		}
		if len(lack) > 0 {
			out = append(out, privileges{p.on, lack}.statement(s.QuotedAccount()))
		}
	}
	return out
}
