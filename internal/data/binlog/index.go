package binlog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/rissodb/risso/internal/binlogevent"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
)

// Index is what is known of one log without reading it again.
type Index struct {
	Name         string        `json:"name"`
	Size         int64         `json:"size"`             // bytes, uncompressed
	SHA256       string        `json:"sha256,omitempty"` // SHA-256 of all bytes; of an encrypted log see HMAC
	Server       string        `json:"server"`           // its version
	ServerID     uint32        `json:"server_id"`
	First        time.Time     `json:"first"` // time of the first event
	Last         time.Time     `json:"last"`
	Earliest     time.Time     `json:"earliest,omitzero"` // earliest time of all events and commits; not known for logs indexed by older versions
	Latest       time.Time     `json:"latest,omitzero"`
	Before       mysql.GTIDSet `json:"gtids_before"` // GTIDs that the server had when it began the log
	After        mysql.GTIDSet `json:"gtids_after"`  // GTIDs that the server had when it ended the log
	Transactions int64         `json:"transactions"`
	Events       int64         `json:"events"`
	Closed       bool          `json:"closed"` // the server has finished the log: it will not grow
	HeadLen      int64         `json:"head_len"`
	Head         string        `json:"head"` // SHA-256 of the first HeadLen bytes, which distinguishes a log from others of the same name
	Stored       int64         `json:"stored,omitempty"`
	StoredSHA256 string        `json:"stored_sha256,omitempty"` // SHA-256 of the stored bytes of an encrypted log, to verify it without an identity
	Encrypted    bool          `json:"encrypted,omitempty"`     // encrypted by Risso, to the recipients of the repository
	HMAC         string        `json:"hmac,omitempty"`          // HMAC-SHA-256 of all bytes, with the repository's key for names
	Decrypted    bool          `json:"decrypted,omitempty"`     // the server's own file is encrypted, so its bytes differ from the mirrored ones

	Signature *repo.LogSignature `json:"signature,omitempty"` // who mirrored it; nil: not signed
}

// headEvents is how many events belong to a log's head: format description, and GTIDs before it.
const headEvents = 2

// Scan reads a log and makes its index. Every checksum is verified. With an error the index is of what came before it;
// Size is then where the damage begins.
func Scan(ctx context.Context, name string, in io.Reader) (Index, error) {
	return ScanSum(ctx, name, in, sha256.New())
}

// ScanSum is Scan with another hash of all bytes, which takes the place of SHA256.
func ScanSum(ctx context.Context, name string, in io.Reader, all hash.Hash) (Index, error) {
	x := Index{Name: name}
	head := sha256.New()
	r, err := binlogevent.NewReader(io.TeeReader(in, all), binlogevent.Options{MaxBody: 16 << 20, KeepPayload: true, Skip: notForIndex})
	if err != nil {
		return x, err
	}
	defer r.Close()
	head.Write(binlogevent.Magic)
	x.HeadLen, x.Size = int64(len(binlogevent.Magic)), int64(len(binlogevent.Magic))
	var t gtids
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			x.SHA256 = hex.EncodeToString(all.Sum(nil))
			x.finish(head.Sum(nil), &t)
			return x, nil
		}
		if err != nil {
			x.finish(head.Sum(nil), &t)
			return x, fmt.Errorf("%s: %w", name, err)
		}
		if ctx.Err() != nil {
			return x, context.Cause(ctx)
		}
		if x.Events < headEvents {
			if e.Whole {
				binlogevent.ClearInUse(e.Raw)
				head.Write(e.Raw)
				x.HeadLen = e.End
			}
			if x.Events == 0 {
				x.Server, x.ServerID = r.Format().Version, e.ServerID
			}
		}
		x.add(e, &t)
	}
}

func (x *Index) finish(head []byte, t *gtids) {
	x.Head = hex.EncodeToString(head)
	x.Transactions = t.count
	x.After = x.Before.Union(t.done)
}

// notForIndex are the events of which an index needs only the header.
func notForIndex(h binlogevent.Header) bool {
	switch h.Type {
	case binlogevent.TypeGTID, binlogevent.TypeAnonymousGTID, binlogevent.TypeGTIDTagged, binlogevent.TypeMariaGTID, binlogevent.TypePreviousGTIDs, binlogevent.TypeMariaGTIDList,
		binlogevent.TypeQuery, binlogevent.TypeQueryZip, binlogevent.TypeRotate:
		return false
	}
	return true
}

func (x *Index) add(e binlogevent.Event, t *gtids) {
	x.Events++
	x.Size = e.End
	if e.Seconds > 0 {
		at := time.Unix(int64(e.Seconds), 0).UTC()
		if x.First.IsZero() {
			x.First = at
		}
		x.Last = at
		x.spans(at)
	}
	switch e.Type {
	case binlogevent.TypePreviousGTIDs, binlogevent.TypeMariaGTIDList:
		if s, err := binlogevent.ParseGTIDs(e); err == nil {
			x.Before = s
		}
	case binlogevent.TypeRotate, binlogevent.TypeStop:
		x.Closed = true
	case binlogevent.TypeIgnorable:
		x.Decrypted = x.Decrypted || x.Events == 2 // see binlogevent.Readable
	}
	if t.event(e) && !t.b.GTID.Committed.IsZero() {
		x.spans(t.b.GTID.Committed)
	}
}

// spans notes a time at which something in the log happened.
func (x *Index) spans(at time.Time) {
	if x.Earliest.IsZero() || at.Before(x.Earliest) {
		x.Earliest = at
	}
	if at.After(x.Latest) {
		x.Latest = at
	}
}

// gtids counts transactions and gathers those that are complete.
type gtids struct {
	b     binlogevent.Boundaries
	done  mysql.GTIDSet
	count int64
}

func (t *gtids) event(e binlogevent.Event) (ended bool) {
	_, ended = t.b.Next(e)
	if ended {
		t.done.Add(t.b.GTID.ID)
		t.count++
	}
	return ended
}

// mayHave reports whether the log may have a transaction of a set.
func (x *Index) mayHave(set mysql.GTIDSet) bool {
	left := set.Subtract(x.Before)
	if set.ByDomain() || x.After.Empty() { // there a set is what came up to a number
		return !left.Empty()
	}
	return !left.Equal(left.Subtract(x.After))
}
