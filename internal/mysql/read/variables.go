package read

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"strings"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// settingPrefix begins the names of metrics that are global variables.
const settingPrefix = "mysql_global_variables_"

// IsSetting reports whether a metric is a global variable.
func IsSetting(metric string) bool { return strings.HasPrefix(metric, settingPrefix) }

const variableSource = "SHOW GLOBAL VARIABLES"

// secretWords mark variables whose values must be neither stored nor shown.
var secretWords = []string{"report_password", "_pwd", "secret", "wsrep_sst_auth", "wsrep_provider_options"}

// movingVariables change by themselves: a change of them is no event.
var movingVariables = map[string]bool{
	"timestamp": true, "rand_seed1": true, "rand_seed2": true, "last_insert_id": true, "insert_id": true, "identity": true, "warning_count": true, "error_count": true,
	"gtid_executed": true, "gtid_owned": true, "gtid_purged": true, "gtid_current_pos": true, "gtid_slave_pos": true, "gtid_binlog_pos": true, "gtid_binlog_state": true,
	"gtid_seq_no": true, "last_gtid": true, "pseudo_thread_id": true, "external_user": true, "proxy_user": true, "innodb_purge_rseg_truncate_frequency": false, "in_transaction": true,
}

// Moving reports whether a variable changes by itself, so that a change of it is not an event.
func Moving(variable string) bool { return movingVariables[variable] }

// readVariables reads all global variables as text; those that are numbers go into the sample too.
func readVariables(ctx context.Context, c *mysql.Conn, s *fleet.Sample) (map[string]string, error) {
	out := make(map[string]string, 1024)
	err := eachVariable(ctx, c, "SHOW /* risso */ GLOBAL VARIABLES", func(name string, value sqldriver.Value) {
		out[name] = shown(name, mysql.Text(value))
		if v, ok := number(value); ok && !isSecret(name) {
			s.Values[s.Position(fleet.Metric{Name: settingPrefix + metricWord(name), Source: variableSource, Help: name, Unit: variableUnit(name)})] = v
		}
	})
	return out, err
}

// eachVariable calls f with the variables that a SHOW GLOBAL VARIABLES answers with, their names in lower case.
func eachVariable(ctx context.Context, c *mysql.Conn, show string, f func(name string, value sqldriver.Value)) error {
	return c.Query(ctx, show, func(row []sqldriver.Value) error {
		f(strings.ToLower(mysql.Text(row[0])), row[1])
		return nil
	})
}

// shown is the value of a variable, hidden if it is a secret.
func shown(name, value string) string {
	if isSecret(name) && value != "" {
		return "(hidden)"
	}
	return value
}

// Secret reports whether a variable's value is one that nobody should see.
func Secret(name string) bool { return isSecret(name) }

func isSecret(name string) bool {
	for _, w := range secretWords {
		if strings.Contains(name, w) {
			return true
		}
	}
	return strings.HasSuffix(name, "_token")
}

// metricWord makes a name fit for Prometheus: validate_password.length becomes validate_password_length.
func metricWord(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, s)
}

func variableUnit(name string) string {
	switch {
	case strings.HasSuffix(name, "_size"), strings.Contains(name, "buffer"), strings.HasSuffix(name, "_bytes"), strings.HasSuffix(name, "packet"):
		return "bytes"
	case strings.HasSuffix(name, "_timeout"), strings.HasSuffix(name, "_seconds"):
		return "seconds"
	}
	return ""
}

// Dynamic reports whether SET GLOBAL can change a variable. known is false if the server does not say, as MySQL does not.
func Dynamic(ctx context.Context, c *mysql.Conn, variable string) (dynamic, known bool, err error) {
	if !c.Server.MariaDB() {
		return false, false, nil
	}
	err = c.Query(ctx, "SELECT /* risso */ READ_ONLY FROM information_schema.SYSTEM_VARIABLES WHERE VARIABLE_NAME = "+mysql.Literal(variable),
		func(row []sqldriver.Value) error {
			known, dynamic = true, mysql.Text(row[0]) == "NO"
			return nil
		})
	return dynamic, known, err
}

// Variables reads some global variables, secret ones too; those that the server does not have are left out.
func Variables(ctx context.Context, c *mysql.Conn, names []string) (map[string]string, error) {
	return variables(ctx, c, "SHOW /* risso: some settings */ GLOBAL VARIABLES WHERE Variable_name IN ('"+strings.Join(names, "','")+"')", func(string) bool { return true })
}

// ShownVariables reads all global variables but those that change by themselves; the values of secret ones are hidden.
func ShownVariables(ctx context.Context, c *mysql.Conn) (map[string]string, error) {
	out, err := variables(ctx, c, "SHOW /* risso: what is set here? */ GLOBAL VARIABLES", func(name string) bool { return !Moving(name) })
	for name, value := range out {
		out[name] = shown(name, value)
	}
	return out, err
}

// StillVariables reads all global variables, secret ones too, but those that change by themselves.
func StillVariables(ctx context.Context, c *mysql.Conn) (map[string]string, error) {
	return variables(ctx, c, "SHOW /* risso: what changes along with a setting? */ GLOBAL VARIABLES", func(name string) bool { return !Moving(name) })
}

func variables(ctx context.Context, c *mysql.Conn, show string, want func(name string) bool) (map[string]string, error) {
	out := map[string]string{}
	err := eachVariable(ctx, c, show, func(name string, value sqldriver.Value) {
		if want(name) {
			out[name] = mysql.Text(value)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read variables: %w", err)
	}
	return out, nil
}
