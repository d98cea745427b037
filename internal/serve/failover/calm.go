package failover

import "time"

// calm is since when a group was not failed over by itself, by the clock of who looks: when it was is by the clock of who led then.
type calm struct {
	failed time.Time // as the group has it
	since  time.Time
	looked bool
}

// see takes a look at when a group was failed over last. Only of what was there at the first look is it believed how long ago that is.
func (c *calm) see(failed, now time.Time) {
	if c.looked && c.failed.Equal(failed) {
		return
	}
	passed := time.Duration(0)
	if !c.looked {
		passed = max(0, now.Sub(failed))
	}
	c.failed, c.since, c.looked = failed, now.Add(-passed), true
}
