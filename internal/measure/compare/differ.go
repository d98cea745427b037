package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/bench"
	"github.com/rissodb/risso/internal/measure/environ"
)

// differences lists what is not alike, apart from what was set on purpose: of the runs themselves, then of their environments.
func differences(a, b *Side) []environ.Difference {
	out := []environ.Difference{}
	add := func(what string, of func(*bench.Result) string) {
		va, vb := valuesOf(a.Runs, of), valuesOf(b.Runs, of)
		if va != vb && va != "" && vb != "" {
			out = append(out, environ.Difference{What: what, A: va, B: vb})
		}
	}
	add("workload", func(r *bench.Result) string { return r.Workload })
	add("threads", func(r *bench.Result) string {
		if r.Threads == 0 {
			return "" // unknown
		}
		return fmt.Sprint(r.Threads)
	})
	add("rate", func(r *bench.Result) string { return fmt.Sprint(r.Rate) })
	add("seconds measured", func(r *bench.Result) string {
		return digits.Seconds(math.Round(r.Seconds))
	})
	add("warm-up", func(r *bench.Result) string { return digits.Seconds(r.WarmupSeconds) })
	add("address", func(r *bench.Result) string { return r.Server })
	if environmentOf(a.Runs) == nil || environmentOf(b.Runs) == nil { // which tell it too
		add("server version", func(r *bench.Result) string { return r.ServerVersion })
	}
	for _, name := range parameterNames(a, b) {
		add("parameter "+name, func(r *bench.Result) string {
			if v, ok := r.Parameters[name]; ok {
				return fmt.Sprint(v)
			}
			return "(none)"
		})
	}
	set := map[string]bool{}
	for _, s := range slices.Concat(a.Settings, b.Settings) {
		set[s.Name] = true
	}
	for _, d := range environ.Differences(environmentOf(a.Runs), environmentOf(b.Runs)) {
		if !set[d.What] { // what was set on purpose
			out = append(out, d)
		}
	}
	return out
}

// parameterNames are those that any run was given, except those that are reported elsewhere.
func parameterNames(sides ...*Side) []string {
	names := map[string]bool{}
	for _, s := range sides {
		for _, r := range s.Runs {
			for n := range r.Parameters {
				names[n] = !slices.Contains([]string{"threads", "rate", "time", "warmup", "seed"}, n)
			}
		}
	}
	maps.DeleteFunc(names, func(_ string, told bool) bool { return !told })
	return sorted(names)
}

// environmentOf is what the first run that wrote it down ran under.
func environmentOf(runs []*bench.Result) *environ.Environment {
	for _, r := range runs {
		if r.Environment != nil {
			return r.Environment
		}
	}
	return nil
}

// valuesOf joins the distinct values of a side's runs.
func valuesOf(runs []*bench.Result, of func(*bench.Result) string) string {
	var list []string
	for i := range runs {
		if v := of(runs[i]); !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return strings.Join(list, ", ")
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
