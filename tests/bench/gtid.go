package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox"
)

// gtidSets subtracts sets of very many intervals, by turns with the server's own GTID_SUBTRACT.
func (b *bench) gtidSets(ctx context.Context, s *section) error {
	intervals := 1_000_000
	if b.quick {
		intervals = 20_000
	}
	sb, err := sandbox.Up(ctx, sandbox.Options{Dir: filepath.Join(b.work, "sb"), Servers: []string{"mysql-9.7"}, Settings: []string{"max_allowed_packet=1G"}})
	if err != nil {
		return err
	}
	defer down(ctx, sb)
	one, other := gtidIntervals(intervals, 1, 5), gtidIntervals(intervals, 3, 8)
	files := [2]string{filepath.Join(b.work, "a"), filepath.Join(b.work, "b")}
	for i, text := range []string{one, other} {
		if err := os.WriteFile(files[i], []byte(text), 0o600); err != nil {
			return err
		}
	}
	target, err := mysql.ParseTarget(sb.Primary().DSN)
	if err != nil {
		return err
	}
	c, err := mysql.Connect(ctx, target.WithPatience(30*time.Minute), nil)
	if err != nil {
		return err
	}
	defer c.Close()
	for name, text := range map[string]string{"@a": one, "@b": other} {
		if err := c.Exec(ctx, "SET "+name+" = '"+text+"'"); err != nil {
			return err
		}
	}
	s.note("Server: %s %s; both sets have one source and %d intervals, which overlap by turns. The server's sets are in its variables, and its answer is not sent; Risso reads two files of %d bytes in all and prints the answer.", sb.Primary().Server, sb.Primary().Version, intervals, len(one)+len(other))
	var ours, inside, theirs []float64
	for round := range b.rounds {
		say("gtid: round %d of %d", round+1, b.rounds)
		u, err := b.measure(ctx, nil, b.risso, "gtid", "subtract", "@"+files[0], "@"+files[1])
		if err != nil {
			return err
		}
		ours = append(ours, u.wall)
		began := time.Now()
		if err := gtidSubtract(one, other); err != nil {
			return err
		}
		inside = append(inside, time.Since(began).Seconds())
		began = time.Now()
		length, err := c.Text(ctx, "SELECT LENGTH(GTID_SUBTRACT(@a, @b))")
		if err != nil {
			return err
		}
		theirs = append(theirs, time.Since(began).Seconds())
		if got := fmt.Sprint(len(strings.TrimSpace(string(u.out)))); got != length {
			return fmt.Errorf("risso prints %s bytes, the server has %s", got, length)
		}
	}
	t := s.table(fmt.Sprintf("A − B, %d intervals each: seconds, median of %d rounds (least to most)", intervals, b.rounds), "program", "seconds")
	for _, row := range []struct {
		name string
		v    []float64
	}{{"risso gtid subtract, the whole program with two files read", ours}, {"the same in memory, text to text, as the server does it", inside}, {"GTID_SUBTRACT", theirs}} {
		t.row(row.name, fmt.Sprintf("%s (%s to %s)", figure(median(row.v)), figure(quantile(row.v, 0)), figure(quantile(row.v, 1))))
	}
	s.Figures["risso_seconds"], s.Figures["memory_seconds"], s.Figures["server_seconds"] = median(ours), median(inside), median(theirs)
	s.below("a set of 1,000,000 intervals from another", median(ours), 1, " s")
	s.atLeast("times the server's GTID_SUBTRACT, text to text", median(theirs)/median(inside), 10, "")
	s.atLeast("times the server's GTID_SUBTRACT, by the whole program", median(theirs)/median(ours), 10, "")
	return nil
}

// gtidSubtract does in memory what GTID_SUBTRACT does.
func gtidSubtract(one, other string) error {
	x, err := mysql.ParseGTIDSet(one)
	if err != nil {
		return err
	}
	y, err := mysql.ParseGTIDSet(other)
	if err != nil {
		return err
	}
	if x.Subtract(y).String() == "" {
		return errors.New("nothing is left")
	}
	return nil
}

// gtidIntervals is a set of one source with an interval in each ten numbers.
func gtidIntervals(count, from, to int) string {
	var text strings.Builder
	text.WriteString("3e11fa47-71ca-11e1-9e33-c80aa9429562")
	for i := range count {
		fmt.Fprintf(&text, ":%d-%d", i*10+from, i*10+to)
	}
	return text.String()
}
