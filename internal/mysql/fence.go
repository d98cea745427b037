package mysql

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// This file has the words by which a server takes no writes any more, and by which it does again.

// Values of read_only in MariaDB since 12.1 that say more than ON. Source: MariaDB documentation, "read_only".
const readOnlyForAll = "NO_LOCK_NO_ADMIN"

// CloseWrites are statements that keep everybody from writing whom one can, of which the first that the server knows is enough: an older one answers to the others with
// errno.WrongValue or errno.UnknownVariable. Each waits until what is being written is over, and keeps new writes waiting meanwhile. Sources: MySQL manual, "super_read_only" (it sets read_only too);
// MariaDB documentation, "read_only".
func (s Server) CloseWrites() []string {
	switch {
	case s.AtLeast(fleet.Never, 120000):
		return []string{"SET GLOBAL /* risso: take no writes */ read_only = " + readOnlyForAll, "SET GLOBAL /* risso: take no writes */ read_only = ON"}
	case s.MariaDB() || !s.HasSuperReadOnly():
		return []string{"SET GLOBAL /* risso: take no writes */ read_only = ON"}
	}
	return []string{"SET GLOBAL /* risso: take no writes */ super_read_only = ON"}
}

// OpenWrites are statements that give read_only and super_read_only values that they had; no other server can have them. OFF is set at once.
func (s Server) OpenWrites(readOnly, super string) []string {
	list := []string{"SET GLOBAL /* risso: as it was */ read_only = " + SettingText(readOnly)}
	if s.HasSuperReadOnly() {
		list = append(list, "SET GLOBAL /* risso: as it was */ super_read_only = "+SettingText(super)) // ON sets read_only too, OFF leaves it
	}
	return list
}

// HasSuperReadOnly reports whether super_read_only keeps administrators from writing, too. Source: MySQL manual 5.7, "super_read_only".
func (s Server) HasSuperReadOnly() bool { return s.AtLeast(50708, fleet.Never) }

// ClosedToAll reports whether read_only and super_read_only, with these values, keep every account from writing. super_read_only alone proves nothing: it reads ON already while
// the SET that sets both waits for what is being written, and is OFF again if that statement is ended. Source: MySQL, sql/sys_vars.cc, fix_super_read_only; seen on 8.0 and 9.7.
func (s Server) ClosedToAll(readOnly, super string) bool {
	return s.HasSuperReadOnly() && isOn(readOnly) && isOn(super) || readOnly == readOnlyForAll
}

// Closed reports whether they keep ordinary accounts from writing: where super_read_only is in force, read_only is.
func (s Server) Closed(readOnly string) bool { return isOn(readOnly) }

// isOn reads a variable that has more values than two on some servers.
func isOn(value string) bool { return value != "" && value != "OFF" && value != "0" }

// CanBeClosedToAll reports whether the server has a setting that keeps every account from writing.
func (s Server) CanBeClosedToAll() bool {
	return s.HasSuperReadOnly() || s.AtLeast(fleet.Never, 120100)
}

// StartSettings are the settings by which a server takes no writes when it is started, each as name and value.
func (s Server) StartSettings() [][2]string {
	list := [][2]string{{"read_only", "ON"}}
	if s.HasSuperReadOnly() {
		list = append(list, [2]string{"super_read_only", "ON"})
	}
	return list
}

// HasOfflineMode reports whether offline_mode ends the sessions of ordinary accounts and refuses new ones, those of replicas among them. Source: MySQL manual, "offline_mode".
func (s Server) HasOfflineMode() bool { return s.AtLeast(50705, fleet.Never) }

// AwaitsReplica reports whether a session's state says that its commit waits for a semi-synchronous replica. One that is killed then commits here: at once on MariaDB, on MySQL
// when that wait ends, without its client (seen on MySQL 9.7 and MariaDB 10.11).
func AwaitsReplica(state string) bool { return strings.Contains(state, "semi-sync ACK") }

// AwaitsLock reports whether a session's state says that it waits for a lock of the whole server, as a statement does that makes it read-only.
func AwaitsLock(state string) bool {
	return state == "Waiting for global read lock" || state == "Waiting for commit lock" || state == "Waiting for backup lock"
}

// Bits of "access" in mysql.global_priv. Source: sql/privilege.h of MariaDB, whose numbers stay.
const (
	superBit         = 1 << 15
	readOnlyAdminBit = 1 << 33
)

// fencePrivileges are what fencing needs; PERSIST_RO_VARIABLES_ADMIN is for SET PERSIST_ONLY. On MySQL those of an account that has SYSTEM_USER are ended by such a one only. Sources: MySQL manual, "Privileges Provided by MySQL"; MariaDB's GRANT,
// "Global Privileges".
func (s Server) fencePrivileges() []string {
	list := []string{"PROCESS", s.ReplicaPrivilege()}
	switch {
	case s.AtLeast(fleet.Never, 100502): // SUPER: event_scheduler
		return append(list, "CONNECTION ADMIN", "READ_ONLY ADMIN", "REPLICATION MASTER ADMIN", "RELOAD", "SUPER")
	case s.MariaDB():
		return append(list, "SUPER", "RELOAD")
	case s.atLeast(80016):
		return append(list, "CONNECTION_ADMIN", "SYSTEM_VARIABLES_ADMIN", "PERSIST_RO_VARIABLES_ADMIN", "SYSTEM_USER")
	case s.atLeast(80001):
		return append(list, "CONNECTION_ADMIN", "SYSTEM_VARIABLES_ADMIN", "PERSIST_RO_VARIABLES_ADMIN")
	}
	return append(list, "SUPER")
}

// Writers are the accounts that write though read_only is ON, sorted, those among them that do so by a role. An account that may not read the schema mysql gets an error of
// ClassPrivilege.
func Writers(ctx context.Context, c *Conn) ([]string, error) {
	if c.Server.AtLeast(fleet.Never, 100502) {
		return writersByBits(ctx, c)
	}
	var out []string
	rows, err := c.Maps(ctx, "SELECT /* risso: who writes though it is read-only? */ User AS u, Host AS h FROM mysql.user WHERE Super_priv = 'Y' ORDER BY User, Host")
	for _, row := range rows {
		out = append(out, row["u"]+"@"+row["h"])
	}
	return out, err
}

// writersByBits reads them where privileges are the bits of a number, and roles have roles.
func writersByBits(ctx context.Context, c *Conn) ([]string, error) {
	rows, err := c.Maps(ctx, "SELECT /* risso: who writes though it is read-only? */ User AS u, Host AS h, Priv AS p FROM mysql.global_priv")
	if err != nil {
		return nil, err
	}
	given, err := c.Maps(ctx, "SELECT /* risso: and by which role? */ User AS u, Host AS h, Role AS r FROM mysql.roles_mapping")
	if err != nil {
		return nil, err
	}
	passes, accounts := map[string]bool{}, []string{}
	for _, row := range rows {
		is, locked, role, err := privileged(row["p"])
		if err != nil {
			return nil, fmt.Errorf("read the privileges of %s@%s: %w", row["u"], row["h"], err)
		}
		name := grantee(row["u"], row["h"])
		passes[name] = is
		if !role && !locked {
			accounts = append(accounts, name)
		}
	}
	for changed := true; changed; { // what a role has, those have who have the role
		changed = false
		for _, row := range given {
			if name := grantee(row["u"], row["h"]); passes[row["r"]] && !passes[name] {
				passes[name], changed = true, true
			}
		}
	}
	out := slices.DeleteFunc(accounts, func(name string) bool { return !passes[name] && !passes[everybody] })
	slices.Sort(out)
	return out, nil
}

// everybody is the role that all have.
const everybody = "PUBLIC"

func grantee(user, host string) string {
	if host == "" { // a role
		return user
	}
	return user + "@" + host
}

// privileged reads a value of mysql.global_priv: whether read_only does not hold for who has it, and whether that is a locked account or a role.
func privileged(priv string) (is, locked, role bool, err error) {
	var p struct {
		Access  uint64 `json:"access"`
		Version int    `json:"version_id"` // of the server that wrote it
		Locked  bool   `json:"account_locked"`
		Role    bool   `json:"is_role"`
	}
	err = json.Unmarshal([]byte(priv), &p)
	const parted = 101100 // from here on SUPER is not enough; who had it before keeps both
	return p.Access&readOnlyAdminBit != 0 || p.Access&superBit != 0 && p.Version < parted, p.Locked, p.Role, err
}

// Start is with which value of a variable a server would be started next.
type Start struct {
	Value string
	From  string // where that stands, in words
	Known bool   // the server tells
}

// StartOf learns that of a variable with the value it has now. What was set since the server was started hides what stands in its option files: then it is not known. Sources: MySQL
// manual, "The Performance Schema variables_info Table" and "Persisted System Variables" (these are read last); MariaDB documentation, "Information Schema SYSTEM_VARIABLES Table".
func StartOf(ctx context.Context, c *Conn, name, value string) (Start, error) {
	kept, is, err := KeptSetting(ctx, c, name)
	if err != nil || is {
		return Start{kept, "what the server keeps itself (SET PERSIST)", is}, err
	}
	origin, path, err := originOf(ctx, c, name)
	switch {
	case err != nil || origin == "" || origin == setSince:
		return Start{}, err
	case origin == byDefault:
		return Start{value, "nothing says otherwise", true}, nil
	case path == "":
		path = "the command line"
	}
	return Start{value, path, true}, nil
}

// SinceStart reports whether a variable has the value with which the server was started, by a file or its command line; false also if the server does not tell.
func SinceStart(ctx context.Context, c *Conn, name string) (bool, error) {
	origin, _, err := originOf(ctx, c, name)
	return err == nil && origin != "" && origin != setSince && origin != byDefault, err
}

// TellsOrigin reports whether the server tells where the value of a variable comes from, as SinceStart asks: MySQL 5.7 does not.
func (s Server) TellsOrigin() bool { return s.KeepsSettings() || s.AtLeast(fleet.Never, 100500) }

// UpFor is how long the server runs, in whole seconds.
func UpFor(ctx context.Context, c *Conn) (time.Duration, error) {
	rows, err := c.Maps(ctx, "SHOW /* risso: since when does it run? */ GLOBAL STATUS LIKE 'Uptime'")
	if err != nil || len(rows) != 1 {
		return 0, err
	}
	seconds, err := strconv.Atoi(rows[0]["Value"])
	return time.Duration(seconds) * time.Second, err
}

// What originOf says.
const (
	setSince  = "set"
	byDefault = "default"
)

// originOf is where the value of a variable comes from, and the file that has it; "" if the server does not tell.
func originOf(ctx context.Context, c *Conn, name string) (origin, path string, err error) {
	query := ""
	switch {
	case c.Server.KeepsSettings():
		query = "SELECT /* risso: where does it come from? */ VARIABLE_SOURCE AS o, VARIABLE_PATH AS p FROM performance_schema.variables_info WHERE VARIABLE_NAME = "
	case c.Server.AtLeast(fleet.Never, 100500):
		query = "SELECT /* risso: where does it come from? */ GLOBAL_VALUE_ORIGIN AS o, GLOBAL_VALUE_PATH AS p FROM information_schema.SYSTEM_VARIABLES WHERE VARIABLE_NAME = "
	default:
		return "", "", nil
	}
	rows, err := c.Maps(ctx, query+Literal(name))
	if err != nil || len(rows) == 0 {
		return "", "", err
	}
	switch origin := rows[0]["o"]; origin {
	case "DYNAMIC", "SQL":
		return setSince, "", nil
	case "COMPILED", "COMPILE-TIME":
		return byDefault, "", nil
	default:
		return origin, rows[0]["p"], nil
	}
}

// TailLines are lines of an option file with which a server that crashed as a primary throws away, when it is started, what it had written to its binary log and no replica acknowledged; none where
// it cannot do that. Source: MariaDB documentation, "Semisynchronous Replication", "init-rpl-role" (10.6.19, 10.11.9 and later take it together with
// rpl_semi_sync_slave_enabled).
func (s Server) TailLines() []string {
	if !s.AtLeast(fleet.Never, 100600) {
		return nil
	}
	return []string{"init_rpl_role = SLAVE", "rpl_semi_sync_slave_enabled = ON"}
}
