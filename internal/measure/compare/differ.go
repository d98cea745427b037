package compare

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/mysql"
)

// Difference is one thing in which what the runs were made with differs.
type Difference struct {
	What string `json:"what"` // "workload", "environment cpu.model", "variable sort_buffer_size"
	A    string `json:"a"`
	B    string `json:"b"`
}

// differences lists what is not alike, beside what was set on purpose.
func differences(a, b *Side) []Difference {
	out := []Difference{}
	add := func(what string, of func(*Run) string) {
		va, vb := valuesOf(a.Runs, of), valuesOf(b.Runs, of)
		if va != vb && va != "" && vb != "" {
			out = append(out, Difference{what, va, vb})
		}
	}
	add("workload", func(r *Run) string { return r.Workload })
	add("threads", func(r *Run) string { return fmt.Sprint(r.Threads) })
	add("rate", func(r *Run) string { return fmt.Sprint(r.Rate) })
	add("seconds measured", func(r *Run) string {
		return (time.Duration(r.Seconds+0.5) * time.Second).String()
	})
	add("warm-up", func(r *Run) string { return fmt.Sprintf("%gs", r.WarmupSeconds) })
	add("server", func(r *Run) string { return r.Server })
	add("server version", func(r *Run) string { return r.ServerVersion })
	out = append(out, flatDifferences("parameter ", a, b, func(r *Run) map[string]any { return r.Parameters })...)
	out = append(out, flatDifferences("environment ", a, b, func(r *Run) map[string]any { return r.environment })...)
	return append(out, variableDifferences(a, b)...)
}

// valuesOf joins the distinct values of a side's runs.
func valuesOf(runs []Run, of func(*Run) string) string {
	var list []string
	for i := range runs {
		if v := of(&runs[i]); !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return strings.Join(list, ", ")
}

// restless are parts of an environment that differ between any two runs and explain nothing.
var restless = []string{"time", "taken", "began", "uptime", "pid", "load_average", "loadavg", "free", "available"}

func flatDifferences(prefix string, a, b *Side, of func(*Run) map[string]any) (out []Difference) {
	left, right := flatten(a.Runs, of), flatten(b.Runs, of)
	names := map[string]bool{}
	for k := range left {
		names[k] = true
	}
	for k := range right {
		names[k] = true
	}
	for _, name := range sorted(names) {
		last := name[strings.LastIndexByte(name, '.')+1:]
		if slices.Contains(restless, last) || reflect.DeepEqual(left[name], right[name]) || len(left) == 0 || len(right) == 0 {
			continue
		}
		out = append(out, Difference{prefix + name, missing(left[name]), missing(right[name])})
	}
	return out
}

func missing(values []string) string {
	if len(values) == 0 {
		return "(not there)"
	}
	return strings.Join(values, ", ")
}

// flatten gives the distinct values of each leaf of the runs' trees, by dotted path.
func flatten(runs []Run, of func(*Run) map[string]any) map[string][]string {
	out := map[string][]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		if m, ok := v.(map[string]any); ok {
			for k, e := range m {
				walk(strings.TrimPrefix(path+"."+k, "."), e)
			}
			return
		}
		if text := fmt.Sprint(v); !slices.Contains(out[path], text) {
			out[path] = append(out[path], text)
			slices.Sort(out[path])
		}
	}
	for i := range runs {
		walk("", of(&runs[i]))
	}
	return out
}

// ownVariables differ between any two servers and explain nothing.
var ownVariables = []string{
	"port", "socket", "datadir", "pid_file", "hostname", "server_id", "server_uuid", "log_error", "report_host", "report_port", "tmpdir",
	"secure_file_priv", "general_log_file", "slow_query_log_file", "log_bin_basename", "log_bin_index", "relay_log_basename",
	"relay_log_index", "relay_log_info_file", "slave_load_tmpdir", "replica_load_tmpdir", "innodb_buffer_pool_filename", "server_uid",
	"caching_sha2_password_private_key_path", "caching_sha2_password_public_key_path", "wsrep_node_address", "wsrep_node_name", "wsrep_data_home_dir",
	"admin_address", "mysqlx_port", "mysqlx_socket", "relay_log", "innodb_data_home_dir", "innodb_log_group_home_dir", "innodb_undo_directory", "log_bin",
}

func variableDifferences(a, b *Side) (out []Difference) {
	if a.Variables == nil || b.Variables == nil {
		return nil
	}
	set := map[string]bool{}
	for _, s := range slices.Concat(a.Settings, b.Settings) {
		set[s.Name] = true
	}
	names := map[string]bool{}
	for n := range maps.Keys(a.Variables) {
		names[n] = true
	}
	for n := range maps.Keys(b.Variables) {
		names[n] = true
	}
	only := [2]int{}
	for _, n := range sorted(names) {
		va, inA := a.Variables[n]
		vb, inB := b.Variables[n]
		switch {
		case set[n] || mysql.Moving(n) || slices.Contains(ownVariables, n):
		case !inA:
			only[1]++
		case !inB:
			only[0]++
		case va != vb:
			out = append(out, Difference{"variable " + n, va, vb})
		}
	}
	if only[0]+only[1] > 0 {
		out = append(out, Difference{"variables that only one server has", fmt.Sprint(only[0]), fmt.Sprint(only[1])})
	}
	return out
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
