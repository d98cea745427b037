package fleet

// Cost is what statements cost: those of a class, a text, a minute or a range.
type Cost struct {
	Calls         int64   `json:"calls"`
	Seconds       float64 `json:"seconds"`      // sum of their latency
	LockSeconds   float64 `json:"lock_seconds"` // thereof waiting for table locks
	RowsSent      int64   `json:"rows_sent"`
	RowsExamined  int64   `json:"rows_examined"`
	RowsAffected  int64   `json:"rows_affected"`
	Errors        int64   `json:"errors"`
	Warnings      int64   `json:"warnings"`
	TmpTables     int64   `json:"tmp_tables"`      // internal temporary tables made
	TmpDiskTables int64   `json:"tmp_disk_tables"` // thereof on disk
	NoIndex       int64   `json:"no_index"`        // calls that read a table without an index
	SortRows      int64   `json:"sort_rows"`
	MaxSeconds    float64 `json:"max"` // the slowest call; 0: not known
}

// counts are the fields that are whole numbers.
func (c *Cost) counts() []*int64 {
	return []*int64{&c.Calls, &c.RowsSent, &c.RowsExamined, &c.RowsAffected, &c.Errors, &c.Warnings, &c.TmpTables, &c.TmpDiskTables, &c.NoIndex, &c.SortRows}
}

// Add adds what other statements cost.
func (c *Cost) Add(d Cost) {
	more := d.counts()
	for i, n := range c.counts() {
		*n += *more[i]
	}
	c.Seconds += d.Seconds
	c.LockSeconds += d.LockSeconds
	c.MaxSeconds = max(c.MaxSeconds, d.MaxSeconds)
}

// Anew reports whether counting restarted since an earlier reading: the server was restarted, or its table emptied.
func (c Cost) Anew(before Cost) bool { return c.Calls < before.Calls || c.Seconds < before.Seconds }

// Since is what was added since an earlier reading; all of it if counting restarted. The slowest call is known only if it is slower than
// all before.
func (c Cost) Since(before Cost) Cost {
	if c.Anew(before) {
		return c
	}
	was := before.counts()
	for i, n := range c.counts() {
		*n = max(*n-*was[i], 0)
	}
	c.Seconds -= before.Seconds
	c.LockSeconds = max(c.LockSeconds-before.LockSeconds, 0)
	if c.MaxSeconds <= before.MaxSeconds {
		c.MaxSeconds = 0
	}
	return c
}
