package gather

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/read"
)

// whole reads what is about the server as a whole.
func (g *gatherer) whole(ctx context.Context) error {
	s := g.server
	s.Variables, s.Status, s.Texts = map[string]string{}, map[string]float64{}, map[string]string{}
	if err := g.pairs(ctx, "SHOW /* risso: settings */ GLOBAL VARIABLES", func(name, value string) { s.Variables[name] = value }); err != nil {
		return err
	}
	err := g.pairs(ctx, "SHOW /* risso: counters */ GLOBAL STATUS", func(name, value string) {
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			s.Status[strings.ToLower(name)] = v
		} else {
			s.Texts[strings.ToLower(name)] = value
		}
	})
	if err != nil {
		return err
	}
	if err := g.clock(ctx); err != nil {
		return err
	}
	g.certificate(ctx)
	for _, read := range []func(context.Context) error{g.channels, g.replicas, g.timeZones, g.accounts, g.references, g.blind, g.cacheWaits, g.statementHints, g.counting, g.runtime} {
		if err := read(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pairs asks for names and values.
func (g *gatherer) pairs(ctx context.Context, statement string, f func(name, value string)) error {
	return g.query(ctx, statement, func(row [][]byte) error { f(string(row[0]), string(row[1])); return nil })
}

func (g *gatherer) clock(ctx context.Context) error {
	return g.query(ctx, "SELECT /* risso: when is it? */ UTC_TIMESTAMP()", func(row [][]byte) error {
		g.server.Now = momentOf(row[0])
		return nil
	})
}

// momentOf reads a time in UTC as servers write it; zero if there is none.
func momentOf(text []byte) time.Time {
	t, _ := time.Parse("2006-01-02 15:04:05", string(text))
	return t
}

// certificate finds out when the server's TLS certificate ends.
func (g *gatherer) certificate(ctx context.Context) {
	if text := g.server.Texts["ssl_server_not_after"]; text != "" {
		g.server.Certificate, _ = time.Parse("Jan _2 15:04:05 2006 MST", text)
		return
	}
	if g.server.ShowsCertificate() && g.server.Variables["have_ssl"] == "YES" {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		end, err := mysql.CertificateEnd(ctx, g.target, nil)
		if g.server.Certificate = end; err != nil && end.IsZero() {
			g.unread("the server's TLS certificate", err.Error(), "")
		}
	}
}

// channels reads through which channels the server replicates.
func (g *gatherer) channels(ctx context.Context) error {
	g.statements++
	list, err := read.ReplicaChannels(ctx, g.conn)
	g.server.Channels = channelsOf(list)
	return g.missing("replication", err)
}

// channelsOf are channels as advice knows them.
func channelsOf(list []read.ReplicaChannel) (out []advise.Channel) {
	for _, c := range list {
		out = append(out, advise.Channel{Name: c.Name, Source: net.JoinHostPort(c.SourceHost, strconv.Itoa(c.SourcePort)), GTID: c.GTID, SourceUUID: c.SourceUUID, SourceID: c.SourceID})
	}
	return out
}

// replicas counts those that are connected.
func (g *gatherer) replicas(ctx context.Context) error {
	if v, ok := g.server.Status["slaves_connected"]; ok {
		g.server.Replicas = int(v)
		return nil
	}
	err := g.query(ctx, "SELECT /* risso: are there replicas? */ COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'", func(row [][]byte) (err error) {
		g.server.Replicas, err = strconv.Atoi(string(row[0]))
		return err
	})
	return g.missing("replicas that are connected", err)
}

func (g *gatherer) timeZones(ctx context.Context) error {
	err := g.query(ctx, "SELECT /* risso: time zones */ COUNT(*) FROM mysql.time_zone_name", func(row [][]byte) (err error) {
		g.server.TimeZones, err = strconv.Atoi(string(row[0]))
		return err
	})
	return g.missing("names of time zones", err)
}

// accounts reads which accounts and roles there are.
func (g *gatherer) accounts(ctx context.Context) error {
	list := map[string]bool{}
	err := g.query(ctx, "SELECT /* risso: who is there? */ User, Host FROM mysql.user", func(row [][]byte) error {
		name := string(row[0]) + "@" + string(row[1])
		list[name] = true
		if len(row[1]) == 0 { // a role
			list[string(row[0])] = true
		}
		return nil
	})
	if err == nil {
		g.server.Accounts = list
	}
	return g.missing("accounts", err)
}

// references reads all foreign keys of the server: of InnoDB where the account may ask it, else what the account may see.
func (g *gatherer) references(ctx context.Context) error {
	g.wanted, g.children = map[mysql.TableName]bool{}, map[mysql.TableName][]define.ForeignKey{}
	g.server.References = map[mysql.TableName][]advise.Reference{}
	list, known, err := g.innodbKeys(ctx)
	if err == nil && !known {
		list, err = g.foreignKeys(ctx)
	}
	slices.SortStableFunc(list, func(a, b *advise.Reference) int {
		return cmp.Or(cmp.Compare(a.Table.Schema, b.Table.Schema), cmp.Compare(a.Table.Name, b.Table.Name), cmp.Compare(a.Name, b.Name))
	})
	for _, r := range list {
		child := g.fold(r.Table)
		g.server.References[r.Referenced] = append(g.server.References[r.Referenced], *r)
		g.wanted[r.Referenced] = false
		g.children[child] = append(g.children[child], r.ForeignKey)
	}
	return err
}

// foreignKeys reads those that the account may see.
func (g *gatherer) foreignKeys(ctx context.Context) (list []*advise.Reference, err error) {
	last := ""
	err = g.query(ctx, g.server.ForeignKeysStatement(), func(row [][]byte) error {
		if key := strings.Join([]string{string(row[0]), string(row[1]), string(row[2])}, "\x00"); key != last {
			last = key
			list = append(list, g.reference(row[0], row[1], row[4], row[5], row[2]))
		}
		r := list[len(list)-1]
		r.Columns, r.To = append(r.Columns, string(row[3])), append(r.To, string(row[6]))
		return nil
	})
	return list, g.missing("foreign keys", err)
}

func (g *gatherer) reference(schema, table, toSchema, toTable, name []byte) *advise.Reference {
	to := g.fold(mysql.TableName{Schema: string(toSchema), Name: string(toTable)})
	return &advise.Reference{ForeignKey: define.ForeignKey{Name: string(name), Referenced: to}, Table: mysql.TableName{Schema: string(schema), Name: string(table)}}
}

// innodbKeys asks InnoDB for foreign keys; known is false where that is not needed, or not possible.
func (g *gatherer) innodbKeys(ctx context.Context) (list []*advise.Reference, known bool, err error) {
	keys, columns := g.server.InnoDBForeignKeys()
	if keys == "" || g.server.Variables["lower_case_table_names"] == "2" {
		return nil, false, nil
	}
	of, encoded := map[string]*advise.Reference{}, false
	err = g.query(ctx, keys, func(row [][]byte) error {
		encoded = encoded || !g.server.ReadsFileNames() && bytes.ContainsRune(bytes.Join(row[1:], nil), '@')
		name := row[0][bytes.IndexByte(row[0], '/')+1:]
		of[string(row[0])] = g.reference(row[1], row[2], row[3], row[4], name)
		return nil
	})
	if err == nil {
		err = g.query(ctx, columns, func(row [][]byte) error {
			if r := of[string(row[0])]; r != nil {
				r.Columns, r.To = append(r.Columns, string(row[1])), append(r.To, string(row[2]))
			}
			return nil
		})
	}
	if err != nil {
		if g.stream.Broken() != nil || ctx.Err() != nil {
			return nil, false, fmt.Errorf("ask InnoDB for foreign keys: %w", errors.Join(err, ctx.Err()))
		}
		return nil, false, nil // the account may not ask: information_schema tells what it may see
	}
	if encoded {
		return nil, false, nil
	}
	for _, r := range of {
		if len(r.Columns) > 0 { // else it was made, or dropped, in between
			list = append(list, r)
		}
	}
	return list, true, nil
}

// blind says what the account may not see.
func (g *gatherer) blind(ctx context.Context) error {
	g.statements++
	rights, err := g.stream.Rights(ctx)
	lacks := slices.DeleteFunc([]string{"SELECT", "SHOW VIEW", "TRIGGER", "EVENT"}, func(name string) bool { return rights.Have("", "", name) })
	switch {
	case err != nil || len(lacks) == 0:
	case lacks[0] == "SELECT":
		g.server.Blind = "all schemas, so not all foreign keys and hints"
		g.unread("schemas that the account may not read", "it has no "+strings.Join(lacks, ", ")+" on *.*", g.server.Grant(lacks...))
	default: // without these the server leaves out views' texts, triggers and events, and does not say so
		g.server.Blind = "all views, triggers and events, so not all hints"
		g.unread("views, triggers and events that the account may not read", "it has no "+strings.Join(lacks, ", ")+" on *.*", g.server.Grant(lacks...))
	}
	return g.missing("the account's own rights", err)
}

// cacheWaits counts sessions that wait for the query cache.
func (g *gatherer) cacheWaits(ctx context.Context) error {
	if v := g.server.Variables["query_cache_size"]; v == "" || v == "0" || g.server.Variables["query_cache_type"] == "OFF" {
		return nil
	}
	err := g.query(ctx, "SELECT /* risso: who waits for the query cache? */ COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE '%query cache%' AND COMMAND <> 'Sleep'", func(row [][]byte) (err error) {
		g.server.Status["qcache_lock_waits"], err = strconv.ParseFloat(string(row[0]), 64)
		return err
	})
	return g.missing("who waits for the query cache", err)
}

// statementHints reads hints of statements that performance_schema remembers.
func (g *gatherer) statementHints(ctx context.Context) error {
	g.server.Hinted = map[string]string{}
	if !g.server.PerformanceSchema {
		return nil
	}
	err := g.query(ctx, "SELECT /* risso: hints of statements */ DIGEST, DIGEST_TEXT FROM performance_schema.events_statements_summary_by_digest WHERE DIGEST_TEXT REGEXP "+mysql.Literal(advise.HintsPattern)+" AND DIGEST_TEXT NOT LIKE '%DIGEST_TEXT REGEXP%'", func(row [][]byte) error {
		g.hints(string(row[1]), "statement "+string(row[0]))
		return nil
	})
	return g.missing("hints of statements", err)
}

// hints notes which indexes hints of a text name.
func (g *gatherer) hints(text, by string) {
	for _, name := range advise.HintedIndexes(g.server.Dialect(), text) {
		if g.server.Hinted[name] == "" {
			g.server.Hinted[name] = by
		}
	}
}
