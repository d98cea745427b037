package mysql

import (
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
	JobTopology Job = "topology"
	JobRestore  Job = "restore"
	JobBench    Job = "bench"
	JobAgent    Job = "agent"
	JobFailover Job = "failover" // group, switchover, failover, serve --failover auto
)

// Jobs are all of them, in the order in which help lists them.
func Jobs() []Job {
	return []Job{JobServe, JobDigest, JobExplain, JobTrace, JobBackup, JobPhysical, JobFollow, JobChecksum, JobMend, JobTopology, JobRestore, JobBench, JobAgent, JobFailover}
}

// privileges of an account on all of a schema, or of the server.
type privileges struct {
	schema string // "": all
	list   []string
}

// Privileges that are not like the others.
const (
	allPrivileges = "ALL PRIVILEGES" // it has all of them but the next
	grantOption   = "GRANT OPTION"   // goes at the end of a statement
)

// Grants are the statements that give the account (quoted, as QuotedAccount returns it) what the jobs need on this server, and no
// more: one for each object. schema is where bench works. Sources: "Privileges Provided by MySQL" in MySQL's manual, "GRANT" in
// MariaDB's Knowledge Base; a test runs every job but physical with only these.
func (s Server) Grants(account, schema string, jobs ...Job) []string {
	var out []string
	for _, p := range s.merged(schema, jobs) {
		out = append(out, p.statement(account))
	}
	return out
}

// Grant is the statement that gives the account privileges on everything.
func (s Server) Grant(list ...string) string {
	return privileges{"", list}.statement(s.QuotedAccount())
}

// GrantPerformanceSchema is the statement that lets the account read performance_schema.
func (s Server) GrantPerformanceSchema() string {
	return privileges{"performance_schema", []string{"SELECT"}}.statement(s.QuotedAccount())
}

// statement grants them to an account.
func (p privileges) statement(account string) string {
	on := "*.*"
	switch p.schema {
	case "":
	case "performance_schema": // without quotes, as in the manual
		on = p.schema + ".*"
	default:
		on = QuoteGrantSchema(p.schema) + ".*"
	}
	if slices.Contains(p.list, allPrivileges) {
		return "GRANT ALL PRIVILEGES ON " + on + " TO " + account + " WITH GRANT OPTION"
	}
	return "GRANT " + strings.Join(p.list, ", ") + " ON " + on + " TO " + account
}

// merged is what the jobs need, each privilege once.
func (s Server) merged(schema string, jobs []Job) []privileges {
	var all []privileges
	for _, j := range jobs {
		for _, p := range s.needs(j, schema) {
			at := slices.IndexFunc(all, func(a privileges) bool { return a.schema == p.schema })
			if at < 0 {
				all, at = append(all, privileges{schema: p.schema}), len(all)
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
	everywhere := func(list ...string) privileges { return privileges{"", list} }
	performance := privileges{"performance_schema", []string{"SELECT"}}
	switch j {
	case JobServe:
		return []privileges{everywhere("PROCESS", s.ReplicaPrivilege()), performance}
	case JobDigest:
		return []privileges{performance}
	case JobExplain:
		return []privileges{everywhere("SELECT", "SHOW VIEW", "PROCESS"), performance}
	case JobTrace:
		return []privileges{everywhere("PROCESS"), {"performance_schema", []string{"SELECT", "UPDATE"}}}
	case JobBackup:
		list := []string{"SELECT", "SHOW VIEW", "TRIGGER", "EVENT", "PROCESS", "RELOAD", "LOCK TABLES", s.LogsPrivilege()}
		switch {
		case s.MariaDB() && s.Number >= 100502:
			list = append(list, s.ReplicaPrivilege())
		case s.atLeast(80000):
			list = append(list, "BACKUP_ADMIN")
		}
		return []privileges{everywhere(list...)} // an account that may SELECT everywhere sees routines, too
	case JobPhysical:
		return []privileges{everywhere(s.copyPrivileges(s.CopyTools()[0])...)}
	case JobFollow:
		return []privileges{everywhere("REPLICATION SLAVE", s.LogsPrivilege())}
	case JobTopology:
		return []privileges{everywhere("PROCESS", s.ReplicaPrivilege(), s.ListReplicasPrivilege(), s.LogsPrivilege()), performance}
	case JobChecksum:
		return []privileges{everywhere("SELECT", "SHOW VIEW", "PROCESS", s.ReplicaPrivilege(), s.ListReplicasPrivilege())}
	case JobMend:
		return []privileges{everywhere("SELECT", "SHOW VIEW", "PROCESS", s.ReplicaPrivilege(), s.ListReplicasPrivilege(), "INSERT", "DELETE", s.LogsPrivilege(), s.formatPrivilege())}
	case JobRestore:
		return []privileges{everywhere(allPrivileges)}
	case JobAgent:
		list := []privileges{everywhere(s.fencePrivileges()...)}
		if s.KeepsSettings() {
			list = append(list, performance)
		}
		if !s.CanBeClosedToAll() { // who can write though it is read-only
			list = append(list, privileges{"mysql", []string{"SELECT"}})
		}
		return list
	case JobFailover:
		return append(s.needs(JobAgent, schema), append(s.needs(JobTopology, schema),
			everywhere(s.takeoverPrivileges()...), privileges{"risso", []string{"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE"}})...)
	case JobBench:
		return []privileges{{schema, []string{"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "INDEX", "ALTER"}}, everywhere("PROCESS")}
	}
	return nil
}

// LogsPrivilege is what SHOW BINARY LOGS and SHOW MASTER STATUS need: https://mariadb.com/kb/en/grant/#binlog-monitor.
func (s Server) LogsPrivilege() string {
	if s.MariaDB() && s.Number >= 100502 {
		return "BINLOG MONITOR"
	}
	return "REPLICATION CLIENT"
}

// ListReplicasPrivilege is what SHOW REPLICAS needs.
func (s Server) ListReplicasPrivilege() string {
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

// canonicalPrivilege returns one name for those that MariaDB has two for: https://mariadb.com/kb/en/grant/#replica-monitor.
func canonicalPrivilege(p string) string {
	switch p {
	case "SLAVE MONITOR":
		return "REPLICA MONITOR"
	case "REPLICATION REPLICA":
		return "REPLICATION SLAVE"
	}
	return p
}

// allOf means ALL PRIVILEGES: an account with these everywhere has all that a restore needs.
var allOf = []string{"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "RELOAD", "PROCESS", "REFERENCES", "INDEX", "ALTER", "SUPER", "LOCK TABLES", "EXECUTE",
	"CREATE VIEW", "SHOW VIEW", "CREATE ROUTINE", "ALTER ROUTINE", "CREATE USER", "EVENT", "TRIGGER", grantOption}

// instead names what allows the same as a privilege, itself first. Sources: "SHOW REPLICA STATUS Statement" and "Restrictions on
// System Variables" in MySQL's manual, https://jira.mariadb.org/browse/MDEV-29668 for MariaDB.
func (s Server) instead(privilege string) []string {
	switch privilege {
	case "REPLICATION CLIENT":
		return []string{privilege, "SUPER"}
	case "REPLICA MONITOR", "BINLOG MONITOR", "BINLOG ADMIN":
		if s.Number < 110000 { // until then SUPER allowed what was parted from it, but REPLICATION MASTER ADMIN
			return []string{privilege, "SUPER"}
		}
	case "SESSION_VARIABLES_ADMIN":
		return []string{privilege, "SYSTEM_VARIABLES_ADMIN", "SUPER"}
	}
	return []string{privilege}
}

// Missing are the statements that give the account of the connection the privileges it is missing for the jobs; none if it has all.
func (s Server) Missing(r Rights, schema string, jobs ...Job) []string {
	var out []string
	for _, p := range s.merged(schema, jobs) {
		lacks := func(name string) bool { return !r.Have(p.schema, "", s.instead(name)...) }
		lack := slices.DeleteFunc(slices.Clone(p.list), func(name string) bool { return name == allPrivileges || !lacks(name) })
		if slices.Contains(p.list, allPrivileges) && slices.ContainsFunc(allOf, lacks) {
			lack = p.list
		}
		if len(lack) > 0 {
			out = append(out, privileges{p.schema, lack}.statement(s.QuotedAccount()))
		}
	}
	return out
}
