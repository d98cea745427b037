package compare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/measure/workload"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// companions are the variables that a server changes by itself when another is set, so that they have to be put back with it. Who sets
// innodb_io_capacity above its maximum, for example, moves the maximum, which stays when the capacity goes down again.
// Of the manuals' descriptions of these variables, and tried.
var companions = [][]string{
	{"character_set_server", "collation_server"},
	{"character_set_database", "collation_database"},
	{"character_set_connection", "collation_connection"},
	{"innodb_io_capacity", "innodb_io_capacity_max"},
	{"innodb_max_dirty_pages_pct", "innodb_max_dirty_pages_pct_lwm"},
	{"read_only", "super_read_only"},
	{"validate_password.length", "validate_password.number_count", "validate_password.mixed_case_count", "validate_password.special_char_count"},
	{"validate_password_length", "validate_password_number_count", "validate_password_mixed_case_count", "validate_password_special_char_count"},
}

// companionsOf are those of a variable, which some servers do not have.
func companionsOf(name string) (out []string) {
	for _, group := range companions {
		if slices.Contains(group, name) {
			for _, other := range group {
				if other != name {
					out = append(out, other)
				}
			}
		}
	}
	return out
}

// movesWith says that a variable may change when one of a side's does.
func movesWith(name string, side []Setting) bool {
	return slices.ContainsFunc(side, func(s Setting) bool { return slices.Contains(companionsOf(s.Name), name) })
}

// differing are the variables that are not what they were, with what they were.
func differing(before, now map[string]string) (list []Setting) {
	for name, value := range before {
		if is, ok := now[name]; ok && is != value {
			list = append(list, Setting{Name: name, Value: value})
		}
	}
	slices.SortFunc(list, func(x, y Setting) int { return strings.Compare(x.Name, y.Name) })
	return list
}

// strays looks for variables that do not go back with those that were tried, puts them back, and refuses such settings by an error that
// wraps workload.ErrUsage: they would not be put back after the runs. try tries the settings and puts back what is known. What does
// not change when it is tried once more was changed by somebody else in the meantime, and stays so.
func strays(ctx context.Context, c *mysql.Conn, before map[string]string, try func(context.Context) error) error {
	now, err := read.StillVariables(ctx, c)
	if err != nil {
		return err
	}
	moved := differing(before, now)
	if len(moved) == 0 {
		return nil
	}
	if err := errors.Join(setShown(ctx, c, moved), try(ctx)); err != nil {
		return err
	}
	last, err := read.StillVariables(ctx, c)
	if err != nil {
		return err
	}
	again := differing(before, last)
	others := slices.DeleteFunc(differing(now, before), func(s Setting) bool { return last[s.Name] != before[s.Name] })
	if err := errors.Join(setShown(ctx, c, others), setShown(ctx, c, again)); err != nil || len(again) == 0 {
		return err
	}
	return fmt.Errorf("%w: the server changes %s along with these settings, and not back: set it as well, so that it is put back", workload.ErrUsage, again[0].Name)
}

// setShown sets variables to what SHOW printed for them. It leaves out those that cannot be set.
func setShown(ctx context.Context, c *mysql.Conn, list []Setting) error {
	var failed []error
	for _, v := range list {
		if err := apply(ctx, c, []Setting{v}); !errors.Is(err, ErrNotDynamic) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
