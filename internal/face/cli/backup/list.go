package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/serve/protect"
	"github.com/rissodb/risso/internal/sqltext"
)

func newBackupList(s screen.Streams) *cobra.Command {
	var f flags.Source
	var trust places.Trust
	var output string
	cmd := &cobra.Command{
		Use:   "list --from PLACE",
		Short: "List the backups of a place",
		Long: `Lists the backups of a place, oldest first: server, time, size, and whether a drill has proven them.
It reads a few hundred bytes of each, and needs no identity even if backups are encrypted. A backup
that is running, or was killed, is listed as such, with roughly what it had read and stored. The
next backup reuses those objects; prune removes them if no backup needs them.

` + flags.CountsHelp + `
Backups that do not count are listed, with the reason.`,
		Example: `  risso backup list --from /backups/db1
  risso backup list --from 's3://backups/db1?region=eu-central-1' --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if f.Policy, err = trust.Policy(f.From, nil); err != nil {
				return err
			}
			r, closePlace, err := f.Open(cmd.Context())
			if err != nil {
				return err
			}
			defer closePlace()
			if err := listBackups(cmd.Context(), s.Out, r, output); err != nil {
				return places.Failure(cmd.Context(), f.From, err)
			}
			return nil
		},
	}
	f.Bind(cmd)
	flags.BindTrust(&trust, cmd)
	flags.OutputVar(cmd.Flags(), &output, "", "text", "json")
	return cmd
}

// listed is a backup in the list.
type listed struct {
	ID      string       `json:"id"`
	State   string       `json:"state"` // whole, running, killed, copying, damaged
	Error   string       `json:"error,omitempty"`
	Proven  *time.Time   `json:"proven,omitempty"` // when a drill last restored it
	Drilled bool         `json:"drilled"`
	Seen    *time.Time   `json:"seen,omitempty"`    // when an incomplete backup last reported progress
	Hollow  string       `json:"hollow,omitempty"`  // why it proves nothing and replaces no other backup
	Strange string       `json:"strange,omitempty"` // why it does not count: it is not signed by a trusted key
	Doubt   string       `json:"doubt,omitempty"`   // why its newest proof does not count
	Header  *repo.Header `json:"header,omitempty"`
	unknown bool         // it was drilled, and what came of it cannot be read without an identity
}

// catalogueOf lists backups with what drills found.
func catalogueOf(ctx context.Context, r *repo.Repo) ([]listed, error) {
	entries, err := r.Catalogue(ctx)
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	strangers, err := r.Strangers(ctx, entries)
	if err != nil {
		return nil, err
	}
	hollow := protect.Hollow(entries, strangers)
	headless, err := r.Headless(ctx)
	if err != nil {
		return nil, err
	}
	entries = append(entries, headless...)
	slices.SortFunc(entries, repo.Entry.Before)
	list := make([]listed, len(entries))
	for i, e := range entries {
		at[e.ID] = i
		list[i] = listed{ID: e.ID, State: "whole", Header: &entries[i].Header, Hollow: hollow[e.ID], Strange: strangers[e.ID]}
		switch {
		case e.Err != nil:
			list[i].State, list[i].Error, list[i].Header = "damaged", e.Err.Error(), nil
		case e.Killed(time.Now()):
			list[i].State = "killed"
		case !e.Whole && e.Header.Kind == repo.Copying:
			list[i].State = "copying"
		case !e.Whole:
			list[i].State = "running"
		}
		if !e.Whole && e.Err == nil {
			list[i].Seen = &entries[i].Renewed
		}
	}
	return list, r.Proofs(ctx, "", func(p repo.Proof) error {
		i, ok := at[p.Backup]
		switch {
		case !ok:
		case errors.Is(p.Doubt, repo.ErrNoKey): // of an older version, encrypted: unknown
			list[i].unknown = true
		case p.Doubt != nil:
			list[i].Doubt = p.Doubt.Error()
		default:
			list[i].Drilled, list[i].Doubt = true, ""
			if p.Passed() {
				list[i].Proven = &p.Time
			}
		}
		return nil
	})
}

func listBackups(ctx context.Context, w io.Writer, r *repo.Repo, output string) error {
	list, err := catalogueOf(ctx, r)
	if err != nil {
		return err
	}
	if output == "json" {
		return render.JSON(w, CatalogueAnswer{r.ID, r.Encrypted(), list})
	}
	if len(list) == 0 {
		fmt.Fprintln(w, "no backup yet")
		return nil
	}
	t := render.Table{Heads: []string{"backup", "state", "kind", "server", "moment", ">tables", ">rows", ">bytes", ">added", "proven"}}
	for _, l := range list {
		row := []string{l.ID, l.State, "-", "-", "-", "-", "-", "-", "-", "-"}
		if h := l.Header; h != nil {
			row[2], row[3], row[4] = string(h.Kind), sqltext.Printable(h.Server.Name), screen.ShortTime(h.Snapshot)
			if len(h.Partial) > 0 {
				row[2] += ", part"
			}
			if l.State != "copying" {
				row[5], row[6], row[7], row[8] = fmt.Sprint(h.Tables), digits.Number(float64(h.Rows)), digits.Bytes(h.Bytes), digits.Bytes(h.Stored)
			}
		}
		switch {
		case l.Proven != nil:
			row[9] = screen.ShortTime(*l.Proven)
		case l.Drilled:
			row[9] = "failed"
		case l.unknown:
			row[9] = "?"
		case l.Doubt != "":
			row[9] = "in doubt"
		}
		t.Rows = append(t.Rows, row)
	}
	for _, line := range t.Lines(0) {
		fmt.Fprintln(w, line)
	}
	for _, l := range list {
		if l.Error != "" {
			fmt.Fprintf(w, "%s.\n", sqltext.Printable(l.Error))
		}
		if l.Hollow != "" {
			fmt.Fprintf(w, "%s proves nothing and replaces no other backup: %s. If that is right: risso backup accept.\n", l.ID, l.Hollow)
		}
		if l.Strange != "" {
			fmt.Fprintf(w, "%s does not count: %s.\n", l.ID, sqltext.Printable(l.Strange))
		}
		if l.Doubt != "" {
			fmt.Fprintf(w, "A drill of %s does not count: %s.\n", l.ID, sqltext.Printable(l.Doubt))
		}
		if l.State == "killed" && l.Header != nil && l.Seen != nil {
			fmt.Fprintln(w, killedWords(*l.Header, *l.Seen))
		}
	}
	return nil
}

// killedWords say what a backup that was killed left.
func killedWords(h repo.Header, seen time.Time) string {
	left := "It had stored nothing by then"
	switch {
	case h.Stored > 0 && h.Kind == repo.Logical:
		left = fmt.Sprintf("By then it had stored %s of %s; the next backup reuses what is unchanged", digits.Bytes(h.Stored), digits.Roughly(h.Rows, "row"))
	case h.Kind != repo.Logical:
		left = "What it stored cannot be reused; prune removes it"
	}
	return fmt.Sprintf("%s was killed: begun %s, last seen %s. %s.", h.ID, screen.ShortTime(h.Began), screen.ShortTime(seen), left)
}

func newBackupShow(s screen.Streams) *cobra.Command {
	var f flags.Source
	var output string
	var tables bool
	cmd := &cobra.Command{
		Use:   "show --from PLACE [BACKUP]",
		Short: "Show what a backup contains",
		Long: `Shows what a backup (default: the newest) contains: server, time, position in the binary logs, notes
and schemas; with --all every table. The whole manifest is read, so damage to it is noticed.`,
		Example: `  risso backup show --from /backups/db1
  risso backup show --from /backups/db1 20261121T183700Z-1a2b3c --all`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := ""
			if len(args) == 1 && args[0] != "newest" {
				id = args[0]
			}
			r, closePlace, err := f.Open(cmd.Context())
			if err != nil {
				return err
			}
			defer closePlace()
			if err := showBackup(cmd.Context(), s.Out, r, id, output, tables); err != nil {
				return places.Failure(cmd.Context(), f.From, err)
			}
			return nil
		},
	}
	f.Bind(cmd)
	cmd.Flags().BoolVar(&tables, "all", false, "also list every table")
	flags.OutputVar(cmd.Flags(), &output, "", "text", "json")
	return cmd
}

// ShownTable is a table as shown by risso backup show.
type ShownTable struct {
	Schema string   `json:"schema"`
	Name   string   `json:"name"`
	Engine string   `json:"engine"`
	Key    []string `json:"key,omitempty"`
	Rows   int64    `json:"rows"`
	Bytes  int64    `json:"bytes"`
	Chunks int      `json:"chunks"`
}

// ShownSchema sums the tables of a schema.
type ShownSchema struct {
	Name   string `json:"name"`
	Tables int64  `json:"tables"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
}

func showBackup(ctx context.Context, w io.Writer, r *repo.Repo, id, output string, tables bool) error {
	m, err := r.Manifest(ctx, id)
	if err != nil {
		return err
	}
	defer m.Close()
	schemas := []*ShownSchema{}
	byName := map[string]*ShownSchema{}
	schema := func(name string) *ShownSchema {
		if byName[name] == nil {
			byName[name] = &ShownSchema{Name: name}
			schemas = append(schemas, byName[name])
		}
		return byName[name]
	}
	objects := map[string]int64{}
	if output == "text" {
		showHeader(w, m.Header, m.Signer())
	} else if _, err := fmt.Fprint(w, "{\"tables\":["); err != nil {
		return err
	}
	first := true
	err = m.Each(func(l repo.Line) error {
		switch {
		case l.Schema != nil:
			schema(l.Schema.Name)
		case l.Object != nil:
			objects[string(l.Object.Kind)]++
		case l.Table != nil:
			t := l.Table
			s := schema(t.Schema)
			s.Tables++
			s.Rows += t.Rows
			s.Bytes += t.Bytes
			return showTable(w, ShownTable{t.Schema, t.Name, t.Engine, t.Key, t.Rows, t.Bytes, len(t.Chunks)}, output, tables, &first)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if output == "json" {
		return endJSON(w, m.Header, m.Signer(), schemas, objects)
	}
	if len(schemas) > 0 {
		t := render.Table{Heads: []string{"schema", ">tables", ">rows", ">bytes"}}
		for _, s := range schemas {
			t.Rows = append(t.Rows, []string{sqltext.Printable(s.Name), fmt.Sprint(s.Tables), digits.Number(float64(s.Rows)), digits.Bytes(s.Bytes)})
		}
		fmt.Fprintln(w)
		for _, line := range t.Lines(0) {
			fmt.Fprintln(w, line)
		}
	}
	return nil
}

// showTable writes a table as it comes: there may be 650,000.
func showTable(w io.Writer, t ShownTable, output string, tables bool, first *bool) (err error) {
	if output == "json" {
		b, err := json.Marshal(t)
		if err != nil {
			return err
		}
		if !*first {
			b = append([]byte(","), b...)
		}
		*first = false
		_, err = w.Write(b)
		return err
	}
	if tables {
		_, err = fmt.Fprintf(w, "  %s.%s  %s, %s, %s in %s\n", sqltext.Printable(t.Schema), sqltext.Printable(t.Name), t.Engine, digits.Roughly(t.Rows, "row"), digits.Bytes(t.Bytes), digits.Counted(t.Chunks, "chunk"))
	}
	return err
}

// endJSON ends the object that the tables began.
func endJSON(w io.Writer, h repo.Header, signer repo.PublicKey, schemas []*ShownSchema, objects map[string]int64) error {
	b, err := json.Marshal(shownRest{h, signer, schemas, objects})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "],%s\n", b[1:])
	return err
}

func showHeader(w io.Writer, h repo.Header, signer repo.PublicKey) {
	fmt.Fprintf(w, "Backup   %s, %s, by %s\n", h.ID, h.Kind, sqltext.Printable(h.Tool))
	if signer == "" {
		signer = "nobody"
	}
	fmt.Fprintf(w, "Signed   by %s\n", signer)
	fmt.Fprintf(w, "Server   %s, %s %s\n", sqltext.Printable(h.Server.Name), h.Server.Flavour, h.Server.Version)
	fmt.Fprintf(w, "Moment   %s UTC; taken from %s to %s\n", h.Snapshot.UTC().Format("2006-01-02 15:04:05.000"), h.Began.UTC().Format("15:04:05"), h.Ended.UTC().Format("15:04:05"))
	if h.Parent != "" {
		fmt.Fprintf(w, "After    %s\n", h.Parent)
	}
	if len(h.Partial) > 0 {
		fmt.Fprintf(w, "Only     %s\n", sqltext.Printable(strings.Join(h.Partial, ", ")))
	}
	fmt.Fprintf(w, "Holds    %s, %s, %s; %s, %s; added %s\n", digits.Counted(h.Schemas, "schema"), digits.Counted(h.Tables, "table"), digits.Counted(h.Objects, "other object"), digits.Roughly(h.Rows, "row"), digits.Bytes(h.Bytes), digits.Bytes(h.Stored))
	for _, line := range positionWords(h.Position) {
		fmt.Fprintf(w, "Position %s\n", line)
	}
	for _, n := range h.Notes {
		fmt.Fprintf(w, "Note     %s\n", sqltext.Printable(n))
	}
}
