package accounts

import (
	"context"
	"testing"

	"github.com/rissodb/risso/internal/mysql/define"
)

// TestHashes holds hashes against those that servers and crypt(3) made.
func TestHashes(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{nativeHash("password"), "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"},
		{ed25519Hash("secret"), "ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY"}, // MariaDB documentation
		{sha256Crypt("Hello world!", "saltstring", 5000), "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

// TestBudget: what was not tried is not told as strong.
func TestBudget(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := define.Way{Plugin: "caching_sha2_password", Hash: define.Secret("$A$005$01234567890123456789" + sha256Crypt("other", "01234567890123456789", 5000))}
	if words, known, done := newGuesser(nil).weak(ctx, "app", w); words != "" || !known || done {
		t.Errorf("got %q, %v, %v; want nothing found, a hash that is known, and not done", words, known, done)
	}
}
