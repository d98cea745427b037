package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/explain/differ/upgrade"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/pattern"
	"github.com/rissodb/risso/internal/sandbox"
)

// own are settings that a throw-away server has to have its own way: its place, what would make it act or join others, what its files were
// made with, what needs keys that are elsewhere.
var own = setOf("log_bin", "read_only", "super_read_only", "offline_mode", "event_scheduler", "skip_networking", "innodb_page_size", "lower_case_table_names", "innodb_data_file_path",
	"innodb_undo_tablespaces", "innodb_temp_data_file_path", "innodb_force_recovery", "require_secure_transport", "innodb_read_only", "server_id", "bind_address", "skip_name_resolve",
	"gtid_purged", "gtid_executed", "innodb_encrypt_tables", "innodb_encrypt_log", "innodb_encryption_threads", "encrypt_binlog", "binlog_encryption", "default_table_encryption", "innodb_redo_log_encrypt",
	"innodb_undo_log_encrypt", "large_pages", "innodb_numa_interleave", "innodb_flush_method", "innodb_use_native_aio", "memlock", "core_file", "open_files_limit", "skip_external_locking", "license", "version", "plugin_maturity", "tls_version")

func setOf(list ...string) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, w := range list {
		m[w] = true
	}
	return m
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// mostBytes is how much memory or disk a setting may give a throw-away server: it shares the machine.
const mostBytes = 64 << 20

// candidates are the old server's settings that the new one is given, name=value; what is left out is told.
func (t *trial) candidates(fresh *differ.Description) (list []string) {
	removed := map[string]bool{}
	for _, p := range t.out.Problems {
		removed[p.Object] = removed[p.Object] || p.ID == "variable.removed"
	}
	var owned, pluginned []string
	for _, name := range sorted(t.d.Variables) {
		value := t.d.Variables[name]
		_, rank := differ.Meaning(name)
		set, _ := differ.WasSet(t.d, name)
		how := t.d.Changed[name]
		_, there := fresh.Variables[name]
		switch {
		case !set && !removed[name], rank == differ.RankNames, value == "(hidden)", strings.HasPrefix(name, "wsrep_"), strings.HasPrefix(name, "group_replication_"):
			continue
		case (how == "DYNAMIC" || how == "SQL") && !there && !removed[name]: // it stands in no option file
			continue
		case own[name] || strings.HasPrefix(value, "/"):
			owned = append(owned, name)
			continue
		case !there && t.ofPlugin(name, fresh):
			pluginned = append(pluginned, name)
			continue
		case there && differ.SameValue(name, value, fresh.Variables[name]):
			continue // it starts with it as it is
		}
		list = append(list, name+"="+capped(name, value))
	}
	if len(owned) > 0 {
		t.open("settings", strings.Join(owned, ", ")+": a throw-away server has its own", "")
	}
	if len(pluginned) > 0 {
		t.open("settings", strings.Join(pluginned, ", ")+": their plug-in is not loaded in a throw-away server", "")
	}
	return list
}

// ofPlugin reports whether a variable begins with the name of a plug-in that the old server has loaded and the new one has not.
func (t *trial) ofPlugin(name string, fresh *differ.Description) bool {
	for plugin := range t.d.Plugins {
		if _, there := fresh.Plugins[plugin]; !there && strings.HasPrefix(name, strings.ToLower(plugin)+"_") {
			return true
		}
	}
	return false
}

// capped keeps a throw-away server small.
func capped(name, value string) string {
	n, err := strconv.ParseUint(value, 10, 64)
	if err == nil && n > mostBytes && n < math.MaxInt64 && (strings.Contains(name, "size") || strings.Contains(name, "buffer") || strings.Contains(name, "capacity") || strings.Contains(name, "packet")) {
		return strconv.Itoa(mostBytes)
	}
	return value
}

// refusedSetting finds the name in what servers say of a setting that they do not take. Seen on MariaDB 10.11, MySQL 5.7 to 9.7.
var refusedSetting = pattern.Lazy(`unknown (?:variable|option) '-*([A-Za-z0-9_.-]+)|[Ee]rror while setting value '[^']*' to '([A-Za-z0-9_.-]+)'|[Uu]nknown option to ([A-Za-z0-9_.-]+)|option '([A-Za-z0-9_.-]+)' requires|[Uu]nknown suffix '[^']*' used for variable '([A-Za-z0-9_.-]+)'`)

// loose is the prefix of an option with which a server only warns that it does not know it.
const loose = "loose-"

// settings starts the new server with the old one's settings. Those that it does not know it tells in its log, all at once; those whose values
// it refuses are left out one by one.
func (t *trial) settings(ctx context.Context, b *box, fresh *differ.Description) error {
	n, list := b.Primary(), t.candidates(fresh)
	if err := n.Stop(ctx); err != nil {
		return err
	}
	t.out.Problems = slices.DeleteFunc(t.out.Problems, func(p upgrade.Problem) bool {
		return p.ID == "variable.removed" && fresh.Variables[p.Object] != "" // the new server has it after all
	})
	for {
		t.Progress(fmt.Sprintf("start it with %d settings", len(list)))
		args := make([]string, len(list))
		for i, s := range list {
			args[i] = "--" + s
			if name, _, _ := strings.Cut(s, "="); !has(fresh, name) {
				args[i] = "--" + loose + s
			}
		}
		err := n.Start(ctx, args...)
		if err == nil {
			b.args = args
			return t.taken(n, list)
		}
		if ctx.Err() != nil || len(list) == 0 {
			return err
		}
		said := err.Error()
		name := ""
		for _, m := range refusedSetting().FindAllStringSubmatch(said, -1) { // the last one ended it
			name = strings.ReplaceAll(cmp.Or(m[1:]...), "-", "_")
		}
		at := slices.IndexFunc(list, func(s string) bool { k, _, _ := strings.Cut(s, "="); return strings.EqualFold(k, name) })
		if at < 0 {
			t.open("settings", fmt.Sprintf("the server did not start with all of %d settings, and does not say which it refuses: %s", len(list), said), "")
			return n.Start(ctx)
		}
		t.refuse(list[at], said)
		list = slices.Delete(list, at, at+1)
	}
}

// ignored: the new server started with settings that are known to be removed. MariaDB takes some, says so in its log, and does nothing.
func (t *trial) ignored(list []string) {
	for _, s := range list {
		name, value, _ := strings.Cut(s, "=")
		for i := range t.out.Problems {
			if p := &t.out.Problems[i]; p.ID == "variable.removed" && p.Object == name && !p.Tried {
				p.Severity, p.Tried = upgrade.Note, true
				p.What, p.Why = fmt.Sprintf("it is set to %q, and the new version has no such variable", value), "the server starts with it in the option file, and ignores it"
			}
		}
	}
}

// has reports whether a server has a variable.
func has(d *differ.Description, name string) bool {
	_, there := d.Variables[name]
	return there
}

// taken reads what the new server says of the settings that it started with: which it does not know, ignores, or calls deprecated.
func (t *trial) taken(n *sandbox.Node, list []string) error {
	var log []byte
	for _, path := range []string{n.ErrorLog, filepath.Join(filepath.Dir(n.ErrorLog), "console.log")} {
		text, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read what the new server says of its settings: %w", err)
		}
		log = append(log, text...)
	}
	var known []string
	for _, s := range list {
		name, value, _ := strings.Cut(s, "=")
		unknown, deprecated := "", ""
		for line := range strings.Lines(string(log)) {
			switch {
			case strings.Contains(line, "nknown variable '") && names(line, "loose_"+name), strings.Contains(line, "nknown option '") && names(line, "loose_"+name):
				unknown = strings.TrimSpace(line)
			case strings.Contains(line, "deprecated") && strings.Contains(line, "[Warning]") && names(line, name):
				deprecated = strings.TrimSpace(line[strings.Index(line, "[Warning]")+len("[Warning]"):])
			}
		}
		if unknown != "" {
			t.refuse(s, unknown)
			continue
		}
		known = append(known, s)
		if deprecated != "" {
			t.out.Problems = append(t.out.Problems, upgrade.Problem{ID: "variable.deprecated", Severity: upgrade.Note, Object: name, Tried: true, Said: deprecated,
				Trouble: fleet.Trouble{What: fmt.Sprintf("it is set to %q, and the new version takes it with a warning", value), Why: "a later version will not start with it"}})
		}
	}
	t.out.Loaded.Settings = len(known)
	t.ignored(known)
	return nil
}

// names reports whether a text names a variable, as such or as an option.
func names(text, variable string) bool {
	words := strings.FieldsFunc(strings.ReplaceAll(text, "-", "_"), func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(strings.TrimLeft(w, "_"), variable) })
}

// refuse notes a setting that the new server did not start with.
func (t *trial) refuse(setting, said string) {
	name, value, _ := strings.Cut(setting, "=")
	for part := range strings.SplitSeq(said, "; ") { // of the log's last lines, the one about it
		if strings.Contains(strings.ReplaceAll(part, "-", "_"), name) {
			said = part
		}
	}
	for i := range t.out.Problems {
		p := &t.out.Problems[i]
		if p.Object == name && (p.ID == "variable.removed" || p.ID == "sql_mode.removed") {
			p.Tried, p.Said = true, said
			return
		}
	}
	p := upgrade.RemovedVariable(name, value, upgrade.Instead(name))
	if !strings.Contains(said, "nknown variable") && !strings.Contains(said, "nknown option") {
		p.ID, p.What, p.Remedy = "variable.value", fmt.Sprintf("it is set to %q, which the new version does not take", value), "give it a value that the new version takes, or remove it from the option file"
	}
	p.Tried, p.Said = true, said
	t.out.Problems = append(t.out.Problems, p)
}
