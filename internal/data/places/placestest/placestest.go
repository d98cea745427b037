// Package placestest makes up backups and proofs for tests.
package placestest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/data/drill"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/store/blob"
	"github.com/rissodb/risso/internal/store/blob/blobtest"
)

// KeepBackups puts made-up backups into a place, a day apart, and returns their IDs.
func KeepBackups(t *testing.T, place string, n int, k repo.Keys) (ids []string) {
	t.Helper()
	r, closePlace, err := places.Make(t.Context(), place, k)
	if err != nil {
		t.Fatal(err)
	}
	defer closePlace()
	keeper, err := r.NewKeeper()
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		at := time.Now().AddDate(0, 0, i-n)
		h := repo.Header{Format: repo.Format, ID: repo.NewID(at), Kind: repo.Logical, Began: at, Snapshot: at, Ended: at.Add(time.Minute), Tables: 2, Server: repo.Server{Identity: "s", Name: "db1", Server: fleet.Server{Flavour: "MariaDB", Version: "10.11"}}}
		if err := r.Begin(t.Context(), h, nil); err != nil {
			t.Fatal(err)
		}
		d := repo.NewDraft()
		defer d.Close()
		tables := []*repo.Table{{Schema: "shop", Name: "a", Engine: "InnoDB"}, {Schema: "odd\nname", Name: "b\x1b[31m", Engine: "InnoDB"}}
		for j, table := range tables {
			kept, err := keeper.Keep(t.Context(), table.Schema, table.Name, blobtest.Bytes(uint64(i*(1-j)), 2000))
			if err != nil {
				t.Fatal(err)
			}
			table.Chunks = []repo.Chunk{{Hash: kept.Hash, Stored: kept.Stored}}
			if err := d.Add(repo.Line{Table: table}); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Finish(t.Context(), h, d); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, h.ID)
	}
	return ids
}

// Prove notes that a drill of a backup went well, by this account's key if it signs.
func Prove(t *testing.T, place, id string, k repo.Keys, signs bool) {
	t.Helper()
	b, err := blob.Open(t.Context(), place, blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if signs {
		if k.Signer, err = repo.SigningKey(home.Keys(), true); err != nil {
			t.Fatal(err)
		}
	}
	r, err := repo.OpenWith(t.Context(), repo.On(b), k)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	p, err := json.Marshal(drill.Proof{Format: drill.ProofFormat, Backup: id, Began: now, Ended: now, Passed: true, Recovery: 1})
	if err == nil {
		err = r.AddProof(t.Context(), repo.Proof{Backup: id, Time: now, JSON: p})
	}
	if err != nil {
		t.Fatal(err)
	}
}
