package backup

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/data/dump"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/mysql/snapshot"
	"github.com/rissodb/risso/internal/oneline"
)

// backupProgress is one line about a backup that runs.
func backupProgress(p dump.Progress, elapsed float64) string {
	if p.Phase != "reading" {
		return p.Phase
	}
	rate := float64(p.Bytes) / elapsed
	text := fmt.Sprintf("%d of %s, %s, %s, %s/s, stored %s", p.Tables, digits.Counted(p.Of, "table"), digits.Roughly(p.Rows, "row"), digits.Bytes(p.Bytes), digits.Bytes(rate), digits.Bytes(p.Stored))
	if p.Estimated > 0 && p.Bytes > 0 {
		share := min(0.99, float64(p.Bytes)/float64(p.Estimated))
		text = fmt.Sprintf("about %s, %s left: %s", digits.Percent(share), digits.Age(elapsed/share-elapsed), text)
	}
	return text
}

// guardWords says what the guardian of a lock did or saw.
func guardWords(e snapshot.GuardEvent) string {
	switch e.Action {
	case snapshot.GuardWithdrawn:
		return fmt.Sprintf("the request for a lock was withdrawn after %s: %s waited for it; it will be repeated", digits.Seconds(e.Running.Seconds()), digits.Counted(e.Queued, "session"))
	case snapshot.GuardGaveWay:
		return fmt.Sprintf("the backup gives way: %s queued behind session %d of %s, which wants to change a table being read: %s", digits.Counted(e.Queued, "session"), e.Session, e.User, oneline.Cut(e.Text, 100))
	case snapshot.GuardKilled:
		return fmt.Sprintf("ended a statement that the lock waited for: session %d of %s, running for %s: %s", e.Session, e.User, digits.Seconds(e.Running.Seconds()), oneline.Cut(e.Text, 100))
	}
	return fmt.Sprintf("the lock has to wait for session %d of %s, running for %s (--kill-long-queries would end it): %s", e.Session, e.User, digits.Seconds(e.Running.Seconds()), oneline.Cut(e.Text, 100))
}

// backupText shows what a backup did.
func backupText(w io.Writer, r dump.Result, place string, held time.Duration) {
	h := r.Header
	fmt.Fprintf(w, "Backup %s of %s (%s %s) in %s\n", h.ID, h.Server.Name, h.Server.Flavour, h.Server.Version, place)
	if len(h.Partial) > 0 {
		fmt.Fprintf(w, "Only     %s\n", strings.Join(h.Partial, ", "))
	}
	fmt.Fprintf(w, "Holds    %s, %s, %s; %s, %s\n", digits.Counted(h.Schemas, "schema"), digits.Counted(h.Tables, "table"), digits.Counted(h.Objects, "other object"), digits.Roughly(h.Rows, "row"), digits.Bytes(h.Bytes))
	chunks := digits.Counted(r.Chunks, "chunk")
	if r.NewChunks < r.Chunks {
		chunks += fmt.Sprintf(", %d of which already existed", r.Chunks-r.NewChunks)
	}
	fmt.Fprintf(w, "Stored   %s in %s\n", digits.Bytes(h.Stored), chunks)
	fmt.Fprintf(w, "Moment   %s UTC by %s%s\n", h.Snapshot.Format("2006-01-02 15:04:05.000"), r.Method, lockWords(r))
	for _, line := range positionWords(h.Position) {
		fmt.Fprintf(w, "Position %s\n", line)
	}
	speed := ""
	if h.Bytes > 0 {
		speed = fmt.Sprintf(", %s/s", digits.Bytes(float64(h.Bytes)/r.Seconds))
	}
	fmt.Fprintf(w, "Took     %s%s, %s a table, %s", digits.Seconds(r.Seconds), speed, digits.Seconds(r.Seconds/float64(max(1, h.Tables))), digits.Counted(r.Threads, "session"))
	if held > 0 {
		fmt.Fprintf(w, "; held back for %s", digits.Seconds(held.Seconds()))
	}
	fmt.Fprintln(w)
	for _, n := range h.Notes {
		fmt.Fprintf(w, "Note     %s\n", n)
	}
}

func lockWords(r dump.Result) string {
	text := ", no lock"
	if r.Header.LockSeconds > 0 {
		text = fmt.Sprintf(", commits were blocked for %s", digits.Seconds(r.Header.LockSeconds))
	}
	if r.DDLBlocked {
		text += "; schema changes waited"
	}
	return text
}

// positionWords are the lines about a position.
func positionWords(p repo.Position) []string {
	var out []string
	if p.File != "" {
		out = append(out, fmt.Sprintf("%s:%d", p.File, p.Offset))
	}
	if p.GTIDSet != "" {
		out = append(out, "GTID "+oneline.Cut(p.GTIDSet, 200))
	}
	for _, s := range p.Sources {
		text := fmt.Sprintf("of its source %s:%d", s.Host, s.Port)
		if s.Name != "" {
			text = fmt.Sprintf("of its source %s (%s:%d)", s.Name, s.Host, s.Port)
		}
		if s.File != "" {
			text += fmt.Sprintf(" %s:%d", s.File, s.Offset)
		}
		if s.GTIDSet != "" {
			text += " GTID " + oneline.Cut(s.GTIDSet, 200)
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		out = []string{"none: the server writes no binary log"}
	}
	return out
}

// planText shows what a backup would do.
func planText(w io.Writer, p dump.Plan, place string) {
	fmt.Fprintf(w, "Would read %s, %s, about %s, %s of %s %s\n", digits.Counted(p.Schemas, "schema"), digits.Counted(p.Tables, "table"), digits.Roughly(p.Rows, "row"), digits.Bytes(p.Bytes), p.Flavour, p.Version)
	if place != "" {
		fmt.Fprintf(w, "into %s\n", places.Words(place))
	}
	for _, t := range p.Largest {
		fmt.Fprintf(w, "  %-50s %10s  %s\n", oneline.Cut(t.Name, 50), digits.Bytes(t.Bytes), t.How)
	}
	if p.More > 0 {
		fmt.Fprintf(w, "  and %s\n", digits.Counted(p.More, "smaller one"))
	}
	fmt.Fprintf(w, "Views %d, sequences %d\n", p.Views, p.Sequences)
	for _, m := range p.Methods {
		fmt.Fprintf(w, "Moment: %s\n", m)
	}
	for _, n := range p.Notes {
		fmt.Fprintf(w, "Note: %s\n", n)
	}
	fmt.Fprintln(w, "Nothing was read but lists, nothing was locked.")
}
