package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// spent is what a program took.
type spent struct {
	cpu, wall float64 // seconds; cpu is user and system time of all threads
	peak      float64 // bytes of resident memory, at most
	out       []byte
}

// measure runs a program to its end.
func (b *bench) measure(ctx context.Context, env []string, name string, args ...string) (spent, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return spent{}, fmt.Errorf("%s: %w: %.300s", name, err, errs.String())
	}
	u := spent{wall: time.Since(began).Seconds(), cpu: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), out: out.Bytes()}
	if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.peak = float64(r.Maxrss) * 1024
	}
	return u, nil
}

// digest reads one log with pt-query-digest and with risso digest.
func (b *bench) digest(ctx context.Context, s *section) error {
	size, cut := int64(500e6), int64(100e6)
	if b.quick {
		size, cut = 100e6, 20e6
	}
	log, part := filepath.Join(b.work, "slow.log"), filepath.Join(b.work, "part.log")
	say("digest: a log of %d MB", size/1e6)
	events, err := writeSlowLog(log, size)
	if err != nil {
		return err
	}
	partEvents, err := writeSlowLog(part, cut) // the same log, ended earlier
	if err != nil {
		return err
	}
	s.note("The log: %d events of %d classes, %.0f MB, in the forms of MySQL, MySQL with log_slow_extra, Percona Server and MariaDB in turns.", events, shapeCount(), float64(size)/1e6)
	s.note("pt-query-digest reads the first %.0f MB (%d events) only: its speed does not depend on the size.", float64(cut)/1e6, partEvents)
	var pt, one, two []float64
	var ptPeak, peak float64
	var ptOut []byte
	for round := range b.rounds {
		say("digest: round %d of %d", round+1, b.rounds)
		u, err := b.measure(ctx, []string{"HOME=" + b.work}, "pt-query-digest", "--no-version-check", "--limit", "100%", "--output", "json", part)
		if err != nil {
			return err
		}
		pt, ptPeak, ptOut = append(pt, float64(cut)/1e6/u.cpu), max(ptPeak, u.peak), u.out
		if u, err = b.measure(ctx, []string{"GOMAXPROCS=1"}, b.risso, "digest", "--output", "json", log); err != nil {
			return err
		}
		one, peak = append(one, float64(size)/1e6/u.cpu), max(peak, u.peak)
		if u, err = b.measure(ctx, []string{"GOMAXPROCS=2"}, b.risso, "digest", "--output", "json", log); err != nil {
			return err
		}
		two, peak = append(two, float64(size)/1e6/u.wall), max(peak, u.peak)
	}
	t := s.table(fmt.Sprintf("MB a second, median of %d rounds (least to most)", b.rounds), "program", "MB/s", "times pt-query-digest", "peak memory, MB")
	show := func(name string, v []float64, peak float64) float64 {
		ratio := median(v) / median(pt)
		t.row(name, fmt.Sprintf("%s (%s to %s)", figure(median(v)), figure(quantile(v, 0)), figure(quantile(v, 1))), figure(ratio), figure(peak/1e6))
		return ratio
	}
	show("pt-query-digest, by processor time", pt, ptPeak)
	r1 := show("risso digest on one core, by processor time", one, peak)
	r2 := show("risso digest on two cores, by the clock", two, peak)
	s.Figures["pt_mb_s"], s.Figures["risso_1_mb_s"], s.Figures["risso_2_mb_s"], s.Figures["peak_bytes"] = median(pt), median(one), median(two), peak
	s.atLeast("times pt-query-digest's speed on one core", r1, 100, "")
	s.atLeast("times pt-query-digest's speed on two cores", r2, 200, "")
	s.below("MB of memory", peak/1e6, 100, "")
	u, err := b.measure(ctx, nil, b.risso, "digest", "--limit", "all", "--output", "json", part)
	if err != nil {
		return err
	}
	return agree(s, ptOut, u.out, partEvents)
}

// digestClass is what the comparison needs of a class.
type digestClass struct {
	calls int64
	total float64
	max   float64
	p95   float64
}

// agree compares what the two programs say of the same log.
func agree(s *section, ptOut, rissoOut []byte, events int) error {
	pt, err := ptClasses(ptOut)
	if err != nil {
		return err
	}
	var doc struct {
		Classes []struct {
			PtID  string `json:"pt_id"`
			Calls int64
			Total float64
			Max   float64
			P95   float64
		}
	}
	if err := json.Unmarshal(rissoOut, &doc); err != nil {
		return fmt.Errorf("risso digest: %w", err)
	}
	same, calls := 0, int64(0)
	worst := 0.0
	for _, c := range doc.Classes {
		calls += c.Calls
		p, ok := pt[c.PtID]
		if !ok {
			s.note("pt-query-digest has no class %s", c.PtID)
			continue
		}
		worst = max(worst, math.Abs(p.p95-c.P95)/p.p95)
		if p.calls == c.Calls && math.Abs(p.total-c.Total) < 1e-6*float64(c.Calls) && math.Abs(p.max-c.Max) < 1e-6 {
			same++
		} else {
			s.note("class %s: %d calls, %g s, at most %g s; pt-query-digest has %+v", c.PtID, c.Calls, c.Total, c.Max, p)
		}
	}
	s.note("Of the part both read: pt-query-digest has %d classes, risso %d; %d have the same calls, total and longest time. The 95 %% differ by up to %.1f %% (pt-query-digest's buckets are 5 %% wide).", len(pt), len(doc.Classes), same, 100*worst)
	s.atLeast("classes in which both agree, of "+strconv.Itoa(len(pt)), float64(same), float64(max(len(pt), shapeCount())), "")
	s.atLeast("calls counted, of "+strconv.Itoa(events), float64(calls), float64(events), "")
	return nil
}

func ptClasses(out []byte) (map[string]digestClass, error) {
	var doc struct {
		Classes []struct {
			Checksum string
			Calls    int64 `json:"query_count"`
			Metrics  struct {
				Time struct {
					Sum string
					Max string
					P95 string `json:"pct_95"`
				} `json:"Query_time"`
			}
		}
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		return nil, fmt.Errorf("pt-query-digest: %w", err)
	}
	got := map[string]digestClass{}
	for _, c := range doc.Classes {
		d := digestClass{calls: c.Calls}
		for _, x := range []struct {
			text string
			to   *float64
		}{{c.Metrics.Time.Sum, &d.total}, {c.Metrics.Time.Max, &d.max}, {c.Metrics.Time.P95, &d.p95}} {
			var err error
			if *x.to, err = strconv.ParseFloat(x.text, 64); err != nil {
				return nil, fmt.Errorf("pt-query-digest: class %s: %w", c.Checksum, err)
			}
		}
		got[c.Checksum] = d
	}
	return got, nil
}
