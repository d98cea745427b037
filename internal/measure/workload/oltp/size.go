package oltp

import (
	"fmt"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/measure/drive"
	"github.com/rissodb/risso/internal/measure/workload"
)

const (
	mostLooks = 50  // tables whose size is looked at
	leastIDs  = 0.9 // of --table-size that a table has to reach: deletes take some at the end
	missShare = 0.001
)

// lookAt compares the tables with --table-size: with ids that do not exist, a run would measure how fast nothing is found.
func (o *oltp) lookAt(s drive.Session) error {
	if o.name == "insert" || keyless(o.p) {
		return nil // it asks for none; or only a scan would tell
	}
	step := max(1, o.p.Tables/mostLooks)
	for t := 1; t <= o.p.Tables; t += step {
		rows, err := workload.Ask(s, fmt.Sprintf("SELECT /* risso: how large are the tables? */ MAX(id) FROM %s%d", tablePrefix, t))
		if err != nil {
			return err
		}
		if len(rows) != 1 || len(rows[0]) != 1 {
			continue
		}
		top := rows[0][0].Int
		have := fmt.Sprintf("%s%d has ids up to %s", tablePrefix, t, digits.Thousands(top))
		if top == 0 {
			have = fmt.Sprintf("%s%d has no rows", tablePrefix, t)
		}
		switch {
		case float64(top) < leastIDs*float64(o.p.TableSize):
			return fmt.Errorf("%w: %s, but --table-size says %s: most statements would find nothing; give the size used for prepare", workload.ErrUsage, have, digits.Thousands(int64(o.p.TableSize)))
		case top > 2*int64(o.p.TableSize) && len(o.notes) == 0:
			o.notes = append(o.notes, fmt.Sprintf("%s: only those up to --table-size %s were used.", have, digits.Thousands(int64(o.p.TableSize))))
		}
	}
	return nil
}

// Notes tell what was found of the tables, and how many statements did not find their row.
func (o *oltp) Notes() []string {
	out := o.notes
	found, missed := o.found.Load(), o.missed.Load()
	if all := found + missed; missed > 0 && float64(missed) >= missShare*float64(all) {
		why := "ids have gaps there, or are more than there are rows"
		if o.name == "delete" {
			why = "it was deleted before"
		}
		out = append(out, fmt.Sprintf("%s of %s statements by id found no row (%s): %s.", digits.Thousands(missed), digits.Thousands(all), digits.Percent(float64(missed)/float64(all)), why))
	}
	return out
}

// Finish hands over what was counted.
func (c *client) Finish() error {
	c.found.Add(c.hits)
	c.missed.Add(c.misses)
	c.hits, c.misses = 0, 0
	return nil
}

// note counts whether a statement by id found its row.
func (c *client) note(rows int64) {
	if rows > 0 {
		c.hits++
	} else {
		c.misses++
	}
}
