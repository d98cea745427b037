// Command mutants measures how well the tests of a room protect it: it puts small faults into the room's code, one at a time,
// and counts those that no test notices.
//
// All faults are compiled into one test binary, each behind a switch, and the binary runs once for each fault with the tests
// that reach it. A room of 500 lines takes seconds that way, where a build for each fault takes minutes; and constants, the
// limits of a rule, can be faulty too. (gremlins 0.6, the one kept tool for Go, builds every fault and leaves constants alone.)
package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	allowed = 10      // per cent of the faults that may survive
	memory  = 8 << 30 // of address space for a test that a fault made greedy
)

// switches is Go source that is added to the room: the functions that the faults are written with.
//
//go:embed switches.go.txt
var switches string

//go:embed equivalent.txt
var equivalent string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	sample := flag.Int("n", 0, "try only so many of the faults, always the same ones")
	tests := flag.String("run", "", "run only tests whose names match this pattern")
	short := flag.Bool("short", false, "run the tests with -short")
	flag.Parse()
	left, err := run(ctx, *sample, *tests, *short, flag.Arg(0), flag.Args()[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if left > allowed {
		os.Exit(1)
	}
}

// run tries the faults of a room, or a sample of them, and returns the percentage that survives.
func run(ctx context.Context, sample int, tests string, short bool, room string, files []string) (float64, error) {
	only, err := regexp.Compile(tests)
	if err != nil {
		return 0, err
	}
	dir := filepath.Join("internal", filepath.Clean("/"+strings.TrimPrefix(room, "internal/")))
	scratch, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // a temporary folder
	r, err := load(dir, files)
	if err != nil {
		return 0, err
	}
	bin, err := r.build(scratch)
	if err != nil {
		return 0, err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: memory, Max: memory}); err != nil {
		return 0, fmt.Errorf("limit memory: %w", err)
	}
	s := suite{bin: bin, dir: dir, asking: asking(dir), only: only, short: short}
	if err := s.learn(ctx, scratch); err != nil {
		return 0, err
	}
	s.try(ctx, r.faults, sample)
	return report(dir, r.faults, len(files) == 0), nil
}

// suite is the compiled tests of a room.
type suite struct {
	bin, dir string
	asking   map[string]bool // tests that start servers: a pure room is guarded without
	only     *regexp.Regexp  // tests whose names match; nil: all
	short    bool            // with -short
	tests    []test
}

// test is one test function: what it takes, and which faults it reaches.
type test struct {
	name      string
	took, cpu time.Duration // of the clock, of processors
	reaches   map[int]bool
}

// learn runs every test once by itself, without a fault.
func (s *suite) learn(ctx context.Context, scratch string) error {
	if _, err := os.Stat(s.bin); errors.Is(err, os.ErrNotExist) {
		return nil // go test -c makes none if there are no tests
	}
	cmd := exec.Command(s.bin, "-test.list", ".")
	cmd.Dir = s.dir
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("list the tests: %w", err)
	}
	for _, name := range strings.Fields(string(out)) {
		if !regexp.MustCompile(`^(Test|Example|Fuzz)`).MatchString(name) || s.asking[name] || s.only != nil && !s.only.MatchString(name) {
			continue
		}
		hits := filepath.Join(scratch, name)
		began := time.Now()
		cpu, out, err := s.run(ctx, limit{10 * time.Minute, 10 * time.Minute}, name, "MUTANT_HITS="+hits)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			fmt.Fprintf(os.Stderr, "mutants: %s is left out, it fails without a fault: %v\n%s", name, err, out)
			continue
		}
		t := test{name: name, took: time.Since(began), cpu: cpu, reaches: map[int]bool{}}
		text, err := os.ReadFile(hits)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, id := range strings.Fields(string(text)) {
			n, err := strconv.Atoi(id)
			if err != nil {
				return err
			}
			t.reaches[n] = true
		}
		if os.Getenv("MUTANTS_DEBUG") != "" {
			fmt.Fprintf(os.Stderr, "%s: %v, %d faults\n", name, t.took, len(t.reaches))
		}
		s.tests = append(s.tests, t)
	}
	slices.SortStableFunc(s.tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	return nil
}

// asking are the tests in files that start servers.
func asking(dir string) map[string]bool {
	out := map[string]bool{}
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go")) // the pattern is right
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(text, []byte("/sandboxtest\"")) {
			continue
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
			out[string(m[1])] = true
		}
	}
	return out
}

// limit is after how much time of the clock and of processors a run has hung. The latter comes first for what runs without end, and does not
// depend on what else the machine does; the former is for what waits.
type limit struct{ clock, cpu time.Duration }

var errHung = errors.New("it did not end")

// run runs the tests whose names match, within a limit, and returns the processor time that they took.
func (s *suite) run(ctx context.Context, most limit, names, env string) (time.Duration, []byte, error) {
	timed, cancel := context.WithTimeout(ctx, most.clock)
	defer cancel()
	args := []string{"-c", fmt.Sprintf(`ulimit -t %d && exec "$0" "$@"`, int(most.cpu.Seconds())), s.bin, "-test.run", "^(" + names + ")$", "-test.failfast", "-test.timeout=0"}
	if s.short {
		args = append(args, "-test.short")
	}
	cmd := exec.CommandContext(timed, "sh", args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.dir, append(os.Environ(), env), time.Second
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || ctx.Err() != nil {
		return 0, out, errors.Join(ctx.Err(), err)
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL {
		err = errHung
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), out, err
}

// try runs, for each fault, the tests that reach it; with a sample above 0, for so many. When ctx ends, the rest stays untried.
// They come in no order, so that those tried represent all, but always in the same one.
func (s *suite) try(ctx context.Context, faults []*fault, sample int) {
	work := make(chan *fault)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for f := range work {
				if fate := s.meet(ctx, f.id); ctx.Err() == nil {
					f.fate = fate
				}
			}
		})
	}
	order := rand.New(rand.NewPCG(1, 1)).Perm(len(faults))
	if sample > 0 {
		order = order[:min(sample, len(order))]
	}
	for _, i := range order {
		work <- faults[i]
	}
	close(work)
	workers.Wait()
}

// quick is how long a test may take to be run together with others.
const quick = 50 * time.Millisecond

// meet runs the tests that reach a fault: the quick ones together, then each of the others, the shortest first.
func (s *suite) meet(ctx context.Context, id int) fate {
	var batches [][]string
	var limits []limit
	for _, t := range s.tests {
		if !t.reaches[id] {
			continue
		}
		if len(batches) == 0 || t.took > quick {
			batches, limits = append(batches, nil), append(limits, limit{clock: 20 * time.Second, cpu: 2 * time.Second})
		}
		n := len(batches) - 1
		batches[n] = append(batches[n], t.name)
		limits[n].clock += 5 * t.took
		limits[n].cpu += 3 * t.cpu
	}
	if len(batches) == 0 {
		return unreached
	}
	for i, names := range batches {
		if _, _, err := s.run(ctx, limits[i], strings.Join(names, "|"), "MUTANT="+strconv.Itoa(id)); errors.Is(err, errHung) {
			return hung
		} else if err != nil {
			return killed
		}
	}
	return survived
}

// report prints what survived, and one line of figures.
func report(dir string, faults []*fault, all bool) float64 {
	slices.SortFunc(faults, func(a, b *fault) int {
		return cmp.Or(cmp.Compare(a.at.Filename, b.at.Filename), a.at.Offset-b.at.Offset, a.id-b.id)
	})
	excused, used := reasons(dir), map[string]bool{}
	count := map[fate]int{}
	for _, f := range faults {
		if f.fate == survived || f.fate == unreached {
			key := f.key()
			if _, ok := excused[key]; ok {
				f.fate, used[key] = same, true
			}
		}
		count[f.fate]++
		switch f.fate {
		case survived:
			fmt.Printf("%s: %s\t%s\n", f.at, f.change, f.line)
		case unreached:
			fmt.Printf("%s: %s\t%s\t(no test comes here)\n", f.at, f.change, f.line)
		}
	}
	for key := range excused {
		if all && !used[key] && count[untried] == 0 {
			fmt.Printf("equivalent.txt: not needed any more: %q\n", key)
		}
	}
	total := len(faults) - count[same] - count[untried]
	bad := count[survived] + count[unreached]
	left := 100 * float64(bad) / float64(max(1, total))
	if n := count[untried]; n > 0 {
		fmt.Printf("a sample: %d of %d faults were not tried\n", n, len(faults))
	}
	fmt.Printf("%s: %d faults, %d killed (%d by the clock), %d survived (%d where no test comes), %d equivalent: %.1f %% survived\n",
		strings.TrimPrefix(dir, "internal/"), len(faults), count[killed]+count[hung], count[hung], bad, count[unreached], count[same], left)
	return left
}

// reasons reads equivalent.txt: the faults of a room that change nothing that anybody could see, and why.
func reasons(dir string) map[string]string {
	out := map[string]string{}
	for _, line := range strings.Split(equivalent, "\n") {
		file, rest, _ := strings.Cut(line, "\t")
		if filepath.Dir(file) != strings.TrimPrefix(dir, "internal/") || strings.HasPrefix(line, "#") {
			continue
		}
		if i := strings.LastIndex(rest, "\t"); i > 0 {
			out[filepath.Base(file)+"\t"+rest[:i]] = rest[i+1:]
		}
	}
	return out
}

// build compiles the tests of the room with all its faults. A line that does not compile with its faults goes without them.
func (r *room) build(scratch string) (string, error) {
	bin := filepath.Join(scratch, "room.test")
	for range 5 {
		overlay, err := r.write(scratch)
		if err != nil {
			return "", err
		}
		cmd := exec.Command("go", "test", "-c", "-vet=off", "-gcflags=-e", "-o", bin, "-overlay", overlay, "./"+r.dir)
		out, err := cmd.CombinedOutput()
		if err == nil {
			return bin, nil
		}
		var bad []string
		for _, m := range regexp.MustCompile(`(?m)([\w.-]+\.go):(\d+)`).FindAllSubmatch(out, -1) {
			bad = append(bad, string(m[1])+":"+string(m[2]))
		}
		before := len(r.faults)
		r.faults = slices.DeleteFunc(r.faults, func(f *fault) bool {
			return slices.Contains(bad, fmt.Sprintf("%s:%d", filepath.Base(f.at.Filename), f.at.Line))
		})
		if len(r.faults) == before {
			return "", fmt.Errorf("the room does not compile: %s", bytes.TrimSpace(out))
		}
		fmt.Fprintf(os.Stderr, "mutants: %d faults that do not compile are left out\n", before-len(r.faults))
		if os.Getenv("MUTANTS_DEBUG") != "" {
			fmt.Fprintf(os.Stderr, "%s\n", out)
		}
	}
	return "", errors.New("the room does not compile with its faults")
}
