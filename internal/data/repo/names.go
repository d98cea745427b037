package repo

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// maxName is the longest escaped name: file systems take 255 bytes, and other names are added to it.
const maxName = 100

// escape turns a name of a schema or table into one that any place takes: letters, digits, _ and - stay, every other byte
// becomes %XX. A name that would be too long is cut and made unique by a hash.
func escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.Len() <= maxName {
		return b.String()
	}
	h := sha256.Sum256([]byte(name))
	return b.String()[:maxName-17] + "." + hex.EncodeToString(h[:8])
}

// idTime is how the time is written in an ID.
const idTime = "20060102T150405Z"

// NewID returns a name for a backup that begins at a time. Names sort by time, to the second.
func NewID(t time.Time) string {
	var r [3]byte
	_, _ = rand.Read(r[:]) // never fails (crypto/rand)
	return t.UTC().Format(idTime) + "-" + hex.EncodeToString(r[:])
}

// secondOf is the part of an ID that says when the backup began, to the second.
func secondOf(id string) string {
	second, _, _ := strings.Cut(id, "-")
	return second
}

// timeOf is when a backup began by its ID, to the second; zero when it is no ID.
func timeOf(id string) time.Time {
	t, _ := time.Parse(idTime, secondOf(id)) // zero if it fails
	return t
}

// JournalSchema is where a restore keeps its journal on the server that it loads. No backup has it.
const JournalSchema = "risso_restore"

// RollSchema is where a roll forward keeps its journal on a server whose GTIDs do not show how far it is. No backup has it.
const RollSchema = "risso_roll_forward"

// Journals reports whether a schema is one of Risso's own journals. What a log says about those belongs to a past restore: it is applied to no
// other server, whose own restore may be at work with them.
func Journals(schema string) bool { return schema == JournalSchema || schema == RollSchema }

const (
	configKey      = "risso.json"
	backupPrefix   = "backups/"
	dataPrefix     = "data/"
	physicalPrefix = "physical/"
	proofPrefix    = "proofs/"
	damagedPrefix  = "damaged/"
)

// LogPrefix begins the keys of mirrored binary logs, LogPrefix SERIES/NAME and one of the suffixes.
const LogPrefix = "binlog/"

// Suffixes of mirrored logs. The index is put last: without it there is no log.
const (
	LogIndex  = ".json"
	LogPacked = ".zst"
	LogSealed = ".zst.age" // in an encrypted place
)

// pruneLockPrefix begins the leases of prunes.
const pruneLockPrefix = "locks/prune-"

func headKey(id string) string    { return backupPrefix + id + "/head" }
func objectsKey(id string) string { return backupPrefix + id + "/objects" }
func lostKey(id string) string    { return backupPrefix + id + "/lost" }

func signatureKey(id string) string { return backupPrefix + id + "/signature" }

func acceptedKey(id string) string { return backupPrefix + id + "/accepted" }

func manifestKey(id string) string   { return backupPrefix + id + "/manifest" }
func unfinishedKey(id string) string { return backupPrefix + id + "/unfinished" }

func chunkKey(schema, table, hash string) string {
	return "data/" + escape(schema) + "/" + escape(table) + "/" + hash
}

func partPrefix(id string) string { return "physical/" + id + "/" }

func partKey(id string, number int) string { return fmt.Sprintf("physical/%s/%06d", id, number) }

// immutable reports whether a key always names the same bytes.
func immutable(key string) bool {
	return strings.HasPrefix(key, dataPrefix) || strings.HasPrefix(key, physicalPrefix)
}
