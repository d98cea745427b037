package flags

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rissodb/risso/internal/data/binlog"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
)

// Until say where rolling forward by binary logs ends.
type Until struct{ time, gtid, before, place, zone string }

// Bind adds the flags to a command; lead begins what help says of them.
func (f *Until) Bind(cmd *cobra.Command, lead string) {
	fl := cmd.Flags()
	fl.StringVar(&f.time, "to-time", "", lead+"stop before the first transaction committed at this time or later: a time, or how long ago")
	ZoneVar(fl, &f.zone)
	fl.StringVar(&f.gtid, "to-gtid", "", lead+"stop after this transaction")
	fl.StringVar(&f.before, "before", "", lead+"stop just before this transaction")
	cmd.MarkFlagsMutuallyExclusive("to-time", "to-gtid", "before")
}

// BindPlace adds --to-place, for logs that are named.
func (f *Until) BindPlace(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.place, "to-place", "", "stop before the event at FILE:POSITION")
	for _, other := range []string{"to-time", "to-gtid", "before"} {
		cmd.MarkFlagsMutuallyExclusive("to-place", other)
	}
}

// Stop reads the flags; the zero value is the end of the logs.
func (f Until) Stop() (s binlog.Stop, err error) {
	flag := ""
	switch {
	case f.time != "":
		zone, err := Zone(f.zone)
		if err != nil {
			return s, err
		}
		if s.Time, err = Moment(f.time, time.Now(), zone); err != nil {
			return s, fault.Usagef("--to-time %w", err)
		}
	case f.gtid != "":
		flag = "--to-gtid:"
		s.GTID, err = mysql.ParseGTID(f.gtid)
	case f.before != "":
		flag, s.Before = "--before:", true
		s.GTID, err = mysql.ParseGTID(f.before)
	case f.place != "":
		flag = "--to-place"
		s.File, s.Pos, err = LogPlace(f.place)
	}
	if err != nil {
		return s, fault.Usagef("%s %w", flag, err)
	}
	return s, nil
}

// ZoneVar binds --timezone.
func ZoneVar(fl *pflag.FlagSet, p *string) {
	fl.StringVar(p, "timezone", "UTC", "time zone of times written without one: UTC, Local, Europe/Berlin")
}

// Zone finds a time zone by its name.
func Zone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fault.Usagef("--timezone %q: no such zone on this machine; use UTC, Local or a name such as Europe/Berlin", name)
	}
	return zone, nil
}

// LogPlace reads FILE:POSITION.
func LogPlace(s string) (file string, pos int64, err error) {
	i := strings.LastIndexByte(s, ':')
	if i > 0 {
		if pos, err = strconv.ParseInt(s[i+1:], 10, 64); err == nil && pos >= 4 {
			return s[:i], pos, nil
		}
	}
	return "", 0, fmt.Errorf("%q: write it as FILE:POSITION, such as binlog.000017:4711", s)
}
