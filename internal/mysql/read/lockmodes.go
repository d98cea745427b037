package read

import "slices"

// tableLocks are the modes of metadata locks on tables and programs, each with those that do not go with it, and those that, when
// they are wanted too, come before it. Source: the tables in sql/mdl.cc of both servers (MDL_object_lock).
var tableLocks = map[string]struct{ held, queued []string }{
	"SHARED":                {[]string{"EXCLUSIVE"}, []string{"EXCLUSIVE"}},
	"SHARED_HIGH_PRIO":      {[]string{"EXCLUSIVE"}, nil},
	"SHARED_READ":           {[]string{"SHARED_NO_READ_WRITE", "EXCLUSIVE"}, []string{"SHARED_NO_READ_WRITE", "EXCLUSIVE"}},
	"SHARED_WRITE":          {[]string{"SHARED_READ_ONLY", "SHARED_NO_WRITE", "SHARED_NO_READ_WRITE", "EXCLUSIVE"}, []string{"SHARED_NO_WRITE", "SHARED_NO_READ_WRITE", "EXCLUSIVE"}},
	"SHARED_WRITE_LOW_PRIO": {[]string{"SHARED_READ_ONLY", "SHARED_NO_WRITE", "SHARED_NO_READ_WRITE", "EXCLUSIVE"}, []string{"SHARED_READ_ONLY", "SHARED_NO_WRITE", "SHARED_NO_READ_WRITE", "EXCLUSIVE"}},
	"SHARED_UPGRADABLE":     {[]string{"SHARED_UPGRADABLE", "SHARED_NO_WRITE", "SHARED_NO_READ_WRITE", "EXCLUSIVE"}, []string{"EXCLUSIVE"}},
	"SHARED_READ_ONLY":      {[]string{"SHARED_WRITE", "SHARED_WRITE_LOW_PRIO", "SHARED_NO_READ_WRITE", "EXCLUSIVE"}, []string{"SHARED_WRITE", "SHARED_NO_READ_WRITE", "EXCLUSIVE"}},
	"SHARED_NO_WRITE":       {[]string{"SHARED_WRITE", "SHARED_WRITE_LOW_PRIO", "SHARED_UPGRADABLE", "SHARED_NO_WRITE", "SHARED_NO_READ_WRITE", "EXCLUSIVE"}, []string{"EXCLUSIVE"}},
	"SHARED_NO_READ_WRITE":  {[]string{"SHARED_READ", "SHARED_WRITE", "SHARED_WRITE_LOW_PRIO", "SHARED_UPGRADABLE", "SHARED_READ_ONLY", "SHARED_NO_WRITE", "SHARED_NO_READ_WRITE", "EXCLUSIVE"}, []string{"EXCLUSIVE"}},
	"EXCLUSIVE":             {[]string{"SHARED", "SHARED_HIGH_PRIO", "SHARED_READ", "SHARED_WRITE", "SHARED_WRITE_LOW_PRIO", "SHARED_UPGRADABLE", "SHARED_READ_ONLY", "SHARED_NO_WRITE", "SHARED_NO_READ_WRITE", "EXCLUSIVE"}, nil},
}

// scopedLocks are those of what holds other things: the server, a schema, commits (MDL_scoped_lock).
var scopedLocks = map[string]struct{ held, queued []string }{
	"INTENTION_EXCLUSIVE": {[]string{"SHARED", "EXCLUSIVE"}, []string{"SHARED", "EXCLUSIVE"}},
	"SHARED":              {[]string{"INTENTION_EXCLUSIVE", "EXCLUSIVE"}, []string{"EXCLUSIVE"}},
	"EXCLUSIVE":           {[]string{"INTENTION_EXCLUSIVE", "SHARED", "EXCLUSIVE"}, nil},
}

// backupLocks are those of MariaDB's backup locks, from 10.5 on (MDL_backup_lock in sql/mdl.cc): the stages of BACKUP STAGE, FLUSH
// TABLES WITH READ LOCK in its two steps, and what statements take. https://mariadb.com/kb/en/backup-stage/ says in words what
// each stage lets through.
var backupLocks = map[string]struct{ held, queued []string }{
	"BACKUP_START":       {backupStages, []string{"BACKUP_FLUSH", "BACKUP_WAIT_FLUSH", "BACKUP_WAIT_DDL", "BACKUP_WAIT_COMMIT"}},
	"BACKUP_FLUSH":       {[]string{"BACKUP_START"}, nil},
	"BACKUP_WAIT_FLUSH":  {[]string{"BACKUP_START", "BACKUP_DML"}, nil},
	"BACKUP_WAIT_DDL":    {[]string{"BACKUP_START", "BACKUP_DML", "BACKUP_DDL"}, nil},
	"BACKUP_WAIT_COMMIT": {[]string{"BACKUP_START", "BACKUP_DML", "BACKUP_SYS_DML", "BACKUP_DDL", "BACKUP_COMMIT"}, nil},
	"BACKUP_FTWRL1":      {[]string{"BACKUP_DML", "BACKUP_TRANS_DML", "BACKUP_SYS_DML", "BACKUP_DDL", "BACKUP_ALTER_COPY"}, nil},
	"BACKUP_FTWRL2":      {[]string{"BACKUP_DML", "BACKUP_TRANS_DML", "BACKUP_SYS_DML", "BACKUP_DDL", "BACKUP_ALTER_COPY", "BACKUP_COMMIT"}, nil},
	"BACKUP_DML":         both("BACKUP_FLUSH", "BACKUP_WAIT_FLUSH", "BACKUP_WAIT_DDL", "BACKUP_WAIT_COMMIT", "BACKUP_FTWRL1", "BACKUP_FTWRL2"),
	"BACKUP_TRANS_DML":   both("BACKUP_FTWRL1", "BACKUP_FTWRL2"),
	"BACKUP_SYS_DML":     both("BACKUP_WAIT_COMMIT", "BACKUP_FTWRL1", "BACKUP_FTWRL2"),
	"BACKUP_DDL":         both("BACKUP_WAIT_DDL", "BACKUP_WAIT_COMMIT", "BACKUP_FTWRL1", "BACKUP_FTWRL2", "BACKUP_BLOCK_DDL"),
	"BACKUP_BLOCK_DDL":   {[]string{"BACKUP_START", "BACKUP_DDL"}, []string{"BACKUP_START"}},
	"BACKUP_ALTER_COPY":  both("BACKUP_FTWRL1", "BACKUP_FTWRL2"),
	"BACKUP_COMMIT":      both("BACKUP_WAIT_COMMIT", "BACKUP_FTWRL2"),
}

// laterBackupLocks are what becomes of the locks with which a backup and FLUSH TABLES WITH READ LOCK begin. performance_schema shows
// them under their first name to the end, and so does not show the stage.
var laterBackupLocks = map[string][]string{"BACKUP_BLOCK_DDL": backupStages, "BACKUP_FTWRL1": {"BACKUP_FTWRL1", "BACKUP_FTWRL2"}}

var backupStages = []string{"BACKUP_START", "BACKUP_FLUSH", "BACKUP_WAIT_FLUSH", "BACKUP_WAIT_DDL", "BACKUP_WAIT_COMMIT"}

// both are modes that keep another waiting while they are held, and while they are requested.
func both(modes ...string) struct{ held, queued []string } {
	return struct{ held, queued []string }{modes, modes}
}

// backupBlocks reports whether a backup lock is one that holds statements up, and not that of a statement.
func backupBlocks(mode string) bool {
	return slices.Contains(backupStages, mode) || slices.Contains([]string{"BACKUP_FTWRL1", "BACKUP_FTWRL2", "BACKUP_BLOCK_DDL"}, mode)
}

// locksCollide reports whether a lock that one session has, or wants before another (queued), keeps the other waiting for its own.
func locksCollide(object, wanted, other string, queued bool) bool {
	var modes struct{ held, queued []string }
	switch object {
	case "BACKUP":
		modes = backupLocks[wanted]
		if later, ok := laterBackupLocks[other]; ok && !queued {
			return slices.ContainsFunc(later, func(l string) bool { return slices.Contains(modes.held, l) })
		}
	case "USER LEVEL LOCK", "USER_LEVEL_LOCK", "USER LOCK":
		return !queued
	case "GLOBAL", "COMMIT", "SCHEMA", "TABLESPACE", "BACKUP LOCK", "ACL_CACHE", "RESOURCE_GROUPS", "FOREIGN KEY", "CHECK CONSTRAINT":
		modes = scopedLocks[wanted]
	default:
		modes = tableLocks[wanted]
	}
	if queued {
		return slices.Contains(modes.queued, other)
	}
	return slices.Contains(modes.held, other)
}
