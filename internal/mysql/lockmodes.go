package mysql

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

// backupBlocks are the modes of MariaDB's backup locks that hold others up; all others are those of statements (MDL_backup_lock; 10.5 on).
var backupBlocks = map[string]bool{
	"BACKUP_START": true, "BACKUP_FLUSH": true, "BACKUP_WAIT_FLUSH": true, "BACKUP_WAIT_DDL": true, "BACKUP_WAIT_COMMIT": true, "BACKUP_FTWRL1": true, "BACKUP_FTWRL2": true, "BACKUP_BLOCK_DDL": true,
}

// locksCollide says whether a lock that one session has, or wants before another (queued), keeps the other waiting for its own.
func locksCollide(object, wanted, other string, queued bool) bool {
	var modes struct{ held, queued []string }
	switch object {
	case "BACKUP":
		return backupBlocks[other] != backupBlocks[wanted] && (!queued || backupBlocks[other]) || !queued && backupBlocks[other] && backupBlocks[wanted]
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
