package collect

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestEverySecondOnce runs the clock of a collector through a tick that takes too long: the second after it is
// late, those that are over are left out, and none comes twice.
func TestEverySecondOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begin := time.Now().Truncate(time.Second)
		var got []int
		Every(ctx, 8*time.Millisecond, func(due time.Time) time.Time {
			n := int(due.Sub(begin) / time.Second)
			got = append(got, n)
			late := time.Since(due)
			switch n {
			case 3:
				time.Sleep(1200 * time.Millisecond)
			case 4:
				if late < 100*time.Millisecond || late > time.Second {
					t.Errorf("second 4 came %v late, want from 100 * time.Millisecond to time.Second", late)
				}
			case 6:
				time.Sleep(3500 * time.Millisecond)
			case 12:
				cancel()
			default:
				if n != 9 && late > 0 {
					t.Errorf("second %d came %v late", n, late)
				}
			}
			return due
		})
		want := []int{1, 2, 3, 4, 5, 6, 9, 10, 11, 12}
		if len(got) > 0 && got[0] == 0 {
			got = got[1:]
		}
		for i := range want {
			if i >= len(got) || got[i] != want[i] {
				t.Fatalf("seconds %v, want %v", got, want)
			}
		}
	})
}

// TestClockGoesBack: a collector goes on within a second, however far the machine's clock goes back, and forward again. The
// times replace the clock, which a test cannot set back.
func TestClockGoesBack(t *testing.T) {
	const phase = 8 * time.Millisecond
	begin := time.Now().Truncate(time.Second)
	last := begin.Add(phase)
	for _, jump := range []time.Duration{0, -time.Second, -3 * time.Second, -time.Hour, 2 * time.Hour, -30 * 24 * time.Hour, 20 * 365 * 24 * time.Hour} {
		now := last.Add(10*time.Millisecond + jump)
		due := nextDue(now, last, phase)
		if wait := due.Sub(now); wait > 3*time.Second || wait < -time.Second {
			t.Errorf("after a jump of %s the next tick comes in %s; want wait at most 3 * time.Second, wait at least -time.Second", jump, wait)
		}
		if jump >= -time.Second && !due.After(last) {
			t.Errorf("after a jump of %s the second %s comes twice", jump, due)
		}
		last = due
	}
}
