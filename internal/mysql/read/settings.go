package read

import (
	"context"
	sqldriver "database/sql/driver"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// watchedSettings are the global variables, by the names of all servers, that findings depend on and that can change while the
// server runs. Reading all variables costs a server milliseconds and is done once a minute; these are read if one may have changed.
var watchedSettings = []string{"max_connections", "read_only", "super_read_only", "innodb_redo_log_capacity", "innodb_log_file_size", "innodb_buffer_pool_size",
	"slave_exec_mode", "replica_exec_mode", "slave_parallel_threads", "slave_parallel_workers", "replica_parallel_workers", "wsrep_on", "wsrep_slave_threads"}

// settingsReader notices that one of them was changed.
type settingsReader struct {
	names  []string // those that the server has
	values []string // of them, when they were last looked at

	key    string  // of the counter of SET
	sets   float64 // its value then
	lookIn int     // readings until they are read anyway: some change without a SET, such as read_only on a member of a group
}

// mayBeSet reports whether a setting may have changed: the server has counted a SET, or it is time to look anyway.
func (r *Reader) mayBeSet(mysql.Server) bool {
	w := &r.watched
	if w.key == "" {
		m := fleet.Metric{Name: "mysql_global_status_commands_total", Labels: []fleet.Label{{Name: "command", Value: "set_option"}}}
		w.key = m.Key()
	}
	sets, _ := r.Sample.Value(w.key)
	due := sets != w.sets || w.lookIn <= 0
	w.sets = sets
	if w.lookIn--; due {
		w.lookIn = lookEvery
	}
	return due
}

// readSettings compares the settings with their last values, and reads all variables if one differs.
func (r *Reader) readSettings(ctx context.Context, c *mysql.Conn) error {
	w := &r.watched
	if w.names == nil {
		if r.Variables == nil { // not read yet, or refused
			return nil
		}
		for _, name := range watchedSettings {
			if _, ok := r.Variables[name]; ok {
				w.names = append(w.names, name)
			}
		}
	}
	if len(w.names) == 0 {
		return nil
	}
	var values []string
	err := c.Query(ctx, "SELECT /* risso: was a setting changed? */ @@GLOBAL."+strings.Join(w.names, ", @@GLOBAL."), func(row []sqldriver.Value) error {
		for _, v := range row {
			values = append(values, mysql.Text(v))
		}
		return nil
	})
	if err != nil {
		return err
	}
	old := w.values
	w.values = values
	if old == nil || slices.Equal(values, old) {
		return nil
	}
	return r.readVariables(ctx, c)
}
