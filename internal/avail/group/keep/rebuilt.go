package keep

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/avail/failover"
)

// kindRebuilt is the kind of documents that say what became of members that were rebuilt.
const kindRebuilt = "group_rebuild"

// Rebuilt is a rebuild of a member: what only it had, and what was done. It is written down before anything of the member is gone, and stays.
type Rebuilt struct {
	Group  string    `json:"group"`
	Member string    `json:"member"`
	By     string    `json:"by"`
	Began  time.Time `json:"began"`
	Filled time.Time `json:"filled,omitzero"` // when it had the data, and followed the primary; it is compared after that
	Ended  time.Time `json:"ended,omitzero"`
	Errant string    `json:"errant"` // the transactions that only it had
	// Contents are what they changed, as its binary logs told; nil: there were none, or an earlier run had dropped them.
	Contents *failover.Contents `json:"contents,omitempty"`
	Loses    []string           `json:"loses"` // what else it had alone
	From     string             `json:"from"`  // whose data it got
	Because  string             `json:"why"`   // why those
	Plan     []string           `json:"plan"`
	Journal  string             `json:"journal,omitempty"` // file on the controller's machine, with each step
	Compare  string             `json:"compare,omitempty"` // with the primary, at the end
	Problem  string             `json:"problem,omitempty"` // why it was not done

	version int64
}

// SaveRebuilt writes it down.
func (r *Room) SaveRebuilt(ctx context.Context, b *Rebuilt) error {
	if err := r.write(ctx, kindRebuilt, b.Group+"/"+b.Member+"/"+b.Began.UTC().Format("20060102T150405.000000000"), b.version, b); err != nil {
		return fmt.Errorf("write down what %s loses by its rebuild: %w", b.Member, err)
	}
	b.version++
	return nil
}

// AllRebuilt lists them, the oldest of a member first.
func (r *Room) AllRebuilt(ctx context.Context, group string) (list []Rebuilt, err error) {
	docs, err := r.Docs.Documents(ctx, kindRebuilt)
	if err != nil {
		return nil, err
	}
	for _, d := range docs {
		b := Rebuilt{version: d.Version}
		if err := json.Unmarshal(d.Body, &b); err != nil {
			return nil, fmt.Errorf("read what became of the rebuild %s: %w", d.Key, err)
		}
		if group == "" || b.Group == group {
			list = append(list, b)
		}
	}
	return list, nil
}
