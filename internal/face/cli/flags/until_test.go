package flags

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/mysql"
)

// TestUntil: where a roll forward ends, by the flags of restore and binlog apply.
func TestUntil(t *testing.T) {
	gtid := mysql.GTID{Domain: 0, Server: 1, Number: 4711}
	for _, c := range []struct {
		args string
		want binlog.Stop
		err  string
	}{
		{args: ""},
		{args: "--to-gtid 0-1-4711", want: binlog.Stop{GTID: gtid}},
		{args: "--before 0-1-4711", want: binlog.Stop{GTID: gtid, Before: true}},
		{args: "--to-place binlog.000017:4711", want: binlog.Stop{File: "binlog.000017", Pos: 4711}},
		{args: "--to-time 2026-03-01T14:02", want: binlog.Stop{Time: time.Date(2026, 3, 1, 14, 2, 0, 0, time.UTC)}},
		{args: "--to-time 2026-03-01T14:02 --timezone Europe/Berlin", want: binlog.Stop{Time: time.Date(2026, 3, 1, 13, 2, 0, 0, time.UTC)}},
		{args: "--to-time soon", err: `--to-time "soon": a time`},
		{args: "--to-time 2026-03-01 --timezone Mars/Base", err: `--timezone "Mars/Base": no such zone on this machine`},
		{args: "--to-gtid x", err: "--to-gtid: "},
		{args: "--before x", err: "--before: "},
		{args: "--to-place binlog.000017", err: `--to-place "binlog.000017": write it as FILE:POSITION`},
		{args: "--to-place binlog.000017:3", err: "--to-place "},
		{args: "--to-gtid 0-1-1 --before 0-1-2", err: "none of the others can be"},
		{args: "--to-place b.1:4 --to-time 2h", err: "none of the others can be"},
	} {
		var f Until
		var got binlog.Stop
		cmd := &cobra.Command{SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) (err error) {
			got, err = f.Stop()
			return err
		}}
		f.Bind(cmd, "")
		f.BindPlace(cmd)
		cmd.SetArgs(strings.Fields(c.args))
		err := cmd.Execute()
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) || c.err == "" && err != nil {
			t.Errorf("%s: got error %v, want %q", c.args, err, c.err)
		}
		if same := got.Time.Equal(c.want.Time); c.err == "" && (!same || got.GTID != c.want.GTID || got.Before != c.want.Before || got.File != c.want.File || got.Pos != c.want.Pos || got.IsZero() != (c.args == "")) {
			t.Errorf("%s: got %+v, want %+v", c.args, got, c.want)
		}
	}
}
