// Package describe reads what a server is, as package differ compares it: from the server, or from a file written earlier. It reads; it
// changes nothing.
package describe

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/read"
)

// Options say what is read.
type Options struct {
	Schemas bool                     // the definitions of users' schemas, too
	Want    func(schema string) bool // which; nil: all
	Now     time.Time                // when it is
	Name    string                   // how the user calls the server; "": its address

	// Progress is told how many tables were read, of how many. Nil: nobody.
	Progress func(done, total int)
}

// Take describes a server. What the account may not read is in Unread; an error is one of the connection.
func Take(ctx context.Context, target mysql.Target, o Options) (*differ.Description, error) {
	c, err := mysql.Connect(ctx, target, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if o.Name == "" {
		o.Name = target.String()
	}
	d := &differ.Description{Format: differ.Format, Name: o.Name, Taken: o.Now.UTC().Round(time.Second), Server: c.Server.Server, Build: map[string]string{}}
	for _, part := range []struct {
		area string
		read func(context.Context, *mysql.Conn, *differ.Description) error
	}{{differ.AreaVariables, variables}, {differ.AreaPlugins, plugins}, {differ.AreaEngines, engines}, {differ.AreaCharsets, charsets}, {differ.AreaZones, zones}} {
		if err := part.read(ctx, c, d); err != nil {
			if err := unread(d, part.area, err); err != nil {
				return nil, err
			}
		}
	}
	s, err := session(ctx, target, c.Server)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := accounts(ctx, s, c.Server, d); err != nil {
		return nil, err
	}
	if !o.Schemas {
		d.Unread = append(d.Unread, differ.Unread{Area: differ.AreaSchemas, Trouble: fleet.Trouble{Why: "they were not asked for", Remedy: "--schema"}})
		return d, nil
	}
	return d, schemas(ctx, s, c.Server, d, o)
}

// Settings describes only a server's settings.
func Settings(ctx context.Context, c *mysql.Conn, name string, now time.Time) (*differ.Description, error) {
	d := &differ.Description{Format: differ.Format, Name: name, Taken: now.UTC().Round(time.Second), Server: c.Server.Server, Build: map[string]string{}}
	if err := variables(ctx, c, d); err != nil {
		if err := unread(d, differ.AreaVariables, err); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// session is one in which definitions are shown in full, as UTF-8.
func session(ctx context.Context, target mysql.Target, server mysql.Server) (*mysql.Stream, error) {
	s, err := target.ConnectStream(ctx, mysql.StreamOptions{Patience: time.Minute})
	if err != nil {
		return nil, err
	}
	if err = s.ForRows(ctx, server); err == nil {
		err = s.Exec(ctx, "SET /* risso: definitions as text */ character_set_results = utf8mb4")
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// unread notes what the server refuses to tell; another error is returned.
func unread(d *differ.Description, area string, err error) error {
	if n := mysql.ErrorNumber(err); n == 0 || mysql.Gone(err) {
		return err
	}
	d.Unread = append(d.Unread, differ.Unread{Area: area, Trouble: fleet.Trouble{Why: err.Error(), Remedy: fleet.RemedyOf(err)}})
	return nil
}

func variables(ctx context.Context, c *mysql.Conn, d *differ.Description) error {
	all, err := read.ShownVariables(ctx, c)
	if err != nil {
		return err
	}
	d.Variables = map[string]string{}
	for name, value := range all {
		switch {
		case strings.HasPrefix(name, "version_compile") || name == "version_comment":
			d.Build[name] = value
		case name == "version" || name == "hostname" || strings.HasPrefix(name, "pseudo_"):
		default:
			d.Variables[name] = value
		}
	}
	list, unknown, err := read.ChangedVariables(ctx, c)
	if err != nil || unknown {
		if err != nil && mysql.ErrorNumber(err) == 0 {
			return err
		}
		why := "this version does not tell which variables were set"
		if err != nil {
			why = "which variables were set is not known: " + err.Error()
		}
		d.Unread = append(d.Unread, differ.Unread{Area: differ.AreaVariables, Part: true, Trouble: fleet.Trouble{What: "which were set", Why: why, Remedy: fleet.RemedyOf(err)}})
		return nil
	}
	d.Changed = map[string]string{}
	for _, v := range list {
		d.Changed[v.Name] = v.Source
	}
	return nil
}

// each runs a query of few rows.
func each(ctx context.Context, c *mysql.Conn, query string, f func(cell func(int) string)) error {
	return c.Query(ctx, query, func(row []sqldriver.Value) error {
		f(func(i int) string { return mysql.Text(row[i]) })
		return nil
	})
}

func plugins(ctx context.Context, c *mysql.Conn, d *differ.Description) error {
	d.Plugins = map[string]string{}
	err := each(ctx, c, "SELECT /* risso: plug-ins */ PLUGIN_NAME, PLUGIN_STATUS, PLUGIN_TYPE FROM information_schema.PLUGINS WHERE PLUGIN_TYPE NOT IN ('INFORMATION SCHEMA', 'DATA TYPE', 'FUNCTION')", func(cell func(int) string) {
		d.Plugins[cell(0)] = cell(1) + " " + cell(2)
	})
	if err != nil || !c.Server.HasComponents() {
		return err
	}
	err = each(ctx, c, "SELECT /* risso: components */ component_urn FROM mysql.component", func(cell func(int) string) {
		d.Plugins[cell(0)] = "ACTIVE COMPONENT"
	})
	if err != nil && mysql.ErrorNumber(err) != 0 {
		d.Unread = append(d.Unread, differ.Unread{Area: differ.AreaPlugins, Part: true, Trouble: fleet.Trouble{What: "components", Why: err.Error(), Remedy: "GRANT SELECT ON mysql.component TO " + c.Server.QuotedAccount()}})
		return nil
	}
	return err
}

func engines(ctx context.Context, c *mysql.Conn, d *differ.Description) error {
	d.Engines = map[string]string{}
	return each(ctx, c, "SELECT /* risso: engines */ ENGINE, SUPPORT FROM information_schema.ENGINES", func(cell func(int) string) { d.Engines[cell(0)] = cell(1) })
}

func charsets(ctx context.Context, c *mysql.Conn, d *differ.Description) error {
	d.Collations = map[string]string{}
	return each(ctx, c, "SELECT /* risso: default collations */ CHARACTER_SET_NAME, DEFAULT_COLLATE_NAME FROM information_schema.CHARACTER_SETS", func(cell func(int) string) {
		d.Collations[cell(0)] = cell(1)
	})
}

// zones asks whether a name is known: that needs no privilege, unlike the tables.
func zones(ctx context.Context, c *mysql.Conn, d *differ.Description) error {
	return each(ctx, c, "SELECT /* risso: are time zones loaded? */ CONVERT_TZ('2020-06-01 12:00:00', 'UTC', 'Europe/Berlin') IS NOT NULL", func(cell func(int) string) {
		d.Zones = "empty"
		if cell(0) == "1" {
			d.Zones = "loaded"
		}
	})
}

// wrap says what failed.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
