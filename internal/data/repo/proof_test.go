package repo

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestProofs(t *testing.T) {
	place := folder(t.TempDir())
	r, err := CreateWith(t.Context(), place, Keys{})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 21, 18, 37, 0, 123456000, time.UTC)
	want := []Proof{
		{Backup: "20261120T000000Z-aaaaaa", Time: at, JSON: []byte(`{"passed":false}`)},
		{Backup: "20261120T000000Z-aaaaaa", Time: at.Add(time.Hour), JSON: []byte(`{"passed":true}`)},
		{Backup: "20261121T000000Z-bbbbbb", Time: at, JSON: []byte(`{}`)},
	}
	for _, i := range []int{2, 1, 0} {
		if err := r.AddProof(t.Context(), want[i]); err != nil {
			t.Fatal(err)
		}
	}
	read := func(id string) (got []Proof, err error) {
		err = r.Proofs(t.Context(), id, func(p Proof) error {
			got = append(got, p)
			return nil
		})
		return got, err
	}
	same := func(a, b Proof) bool {
		return a.Backup == b.Backup && a.Time.Equal(b.Time) && bytes.Equal(a.JSON, b.JSON)
	}
	if got, err := read(""); err != nil || !slices.EqualFunc(got, want, same) {
		t.Fatalf("got %+v, %v; want slices.EqualFunc(got, want, same) true", got, err)
	}
	if got, err := read(want[2].Backup); err != nil || !slices.EqualFunc(got, want[2:], same) {
		t.Fatalf("got %+v, %v; want slices.EqualFunc(got, want[2:], same) true", got, err)
	}
	key := place.path(t, proofPrefix+want[2].Backup+"/"+at.Format(proofTime))
	b, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{"a changed bit": append(bytes.Clone(b[:len(b)-1]), b[len(b)-1]^1), "cut": b[:len(b)/2], "empty": nil, "no JSON": packed(t, r, "nonsense"), "another one's": packed(t, r, `{"passed":true,"backup":"20261120T000000Z-aaaaaa"}`)} {
		if err := os.WriteFile(key, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := read("")
		if err != nil || len(got) != 3 || !slices.EqualFunc(got[:2], want[:2], same) || !errors.Is(got[2].Doubt, ErrDamaged) || got[2].Passed() {
			t.Errorf("%s: got %+v, %v; want len(got) 3, slices.EqualFunc(got[:2], want[:2], same) true, ErrDamaged, got[2].Passed() false", name, got, err)
		}
	}
}

// packed is an object of a repository that holds a text.
func packed(t *testing.T, r *Repo, text string) []byte {
	t.Helper()
	k, err := r.NewKeeper()
	if err != nil {
		t.Fatal(err)
	}
	b, err := k.pack([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(b)
}

// TestDamagedProof: a proof that cannot be read, or its signature, removes no other's proof, and no backup that it may have proven.
func TestDamagedProof(t *testing.T) {
	mine := signer(t)
	for _, signs := range []bool{true, false} {
		dir := t.TempDir()
		k := Keys{}
		if signs {
			k = with(k, mine, nil)
		}
		r := made(t, dir, k)
		now := time.Now().Add(-time.Hour).UTC()
		var ids []string
		for i := range 4 {
			at := now.Add(time.Duration(i) * time.Minute)
			ids = append(ids, taken(t, made(t, dir, with(Keys{}, mine, nil)), NewID(at), at, "CREATE VIEW v AS SELECT 1"))
		}
		for i, id := range ids[:2] {
			if err := r.AddProof(t.Context(), Proof{Backup: id, Time: now.Add(time.Duration(i) * time.Second), JSON: []byte(`{"passed":true}`)}); err != nil {
				t.Fatal(err)
			}
		}
		for name, b := range files(t, dir) {
			if !strings.HasPrefix(name, proofPrefix+ids[1]) {
				continue
			}
			for _, bad := range [][]byte{b[:len(b)/2], nil} {
				putFile(t, dir, name, bad)
				for _, trusted := range [][]PublicKey{nil, {PublicOf(mine)}} {
					p, err := opened(t, dir, Keys{}).Prune(t.Context(), PruneOptions{Retention: Retention{Last: 1}, Trusted: trusted, DryRun: true})
					if err != nil || !slices.Contains(kept(p.Decisions), ids[1]) || slices.Contains(kept(p.Decisions), ids[2]) {
						t.Errorf("signed %t, %s cut to %d, trusted %q: prune: got %+v, %v; want ids[1] in kept(p.Decisions), no ids[2] in kept(p.Decisions)",
							signs, name, len(bad), trusted, p, err)
					}
				}
				v, err := opened(t, dir, Keys{}).Verify(t.Context(), VerifyOptions{})
				if err != nil || len(v.Problems) != 1 || v.Problems[0].Key != name || v.Problems[0].Kind != Damaged || len(v.Broken) > 0 {
					t.Errorf("signed %t, %s cut to %d: verify: got %+v, %v; want len(Problems) 1, v.Problems[0].Key %v, v.Problems[0].Kind Damaged, no v.Broken",
						signs, name, len(bad), v, err, name)
				}
			}
			putFile(t, dir, name, b)
		}
	}
}

// proofsBy reads the proofs of a place, by the signer of each or why it counts for nothing; encrypted ones without an identity.
func proofsBy(t *testing.T, dir string, k Keys) (list []Proof) {
	t.Helper()
	if err := opened(t, dir, k).Proofs(t.Context(), "", func(p Proof) error { list = append(list, p); return nil }); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestProofSigned: a proof counts as its maker signed it, and nobody else's does; a reader without an identity knows whether it went well.
func TestProofSigned(t *testing.T) {
	_, write, read := keys(t)
	for name, k := range map[string]Keys{"plain": {}, "encrypted": write} {
		t.Run(name, func(t *testing.T) {
			dir, mine, theirs := t.TempDir(), signer(t), signer(t)
			own := made(t, dir, with(k, mine, nil))
			now := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
			a, b := taken(t, own, NewID(now), now, "CREATE VIEW v AS SELECT 1"), taken(t, own, NewID(now.Add(time.Minute)), now.Add(time.Minute), "CREATE VIEW v AS SELECT 1")
			prove := func(r *Repo, id string, at time.Duration, passed string) {
				t.Helper()
				if err := r.AddProof(t.Context(), Proof{Backup: id, Time: now.Add(at), JSON: []byte(`{"passed":` + passed + `}`)}); err != nil {
					t.Fatal(err)
				}
			}
			prove(own, a, 0, "true")
			prove(own, b, time.Second, "false")
			model := files(t, dir)
			key := func(id string, at time.Duration) string {
				return proofPrefix + id + "/" + now.Add(at).Format(proofTime)
			}
			trust := &Trust{Dir: t.TempDir(), Keys: []PublicKey{PublicOf(mine)}}
			nobody := &Trust{Dir: t.TempDir()}
			for _, c := range []struct {
				name   string
				do     func()
				doubt  error // of the last proof of b, who trusts one key
				passed bool
				any    error // of a reader that trusts no key yet
			}{
				{"as it was", func() {}, nil, false, nil},
				{"by a stranger", func() { prove(made(t, dir, with(k, theirs, nil)), b, time.Minute, "true") }, ErrForeign, true, nil},
				{"by nobody", func() { prove(made(t, dir, k), b, time.Minute, "true") }, ErrUnsigned, true, nil},
				{"another one's signature", func() {
					prove(made(t, dir, k), b, time.Minute, "true")
					putFile(t, dir, key(b, time.Minute)+proofSigned, model[key(a, 0)+proofSigned])
				}, ErrForged, true, ErrForged},
				{"another one's proof and signature", func() {
					putFile(t, dir, key(b, time.Minute), model[key(a, 0)])
					putFile(t, dir, key(b, time.Minute)+proofSigned, model[key(a, 0)+proofSigned])
				}, ErrForged, true, ErrForged},
			} {
				for name := range files(t, dir) {
					if _, was := model[name]; !was && strings.HasPrefix(name, proofPrefix) {
						if err := os.Remove(filepath.Join(dir, name)); err != nil {
							t.Fatal(err)
						}
					}
				}
				c.do()
				whom := read
				if name == "plain" {
					whom = Keys{}
				}
				for _, look := range []struct {
					keys Keys
					want error
				}{{with(whom, nil, trust), c.doubt}, {with(whom, nil, nobody), c.any}, {with(Keys{}, nil, trust), c.doubt}} {
					list := proofsBy(t, dir, look.keys)
					last := list[len(list)-1]
					if len(list) < 2 || list[0].Backup != a || list[0].Doubt != nil || !list[0].Passed() || last.Backup != b {
						t.Fatalf("%s: got %+v; want len(list) at least 2, list[0].Backup %v, list[0].Doubt nil, list[0].Passed() true, last.Backup %v",
							c.name, list, a, b)
					}
					if !errors.Is(last.Doubt, look.want) || look.want == nil && last.Doubt != nil {
						t.Errorf("%s: %v, want %v", c.name, last.Doubt, look.want)
					}
					if last.Doubt == nil && last.Passed() != c.passed {
						t.Errorf("%s: passed: %v", c.name, last.Passed())
					}
				}
				if v, err := made(t, dir, k).Verify(t.Context(), VerifyOptions{}); err != nil || v.Whole() != !errors.Is(c.any, ErrForged) {
					t.Errorf("%s: verify: %+v, %v; want Whole() !errors.Is(c.any, ErrForged)", c.name, v, err)
				}
			}
			for _, o := range []*Trust{trust, nobody} {
				if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
					t.Errorf("who only looks writes down %v, %v; want none", left, err)
				}
			}
			// A proof that is not what was signed, if it can be read.
			put := slices.Collect(maps.Keys(files(t, dir)))
			slices.Sort(put)
			prove(own, a, time.Minute, "false")
			putFile(t, dir, key(a, time.Minute), model[key(a, 0)])
			list := proofsBy(t, dir, with(read, nil, trust))
			if p := list[1]; p.Backup != a || !errors.Is(p.Doubt, ErrForged) {
				t.Errorf("another proof under a signature: got %+v; want Backup %v, ErrForged", p, a)
			}
		})
	}
}

// TestPruneForgedProof: what a stranger claims about drills removes no backup that a trusted drill proved, and is not reported as proven.
func TestPruneForgedProof(t *testing.T) {
	mine := signer(t)
	_, write, _ := keys(t)
	for name, k := range map[string]Keys{"plain": {}, "encrypted, without an identity": write} {
		dir := t.TempDir()
		own := made(t, dir, with(k, mine, nil))
		now := time.Now().Add(-time.Hour).UTC()
		var ids []string
		for i := range 4 {
			at := now.Add(time.Duration(i) * time.Minute)
			ids = append(ids, taken(t, own, NewID(at), at, "CREATE VIEW v AS SELECT 1"))
		}
		o := PruneOptions{Retention: Retention{Last: 1}, Trusted: []PublicKey{PublicOf(mine)}, DryRun: true}
		prove := func(r *Repo, id string) {
			t.Helper()
			if err := r.AddProof(t.Context(), Proof{Backup: id, Time: time.Now(), JSON: []byte(`{"passed":true}`)}); err != nil {
				t.Fatal(err)
			}
		}
		prove(own, ids[0])
		stranger := made(t, dir, with(k, signer(t), nil))
		for _, r := range []*Repo{stranger, made(t, dir, k)} {
			prove(r, ids[2])
			p, err := opened(t, dir, Keys{}).Prune(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := kept(p.Decisions), []string{ids[0], ids[2], ids[3]}; !slices.Equal(got, want) {
				t.Errorf("%s: there stay %q, not %q", name, got, want)
			}
			for _, d := range p.Decisions {
				said := strings.Join(d.Reasons, "; ")
				if d.ID == ids[0] && said != "the newest proven one" || d.ID == ids[2] && said != "the newest proven one, by a drill not signed by a trusted key" {
					t.Errorf("%s: %+v", name, d)
				}
			}
		}
		prove(own, ids[1])
		if p, err := opened(t, dir, Keys{}).Prune(t.Context(), o); err != nil || slices.Contains(kept(p.Decisions), ids[0]) || !slices.Contains(kept(p.Decisions), ids[1]) {
			t.Errorf("%s: a newer proof of one's own: %+v, %v; want no ids[0] in kept(p.Decisions), ids[1] in kept(p.Decisions)", name, p, err)
		}
	}
}

// TestPruneWithoutIdentity: of an encrypted place prune keeps without an identity what it keeps with one; of unsigned proofs, which cannot
// be read there, each may be the one that counts.
func TestPruneWithoutIdentity(t *testing.T) {
	mine := signer(t)
	_, write, read := keys(t)
	for name, by := range map[string]Keys{"signed": with(write, mine, nil), "unsigned": write} {
		dir := t.TempDir()
		now := time.Now().Add(-time.Hour).UTC()
		var ids []string
		for i := range 5 {
			at := now.Add(time.Duration(i) * time.Minute)
			ids = append(ids, taken(t, made(t, dir, with(write, mine, nil)), NewID(at), at, "CREATE VIEW v AS SELECT 1"))
		}
		prove := func(k Keys, i int, passed string) {
			t.Helper()
			if err := made(t, dir, k).AddProof(t.Context(), Proof{Backup: ids[i], Time: time.Now(), JSON: []byte(`{"passed":` + passed + `}`)}); err != nil {
				t.Fatal(err)
			}
		}
		stay := func(k Keys, want ...int) {
			t.Helper()
			var list []string
			for _, i := range want {
				list = append(list, ids[i])
			}
			for _, trusted := range [][]PublicKey{nil, {PublicOf(mine)}} {
				p, err := opened(t, dir, k).Prune(t.Context(), PruneOptions{Retention: Retention{Last: 1}, Trusted: trusted, DryRun: true})
				if err != nil {
					t.Fatal(err)
				}
				if got := kept(p.Decisions); !slices.Equal(got, list) {
					t.Errorf("%s, identity %t, trusted %q: there stay %q, not %q", name, k.Identities != nil, trusted, got, list)
				}
				for _, d := range p.Decisions {
					if said := strings.Join(d.Reasons, "; "); k.Identities == nil && name == "unsigned" && d.ID == ids[2] && !strings.Contains(said, "--identity") || d.ID == ids[4] && said != "the newest; one of the last 1" {
						t.Errorf("%s: %+v", name, d)
					}
				}
			}
		}
		prove(by, 0, "true")
		prove(by, 1, "true")
		prove(by, 2, "false")
		stay(read, 1, 4)
		if name == "signed" {
			stay(Keys{}, 1, 4)
			continue
		}
		stay(Keys{}, 0, 1, 2, 4)
		prove(with(write, mine, nil), 3, "false")
		stay(Keys{}, 0, 1, 2, 4)
		prove(with(write, mine, nil), 1, "true") // the older one is no longer the newest
		stay(Keys{}, 1, 2, 4)
	}
}

// TestStrangers: if a key is trusted, unsigned backups and those of others count for nothing; if none is, all do. Readers write nothing down.
func TestStrangers(t *testing.T) {
	dir, mine := t.TempDir(), signer(t)
	now := time.Now().Add(-time.Hour).UTC()
	add := func(k Keys, minute int) string {
		at := now.Add(time.Duration(minute) * time.Minute)
		return taken(t, made(t, dir, k), NewID(at), at, "CREATE VIEW v AS SELECT 1")
	}
	own := add(with(Keys{}, mine, nil), 0)
	foreign, unsigned, forged := add(with(Keys{}, signer(t), nil), 1), add(Keys{}, 2), add(with(Keys{}, mine, nil), 3)
	b, err := os.ReadFile(filepath.Join(dir, signatureKey(own)))
	if err != nil {
		t.Fatal(err)
	}
	putFile(t, dir, signatureKey(forged), b)
	known := &Trust{Dir: t.TempDir()}
	if err := known.Own(opened(t, dir, Keys{}).ID, PublicOf(mine)); err != nil {
		t.Fatal(err)
	}
	all := map[string]error{foreign: ErrForeign, unsigned: ErrUnsigned, forged: ErrForged}
	for name, c := range map[string]struct {
		policy *Trust
		want   map[string]error
	}{
		"named":   {&Trust{Dir: t.TempDir(), Keys: []PublicKey{PublicOf(mine)}}, all},
		"known":   {known, all},
		"nobody":  {&Trust{Dir: t.TempDir()}, map[string]error{forged: ErrForged}},
		"all":     {&Trust{Dir: known.Dir, Unsigned: true}, map[string]error{forged: ErrForged}},
		"nothing": {nil, nil},
	} {
		before, _ := os.ReadFile(filepath.Join(known.Dir, knownFile))
		r := opened(t, dir, with(Keys{}, nil, c.policy))
		list, err := r.Catalogue(t.Context())
		if err != nil || len(list) != 4 {
			t.Fatalf("%s: got %+v, %v; want length 4", name, list, err)
		}
		got, err := r.Strangers(t.Context(), list)
		if err != nil || len(got) != len(c.want) {
			t.Errorf("%s: got %q, %v; want length %v", name, got, err, len(c.want))
		}
		for id, want := range c.want {
			if !strings.Contains(got[id], want.Error()) {
				t.Errorf("%s: of %s it says %q, want want.Error() in it", name, id, got[id])
			}
		}
		if after, _ := os.ReadFile(filepath.Join(known.Dir, knownFile)); !bytes.Equal(before, after) {
			t.Errorf("%s: it writes down %q", name, after)
		}
	}
}
