package oltp

import (
	"strconv"

	"github.com/rissodb/risso/internal/measure/drive"
)

// bulkSize is the largest INSERT of many rows. Source: sysbench.
const bulkSize = 512 << 10

// bulk is a session of bulk_insert: each transaction is one row of its own table; the server gets them when they fill
// a statement, and at the end of the run.
type bulk struct {
	session drive.Session
	head    string
	row     int64
	text    []byte
	last    int // length of the text without the row that did not fit
}

func newBulk(s drive.Session, id int) (*bulk, error) {
	table := tablePrefix + strconv.Itoa(id+1)
	r, err := drive.Ask(s, "SELECT /* risso: where to go on */ COALESCE(MAX(id), 0) FROM "+table)
	if err != nil {
		return nil, err
	}
	b := &bulk{session: s, head: "INSERT INTO " + table + " VALUES", row: r.Values[0].Int}
	b.text = append(make([]byte, 0, bulkSize+64), b.head...)
	return b, nil
}

// Transaction adds a row. A statement that failed is given up with its rows.
func (b *bulk) Transaction() error {
	b.last = len(b.text)
	b.row++
	b.append()
	if len(b.text) <= bulkSize {
		return nil
	}
	_, err := b.session.Exec(drive.Write, string(b.text[:b.last]))
	b.text = b.text[:len(b.head)]
	b.append()
	return err
}

// Finish sends the rows that did not fill a statement, as sysbench does.
func (b *bulk) Finish() error {
	if len(b.text) == len(b.head) {
		return nil
	}
	_, err := b.session.Exec(drive.Write, string(b.text))
	b.text = b.text[:len(b.head)]
	return err
}

func (b *bulk) append() {
	if len(b.text) > len(b.head) {
		b.text = append(b.text, ',')
	}
	b.text = strconv.AppendInt(append(b.text, '('), b.row, 10)
	b.text = append(strconv.AppendInt(append(b.text, ','), b.row, 10), ')')
}
