package mysql

// SetGTIDs are the statements that make a server say of itself that it has all transactions of a set: after a restore it can
// then follow the server that the backup is of. MySQL before 8.0 takes a set only where it has none of its own, so what it
// wrote is forgotten first. So it is on MariaDB, which with gtid_strict_mode refuses a position behind transactions of its own in the
// same domain (error 1947), and without it could follow, but not be followed any more. Sources: MySQL manual, "gtid_purged" and "RESET MASTER Statement"; MariaDB documentation,
// "gtid_slave_pos".
func (s Server) SetGTIDs(set string) []string {
	switch {
	case s.MariaDB():
		return []string{"RESET MASTER /* risso: position of a backup */", "SET GLOBAL /* risso: position of a backup */ gtid_slave_pos = " + Literal(set)}
	case s.atLeast(80400):
		return []string{"RESET BINARY LOGS AND GTIDS /* risso: position of a backup */", "SET GLOBAL gtid_purged = " + Literal(set)}
	default:
		return []string{"RESET MASTER /* risso: position of a backup */", "SET GLOBAL gtid_purged = " + Literal(set)}
	}
}
