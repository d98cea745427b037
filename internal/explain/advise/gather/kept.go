package gather

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/explain/advise"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// Kept is how often indexes of a server were used, as somebody who reads the counters each hour knows it: across restarts of the server, which
// begin them anew, and across those of the reader.
type Kept struct {
	Version int                             `json:"version"`
	Seat    string                          `json:"seat"`
	By      string                          `json:"by"`    // what counts: performance_schema, userstat
	Since   time.Time                       `json:"since"` // since when nothing is missing
	Last    time.Time                       `json:"last"`  // the last reading
	Uses    map[string]map[string]*tableUse `json:"uses"`  // by schema and table
}

type tableUse struct {
	Seen    time.Time            `json:"seen"`
	Indexes map[string]*indexUse `json:"indexes"`
}

type indexUse struct {
	Reads float64   `json:"reads"`          // in all
	Raw   float64   `json:"raw"`            // the counter at the last reading
	First time.Time `json:"first,omitzero"` // since when it is known, if later than Kept.Since
}

const (
	keptVersion = 1
	// mostLost is how much time may lie between a reading and a restart, or a counter that was set to zero, without making what is kept
	// worthless: what happened in between is not known.
	mostLost = 2 * time.Hour
	// forgotten is after how long a table that is not counted any more is forgotten.
	forgotten = 60 * 24 * time.Hour
	// mostKept bounds how many indexes are kept.
	mostKept = 200_000
)

// advance adds a reading: counters by schema, table and index. started is when the server was started.
func (k *Kept) advance(now, started time.Time, reading map[string]map[string]map[string]float64) {
	restarted := k.Last.IsZero() || started.After(k.Last.Add(2*time.Second))
	if k.Last.IsZero() || restarted && started.Sub(k.Last) > mostLost {
		k.Uses, k.Since, k.Last = map[string]map[string]*tableUse{}, started, time.Time{}
	}
	for schema, tables := range reading {
		if k.Uses[schema] == nil {
			k.Uses[schema] = map[string]*tableUse{}
		}
		for table, indexes := range tables {
			t := k.Uses[schema][table]
			if t == nil {
				t = &tableUse{Indexes: map[string]*indexUse{}}
				k.Uses[schema][table] = t
			}
			t.Seen = now
			for name, raw := range indexes {
				u := t.Indexes[name]
				switch {
				case u == nil:
					u = &indexUse{Reads: raw, First: k.Last} // it may have been made since
					t.Indexes[name] = u
				case restarted:
					u.Reads += raw
				case raw >= u.Raw:
					u.Reads += raw - u.Raw
				case now.Sub(k.Last) > mostLost: // set to zero, nobody knows when
					u.Reads, u.First = raw, now
				default:
					u.Reads += raw
				}
				u.Raw = raw
			}
		}
	}
	for schema, tables := range k.Uses {
		for table, t := range tables {
			if now.Sub(t.Seen) > forgotten {
				delete(tables, table)
			} else if restarted && !t.Seen.Equal(now) { // not opened since the restart: its counters begin at 0
				for _, u := range t.Indexes {
					u.Raw = 0
				}
			}
		}
		if len(tables) == 0 {
			delete(k.Uses, schema)
		}
	}
	k.Last = now
}

func keptPath(dir, seat string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(seat))
	return filepath.Join(dir, fmt.Sprintf("use-%016x.json", h.Sum64()))
}

// readKept reads what is kept of a server; nil if there is nothing.
func readKept(dir, seat string) (*Kept, error) {
	b, err := os.ReadFile(keptPath(dir, seat))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	k := &Kept{}
	if err == nil {
		err = json.Unmarshal(b, k)
	}
	if err != nil {
		return nil, fmt.Errorf("read what is kept of the use of indexes: %w", err)
	}
	if k.Version != keptVersion || k.Seat != seat {
		return nil, nil
	}
	return k, nil
}

// KeepUse reads how often the indexes of a server were used, and adds it to what is kept in a folder. It is to be called each hour.
// traffic is Options.Traffic.
func KeepUse(ctx context.Context, target mysql.Target, traffic *mysql.Traffic, dir string) error {
	g, end, err := begin(ctx, target, Options{Unused: -1, Traffic: traffic, Wanted: func(string) bool { return false }})
	if err != nil {
		return err
	}
	defer end()
	s := g.server
	s.Variables, s.Status = map[string]string{}, map[string]float64{}
	if err := g.pairs(ctx, "SHOW /* risso: is the use of indexes counted? */ GLOBAL VARIABLES LIKE 'userstat'", func(name, value string) { s.Variables[name] = value }); err != nil {
		return err
	}
	err = g.pairs(ctx, "SHOW /* risso: since when? */ GLOBAL STATUS LIKE 'Uptime'", func(_, value string) { s.Status["uptime"], _ = strconv.ParseFloat(value, 64) })
	if err != nil {
		return err
	}
	if err := g.clock(ctx); err != nil {
		return err
	}
	if err := g.counting(ctx); err != nil {
		return err
	}
	if s.Counting.By == "" {
		return nil
	}
	reading, err := g.allUses(ctx)
	if err != nil {
		return err
	}
	seat := s.Place()
	k, err := readKept(dir, seat)
	if k == nil || err != nil || k.By != s.Counting.By { // damaged, or counted otherwise: begin anew
		k = &Kept{Version: keptVersion, Seat: seat, By: s.Counting.By}
	}
	started := s.Now.Add(-time.Duration(s.Status["uptime"]) * time.Second)
	if s.Counting.Since.IsZero() && k.Last.IsZero() {
		started = s.Now // userstat was switched on at a time that nobody knows
	}
	k.advance(s.Now, started, reading)
	return k.write(dir)
}

// allUses reads the counters of all indexes.
func (g *gatherer) allUses(ctx context.Context) (map[string]map[string]map[string]float64, error) {
	statement := "SELECT /* risso: how often are indexes used? */ OBJECT_SCHEMA, OBJECT_NAME, INDEX_NAME, COUNT_STAR FROM performance_schema.table_io_waits_summary_by_index_usage WHERE OBJECT_TYPE = 'TABLE' AND INDEX_NAME IS NOT NULL"
	if g.server.Counting.By == "userstat" {
		statement = "SELECT /* risso: how often are indexes used? */ TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, ROWS_READ FROM information_schema.INDEX_STATISTICS"
	}
	out, n := map[string]map[string]map[string]float64{}, 0
	err := g.query(ctx, statement+" LIMIT "+strconv.Itoa(mostKept+1), func(row [][]byte) error {
		schema, table := string(row[0]), string(row[1])
		if mysql.SystemSchema(schema) {
			return nil
		}
		if n++; n > mostKept {
			return fmt.Errorf("more than %d indexes are counted: their use is not kept", mostKept)
		}
		if out[schema] == nil {
			out[schema] = map[string]map[string]float64{}
		}
		if out[schema][table] == nil {
			out[schema][table] = map[string]float64{}
		}
		v, err := strconv.ParseFloat(string(row[3]), 64)
		out[schema][table][string(row[2])] = v
		return err
	})
	return out, err
}

// write puts it on disk, whole, or leaves what was there.
func (k *Kept) write(dir string) error {
	b, err := json.Marshal(k)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return fmt.Errorf("keep the use of indexes: %w", err)
	}
	tmp, err := os.CreateTemp(dir, ".use-*")
	if err != nil {
		return fmt.Errorf("keep the use of indexes: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), keptPath(dir, k.Seat))
	}
	if err == nil {
		err = home.SyncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("keep the use of indexes: %w", err)
	}
	return nil
}

// remember takes what is kept of the server, if it is whole until now.
func (g *gatherer) remember() {
	if g.o.Kept == "" || g.server.Counting.By == "" {
		return
	}
	k, err := readKept(g.o.Kept, g.server.Place())
	if err != nil {
		g.unread("what risso serve kept of the use of indexes", err.Error(), "")
	}
	started := g.server.Now.Add(-time.Duration(g.server.Status["uptime"]) * time.Second)
	if k == nil || k.By != g.server.Counting.By || started.Sub(k.Last) > mostLost {
		return
	}
	g.kept = k
	g.server.Counting.Since, g.server.Counting.Kept = k.Since, true
}

// mostSilent is how old what is kept may be without leaving open what happened since.
const mostSilent = 3 * time.Hour

// KeptSeen is what is kept in a folder of the indexes that a server uses, for UnusedEverywhere. Of a server that was not read lately nothing is
// known, but for the indexes that it used before.
func KeptSeen(dir, seat, name string, now time.Time) advise.Seen {
	s := advise.Seen{Server: name}
	k, err := readKept(dir, seat)
	if k == nil || err != nil {
		return s
	}
	s.Counts, s.Since = now.Sub(k.Last) < mostSilent, k.Since
	for schema, tables := range k.Uses {
		for table, of := range tables {
			t := &advise.Table{Table: define.Table{Schema: schema, Name: table}, Use: &advise.Use{Reads: map[string]float64{}}}
			for index, u := range of.Indexes {
				t.Use.Reads[index] = u.Reads
			}
			s.UsedOf(t)
		}
	}
	return s
}

// add adds what is kept of a table to what the server counts now.
func (k *Kept) add(t *advise.Table, started time.Time) {
	of := k.Uses[t.Schema][t.Name]
	if of == nil || t.Use == nil {
		return
	}
	t.Use.Since = map[string]time.Time{}
	for name, raw := range t.Use.Reads {
		u := of.Indexes[name]
		if u == nil {
			t.Use.Since[name] = k.Last
			continue
		}
		if raw >= u.Raw && !started.After(k.Last) {
			raw -= u.Raw
		}
		t.Use.Reads[name], t.Use.Since[name] = u.Reads+raw, u.First
	}
}
