package alter

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/digits"
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
	if s.Unmeasured != "" || len(s.Parts) == 0 {
		c.Basis = s.Unmeasured
		if c.Basis == "" {
			c.Basis = "no part of the rows was measured"
		}
		c.room(f)
		return c
	}
	c.Known = true
	c.scale(f, empty.Seconds(), s)
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

// scale says how long all rows take by how long the parts took: their median, for one of them may have met with something else on the machine.
func (c *Forecast) scale(f *Facts, base float64, s Sample) {
	parts := slices.Clone(s.Parts)
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Compare(a.Seconds, b.Seconds) })
	times := make([]string, len(parts))
	for i, p := range parts {
		times[i] = digits.Seconds(p.Seconds)
	}
	base = min(base, parts[0].Seconds)
	work := func(p Part) float64 { return (p.Seconds - base) * larger(f, p) }
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Compare(work(a), work(b)) })
	middle, low, high := parts[(len(parts)-1)/2], work(parts[0]), work(parts[len(parts)-1])
	alike := "an alike table"
	if len(parts) > 1 {
		alike = "alike tables, each"
	}
	c.Basis = plainly("%s with %s of the real rows (%s) took %s", alike, digits.Bytes(middle.Bytes), digits.Roughly(middle.Rows, "row"), strings.Join(times, ", "))
	off, ratio := offHere, 1.0
	if s.Elsewhere {
		off = offUncorrected
		c.Basis += " on this machine, which is not the server's"
		if len(s.Reads) == 2 && s.Reads[0] > 0 && s.Reads[1] > 0 {
			ratio = s.Reads[1] / s.Reads[0]
			off = offElsewhere
			c.Basis += plainly("; the server read the same rows in %s, this machine in %s", digits.Seconds(s.Reads[1]), digits.Seconds(s.Reads[0]))
		}
	}
	c.Seconds = base + work(middle)*ratio
	if middle.Bytes >= int64(float64(f.Size())*0.9) { // nothing was extrapolated
		off = min(off, offElsewhere)
	} else if middle.Seconds-base < 0.2 {
		off *= 2
		c.Basis += "; that is short to measure"
	}
	c.Low, c.High = min(c.Seconds/off, base+low*ratio), max(c.Seconds*off, base+high*ratio)
}

// larger is how many times the work there is in all rows, where bytes are so many times those of the part. A table whose pages are not full has more
// bytes for the same rows: they are read, but not written again, so it is in between. Where rows and bytes disagree altogether the number of rows is
// not known: it is an estimate from few pages.
func larger(f *Facts, p Part) float64 {
	bytes := float64(f.Size()) / float64(max(1, p.Bytes))
	rows := float64(f.Rows) / float64(max(1, p.Rows))
	if rows > bytes/2 && rows < bytes*2 {
		bytes = math.Sqrt(rows * bytes)
	}
	return max(1, bytes)
}

// scanned reports whether a change that writes nothing anew still took longer with rows than without: then all rows are read.
func scanned(empty time.Duration, s Sample) bool {
	return len(s.Parts) > 0 && !slices.ContainsFunc(s.Parts, func(p Part) bool { return p.Seconds <= 0.25 || p.Seconds <= 4*empty.Seconds() })
}

// space is how much is written.
func (c *Forecast) space(f *Facts, p *Plan, s Sample, size float64) {
	grown, measured := 1.0, len(s.Parts) > 0 && s.Parts[0].Grown > 0
	if measured {
		grown = float64(s.Parts[0].Grown) / float64(max(1, s.Parts[0].Bytes))
	}
	switch {
	case p.Rebuilds:
		c.Extra = size * grown
		if f.File > 0 && !measured {
			c.Extra = math.Max(c.Extra, float64(f.File))
		}
		if p.Kind == KindInPlace {
			c.Sort = float64(f.Index)
		}
		c.Disk = append(c.Disk, plainly("the new table takes about %s beside the old one, which goes at the end", bytesOf(c.Extra)))
	case len(p.Builds) > 0:
		c.Extra = size * math.Max(0, grown-1)
		if !measured {
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
