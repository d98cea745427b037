package repo

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// putFile writes a file of a place, over what is there.
func putFile(t *testing.T, dir, key string, b []byte) {
	t.Helper()
	p := filepath.Join(dir, filepath.FromSlash(key))
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		t.Fatal(err)
	}
	os.Remove(p) // files put there are not writable
	if err := os.WriteFile(p, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// sealedBytes makes an object that is in order by itself.
func sealedBytes(t *testing.T, text string) []byte {
	t.Helper()
	zw, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return appendSeal(zw.EncodeAll([]byte(text), nil))
}

// mirroredLog puts a finished log into a place, signed if there is a signer.
func mirroredLog(t *testing.T, dir, id, name, text string, by ed25519.PrivateKey) {
	t.Helper()
	zw, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.Sum256([]byte(text))
	x := MirroredLog{Name: name, Size: int64(len(text)), SHA256: hex.EncodeToString(h[:]), Before: "0-1-4"}
	if by != nil {
		x.Signature, err = SignLog(by, x.Claim(id, "s1"))
		if err != nil {
			t.Fatal(err)
		}
	}
	b, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	putFile(t, dir, "binlog/s1/"+name+".zst", zw.EncodeAll([]byte(text), nil))
	putFile(t, dir, "binlog/s1/"+name+".json", b)
}

// TestCopyReplacesNothing: whatever happens to the first place, what the second has stays as it is, is reported with both sizes, and
// keeps nothing else from being copied.
func TestCopyReplacesNothing(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		from, to := t.TempDir(), t.TempDir()
		var write Keys
		if encrypted {
			_, write, _ = keys(t)
		}
		mine := signer(t)
		r := made(t, from, with(write, mine, nil))
		ids := five(t, r)
		if err := r.AddProof(t.Context(), Proof{Backup: ids[0], Time: time.Now(), JSON: []byte(`{"passed":true}`)}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"b.000001", "b.000002"} {
			mirroredLog(t, from, r.ID, name, "log "+name, mine)
		}
		first, err := opened(t, from, Keys{}).CopyTo(t.Context(), at(t, to), CopyOptions{})
		if err != nil || !first.Whole() {
			t.Fatalf("got %+v, %v; want Whole() true", first, err)
		}
		before := files(t, to)
		var changed []string
		for key, b := range files(t, from) {
			switch {
			case key == configKey, key == namesKey:
				continue
			case strings.HasPrefix(key, dataPrefix):
				b = append(b, b...)
			case len(changed)%2 == 0:
				b = b[:len(b)/2]
			default:
				b = sealedBytes(t, strings.Repeat("forged", 100))
			}
			changed = append(changed, key)
			putFile(t, from, key, b)
		}
		// One signature is gone, one has another byte, which its size does not show.
		os.Remove(filepath.Join(from, filepath.FromSlash(signatureKey(ids[1]))))
		sig := bytes.Clone(before[signatureKey(ids[2])])
		sig[len(sig)-1] ^= 1
		putFile(t, from, signatureKey(ids[2]), sig)
		more := back(t, r, time.Now(), map[string][]string{"s.new": {"rows of today"}}) // of which nothing was damaged
		mirroredLog(t, from, r.ID, "b.000003", "a good one", mine)
		c, err := opened(t, from, Keys{}).CopyTo(t.Context(), at(t, to), CopyOptions{})
		if err != nil || c.Whole() || !slices.Equal(c.Backups, []string{more}) || c.Logs != 1 {
			t.Fatalf("encrypted %t: got %+v, %v; want Whole() false, Backups %v, Logs 1", encrypted, c, err, []string{more})
		}
		after := files(t, to)
		for key, b := range before {
			if !bytes.Equal(after[key], b) {
				t.Errorf("encrypted %t: %s was changed, want after[key] %v", encrypted, key, b)
			}
		}
		if len(c.Refused) != 5 { // their heads cannot be read
			t.Errorf("encrypted %t: refused: got %q, want length 5", encrypted, c.Refused)
		}
		// With the heads as they were, each object is compared: of rows and files with the size that the list says.
		d := NewDraft()
		defer d.Close()
		d.mu.Lock()
		err = d.addRefs([]ref{{Part: 1, Size: 7}})
		for key := range before {
			if strings.HasPrefix(key, dataPrefix) {
				err = errors.Join(err, d.addRefs([]ref{{Key: key, Size: 7}}))
			}
		}
		d.mu.Unlock()
		if err := errors.Join(err, r.writeHead(t.Context(), Header{ID: ids[4]}, d)); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			putFile(t, from, headKey(id), before[headKey(id)])
			if id != ids[4] {
				putFile(t, from, objectsKey(id), before[objectsKey(id)])
			}
		}
		if c, err = opened(t, from, Keys{}).CopyTo(t.Context(), at(t, to), CopyOptions{}); err != nil || len(c.Backups) != 0 {
			t.Fatalf("encrypted %t: got %+v, %v; want none", encrypted, c, err)
		}
		for _, key := range append(changed, signatureKey(ids[2])) {
			if strings.HasSuffix(key, "/head") || strings.HasSuffix(key, "/objects") || strings.HasPrefix(key, physicalPrefix) && !strings.Contains(key, ids[4]) {
				continue
			}
			i := slices.IndexFunc(c.Different, func(d Difference) bool { return d.Key == key })
			if i < 0 {
				t.Errorf("encrypted %t: %s is not told, want i at least 0", encrypted, key)
			} else if d := c.Different[i]; d.There.State == "damaged" || d.There.Bytes != int64(len(before[key])) || d.Here.Bytes == d.There.Bytes && key != signatureKey(ids[2]) {
				t.Errorf("encrypted %t: %s", encrypted, d)
			}
		}
		for key, b := range files(t, to) {
			if old, ok := before[key]; ok && !bytes.Equal(old, b) {
				t.Errorf("encrypted %t: %s was changed", encrypted, key)
			}
		}
		whole(t, opened(t, to, Keys{}), append(slices.Clone(ids), more)...)
	}
}

// TestCopyContents: an object that is valid in itself but holds something else than its name says is not copied, nor is a
// backup that needs it; nor one whose list of objects leaves some out.
func TestCopyContents(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	r := made(t, from, Keys{})
	ids := five(t, r)
	forged := ""
	for key := range files(t, from) { // the rows that all five have
		if strings.HasPrefix(key, dataPrefix) {
			h := sha256.Sum256([]byte("always"))
			if strings.HasSuffix(key, hex.EncodeToString(h[:])) {
				forged = key
			}
		}
	}
	good := files(t, from)[forged]
	putFile(t, from, forged, sealedBytes(t, "forged"))
	c, err := opened(t, from, Keys{}).CopyTo(t.Context(), at(t, to), CopyOptions{Threads: 1})
	if err != nil || len(c.Backups) != 0 || len(c.Refused) != 5 || files(t, to)[forged] != nil {
		t.Fatalf("got %+v, %v; want no c.Backups, len(Refused) 5, files(t, to)[forged] nil", c, err)
	}
	putFile(t, from, forged, good)
	// The list says that less is needed than the manifest does.
	d := NewDraft()
	defer d.Close()
	if err := r.writeHead(t.Context(), Header{ID: ids[4]}, d); err != nil {
		t.Fatal(err)
	}
	c, err = opened(t, from, Keys{}).CopyTo(t.Context(), at(t, to), CopyOptions{})
	if err != nil || !slices.Equal(c.Backups, ids[:4]) || len(c.Refused) != 1 || c.Refused[0].What != "backup "+ids[4] {
		t.Fatalf("got %+v, %v; want Backups ids[:4], len(Refused) 1, Refused[0].What \"backup \" + ids[4]", c, err)
	}
	whole(t, opened(t, to, Keys{}), ids[:4]...)
}

// TestCopyTrust: what no trusted key signed is not copied unless that is asked for, and what was forged never; each is
// reported.
func TestCopyTrust(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		var write, read Keys
		if encrypted {
			_, write, read = keys(t)
		}
		from, mine, theirs := t.TempDir(), signer(t), signer(t)
		now := time.Now().Add(-time.Hour).UTC()
		id := func(i int) string { return NewID(now.Add(time.Duration(i) * time.Minute)) }
		r := made(t, from, with(write, mine, nil))
		good, forged := taken(t, r, id(0), now, "CREATE VIEW v AS SELECT 1"), taken(t, r, id(1), now, "CREATE VIEW v AS SELECT 1")
		unsigned := taken(t, made(t, from, write), id(2), now, "CREATE VIEW v AS SELECT 1")
		foreign := taken(t, made(t, from, with(write, theirs, nil)), id(3), now, "CREATE VIEW v AS SELECT 1")
		taken(t, made(t, from, write), forged, now, "CREATE DATABASE pwned") // keeps the signature
		mirroredLog(t, from, r.ID, "b.000001", "good", mine)
		mirroredLog(t, from, r.ID, "b.000002", "unsigned", nil)
		mirroredLog(t, from, r.ID, "b.000003", "foreign", theirs)
		mirroredLog(t, from, r.ID, "b.000004", "as signed", mine)
		index := files(t, from)["binlog/s1/b.000004.json"]
		mirroredLog(t, from, r.ID, "b.000004", "otherwise", mine)
		putFile(t, from, "binlog/s1/b.000004.json", index) // another log under its index
		putFile(t, from, "binlog/s1/b.000005.zst", files(t, from)["binlog/s1/b.000001.zst"])
		putFile(t, from, "binlog/s1/b.000005.json", files(t, from)["binlog/s1/b.000001.json"]) // a log under another name
		mirroredLog(t, from, "0123456789abcdef0123456789abcdef", "b.000006", "of another repository", mine)
		for _, allowed := range []bool{false, true} {
			to := t.TempDir()
			trust := &Trust{Dir: t.TempDir(), Place: "/b", Keys: []PublicKey{PublicOf(mine)}, Unsigned: allowed}
			c, err := opened(t, from, with(read, nil, trust)).CopyTo(t.Context(), at(t, to), CopyOptions{})
			if err != nil || c.Whole() {
				t.Fatalf("got %+v, %v; want Whole() false", c, err)
			}
			want, logs, refused := []string{good}, int64(1), 8 // three backups, five logs
			if allowed {
				want, logs, refused = []string{good, unsigned, foreign}, 3, 4
			}
			if !slices.Equal(c.Backups, want) || c.Logs != logs || len(c.Refused) != refused {
				t.Errorf("encrypted %t, unsigned allowed %t: got %+v; want Backups %v, Logs %v, len(Refused) %v", encrypted, allowed, c, want, logs, refused)
			}
			if !slices.ContainsFunc(c.Refused, func(r Refusal) bool { return r.Kind == Damaged && r.What == "backup "+forged }) || !allowed && !slices.ContainsFunc(c.Refused, func(r Refusal) bool { return r.Kind == Foreign && r.What == "backup "+unsigned }) {
				t.Errorf("refused: %+v", c.Refused)
			}
			v, err := opened(t, to, read).Verify(t.Context(), VerifyOptions{})
			if err != nil || !v.Whole() || !slices.Equal(v.Backups, want) {
				t.Errorf("at the other place: got %+v, %v; want Whole() true, Backups %v", v, err, want)
			}
			for _, name := range []string{"b.000004", "b.000005", "b.000006"} {
				if files(t, to)["binlog/s1/"+name+".json"] != nil {
					t.Errorf("%s is there, want files(t, to)[\"binlog/s1/\"+name+\".json\"] nil", name)
				}
			}
		}
	}
}

// TestCopyLostLogs: a mirrored log of which only the index is left, or of which the other place has a part that is not its own, is reported.
func TestCopyLostLogs(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	mine := signer(t)
	r := made(t, from, with(Keys{}, mine, nil))
	back(t, r, time.Now(), map[string][]string{"s.t": {"x"}})
	put := func(name string, change func(x *MirroredLog)) {
		t.Helper()
		mirroredLog(t, from, r.ID, name, "log "+name, mine)
		var x MirroredLog
		b, err := os.ReadFile(filepath.Join(from, "binlog", "s1", name+LogIndex))
		if err == nil {
			err = json.Unmarshal(b, &x)
		}
		if err == nil {
			change(&x)
			b, err = json.Marshal(x)
		}
		if err != nil {
			t.Fatal(err)
		}
		putFile(t, from, "binlog/s1/"+name+LogIndex, b)
	}
	remove := func(name string) {
		t.Helper()
		if err := os.Remove(filepath.Join(from, "binlog", "s1", name)); err != nil {
			t.Fatal(err)
		}
	}
	put("b.000001", func(x *MirroredLog) { x.Stored = 40 })
	remove("b.000001" + LogPacked)
	put("b.000002", func(*MirroredLog) {}) // it is where it is mirrored
	remove("b.000002" + LogPacked)
	put("b.000003", func(*MirroredLog) {})
	b, err := os.ReadFile(filepath.Join(from, "binlog", "s1", "b.000003"+LogPacked))
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	putFile(t, to, "binlog/s1/b.000003"+LogPacked, b)
	put("b.000004", func(*MirroredLog) {})
	c, err := r.CopyTo(t.Context(), at(t, to), CopyOptions{})
	if err != nil || c.Whole() || c.Logs != 1 || len(c.Refused) != 2 || len(c.Different) != 1 {
		t.Fatalf("got %+v, %v; want Whole() false, Logs 1, len(Refused) 2, len(Different) 1", c, err)
	}
	if got := c.Refused[0]; got.Kind != Missing || !strings.Contains(got.What, "b.000001") || !strings.Contains(got.Why, "the log is not") {
		t.Errorf("got %+v; want Kind Missing, \"b.000001\" in What, \"the log is not\" in Why", got)
	}
	if got := c.Refused[1]; got.Kind != Damaged || !strings.Contains(got.What, "b.000003") {
		t.Errorf("got %+v; want Kind Damaged, \"b.000003\" in What", got)
	}
	if _, err := os.Stat(filepath.Join(to, "binlog", "s1", "b.000003"+LogIndex)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the index of a log that is another one came along: %v, want os.ErrNotExist", err)
	}
}
