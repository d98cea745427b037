package alter

import (
	"math"
	"strconv"

	"github.com/rissodb/risso/internal/digits"

	"time"
)

// Forecast is how long an ALTER TABLE will take, and what room it needs.
type Forecast struct {
	Moment  bool     `json:"moment"` // no more than changing the definition
	Known   bool     `json:"known"`  // seconds, low and high are set
	Seconds float64  `json:"seconds,omitempty"`
	Low     float64  `json:"low,omitempty"` // between Low and High it is likely to be
	High    float64  `json:"high,omitempty"`
	Basis   string   `json:"basis,omitempty"`  // how it was found out, and how sure that is; or why it is not known
	Extra   float64  `json:"extra_bytes"`      // in the data directory, while it works
	Sort    float64  `json:"sort_bytes"`       // in the folder for temporary files, at most about
	Log     float64  `json:"log_bytes"`        // of the changes that others make meanwhile, in that folder
	Free    *bool    `json:"enough,omitempty"` // the free space is enough; left out: not known
	Disk    []string `json:"-"`
}

// How far off a forecast may be. Here: measured on the machine of the server itself; elsewhere: on another, corrected by how fast both read the
// same rows; uncorrected: as fast as the machine where it was measured.
const (
	offHere        = 1.5
	offElsewhere   = 2
	offUncorrected = 4
)

func forecast(f *Facts, p *Plan, empty time.Duration, s Sample) (c Forecast) {
	if p.Kind == KindInstant || p.Kind == KindInPlace && !p.Rebuilds && len(p.Builds) == 0 && !scanned(empty, s) {
		c.Moment, c.Known, c.Seconds, c.Low, c.High = true, true, empty.Seconds(), 0, 1
		return c
	}
	size := float64(f.Size())
	c.space(f, p, s, size)
	if s.Unmeasured != "" || len(s.Points) == 0 {
		c.Basis = s.Unmeasured
		if c.Basis == "" {
			c.Basis = "no part of the rows was measured"
		}
		c.room(f)
		return c
	}
	last := s.Points[len(s.Points)-1]
	base := min(empty.Seconds(), last.Seconds)
	c.Known = true
	work := (last.Seconds - base) * larger(f, s, size/float64(max(1, last.Bytes)))
	c.Basis = plainly("an alike table with %s of the real rows (%s) took %s", digits.Bytes(last.Bytes), digits.Roughly(s.Rows, "row"), digits.Seconds(last.Seconds))
	off := offHere
	if s.Elsewhere {
		off = offUncorrected
		c.Basis += " on this machine, which is not the server's"
		if len(s.Reads) == 2 && s.Reads[0] > 0 && s.Reads[1] > 0 {
			ratio := s.Reads[1] / s.Reads[0]
			work *= ratio
			off = offElsewhere
			c.Basis += plainly("; the server read the same rows in %s, this machine in %s", digits.Seconds(s.Reads[1]), digits.Seconds(s.Reads[0]))
		}
	}
	c.Seconds = base + work
	if last.Bytes >= int64(size*0.9) { // nothing was extrapolated
		off = min(off, offElsewhere)
	} else if last.Seconds-base < 0.2 {
		off *= 2
		c.Basis += "; that is short to measure"
	}
	c.Low, c.High = c.Seconds/off, c.Seconds*off
	if p.Kind == KindCopy && f.Index > 0 && s.MorePool > 1.5 { // rows get into indexes at random places
		c.High *= min(s.MorePool, 4)
		c.Basis += plainly("; the sandbox's memory holds %s times more of the table than the server's: it may take longer", digits.Count(math.Round(s.MorePool)))
	}
	if f.Traffic.Known && f.Traffic.RowEdits > 0 {
		c.Basis += "; others' load on the server makes it longer"
	}
	c.log(f, p)
	c.room(f)
	return c
}

// larger is how many times the work there is in all rows, where bytes are so many times those of the part. A table whose pages are not full has more
// bytes for the same rows: they are read, but not written again, so it is in between. Where rows and bytes disagree altogether the number of rows is
// not known: it is an estimate from few pages.
func larger(f *Facts, s Sample, bytes float64) float64 {
	rows := float64(f.Rows) / float64(max(1, s.Rows))
	if rows > bytes/2 && rows < bytes*2 {
		bytes = math.Sqrt(rows * bytes)
	}
	return max(1, bytes)
}

// scanned reports whether a change that writes nothing anew still took longer with rows than without: then all rows are read.
func scanned(empty time.Duration, s Sample) bool {
	if len(s.Points) == 0 {
		return false
	}
	last := s.Points[len(s.Points)-1]
	return last.Seconds > 0.25 && last.Seconds > 4*empty.Seconds()
}

// space is how much is written.
func (c *Forecast) space(f *Facts, p *Plan, s Sample, size float64) {
	grown := 1.0
	if s.Bytes > 0 && s.Grown > 0 {
		grown = float64(s.Grown) / float64(s.Bytes)
	}
	switch {
	case p.Rebuilds:
		c.Extra = size * grown
		if f.File > 0 && s.Grown == 0 {
			c.Extra = math.Max(c.Extra, float64(f.File))
		}
		if p.Kind == KindInPlace {
			c.Sort = float64(f.Index)
		}
		c.Disk = append(c.Disk, plainly("the new table takes about %s beside the old one, which goes at the end", bytesOf(c.Extra)))
	case len(p.Builds) > 0:
		c.Extra = size * math.Max(0, grown-1)
		if s.Grown == 0 {
			c.Extra = float64(f.Data) / 2
			c.Disk = append(c.Disk, plainly("the new indexes take up to about %s (half of the data; not measured)", bytesOf(c.Extra)))
		} else {
			c.Disk = append(c.Disk, plainly("the new indexes take about %s", bytesOf(c.Extra)))
		}
		c.Sort = 2 * c.Extra
	default:
		return
	}
	if c.Sort > 0 {
		c.Disk = append(c.Disk, plainly("to sort it needs up to about %s in %s, one index after the other", bytesOf(c.Sort), f.Place.TmpDir))
	}
}

// log is how much of the changes of others has to be kept while it works.
func (c *Forecast) log(f *Facts, p *Plan) {
	if p.Kind != KindInPlace || !p.Writes || !f.Traffic.Known || f.Traffic.RowEdits == 0 || f.Rows <= 0 {
		return
	}
	row := float64(f.Data)/float64(f.Rows) + 20
	c.Log = f.Traffic.RowEdits * row * c.Seconds
	most, err := strconv.ParseInt(f.Variables["innodb_online_alter_log_max_size"], 10, 64)
	if err != nil {
		return
	}
	text := plainly("others' writes of now (%s rows) make a log of about %s meanwhile; innodb_online_alter_log_max_size allows %s", digits.Rate(f.Traffic.RowEdits), bytesOf(c.Log), digits.Bytes(most))
	if c.Log > float64(most)/2 {
		text += ": raise it before, or it may end in error 1799 with all work lost"
	}
	c.Disk = append(c.Disk, text)
}

// room compares with what is free.
func (c *Forecast) room(f *Facts) {
	pl := f.Place
	if !pl.Here || pl.DataFree < 0 || pl.TmpFree < 0 {
		c.Disk = append(c.Disk, plainly("how much is free in %s and %s is not known", pl.DataDir, pl.TmpDir))
		return
	}
	data, tmp := c.Extra, c.Sort+c.Log
	if pl.SameDisk {
		data += tmp
		tmp = 0
	}
	enough := data*1.1 < float64(pl.DataFree) && tmp*1.1 < float64(pl.TmpFree)
	c.Free = &enough
	text := plainly("free: %s in %s", digits.Bytes(pl.DataFree), pl.DataDir)
	if !pl.SameDisk {
		text += plainly(", %s in %s", digits.Bytes(pl.TmpFree), pl.TmpDir)
	}
	if !enough {
		text += ": that is not enough"
	}
	c.Disk = append(c.Disk, text)
}
