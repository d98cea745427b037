package page_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSignInInBrowser signs in to the page as users made by the command line, with a password and with a token.
func TestSignInInBrowser(t *testing.T) {
	needBrowser(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	bin := binary(t, dir, "RISSO_BIN", "1")
	risso := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, bin, append(args, "--data", data)...)
		cmd.Stdin, cmd.Stderr = strings.NewReader("correct horse battery staple\n"), os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("risso %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	risso("user", "add", "ann", "--role", "admin")
	risso("user", "add", "bob")
	risso("user", "add", "kim", "--role", "change")
	token := risso("token", "create", "wall")
	url := serveWith(t, bin, "--data", data, "--host-only")
	playwright(ctx, t, []string{"signin.spec.ts"}, "RISSO_URL="+url, "RISSO_SIGNIN="+token)
	if said := risso("audit", "actions", "--refused"); !strings.Contains(said, "a sign-in as ann with a wrong password was refused") || strings.Contains(said, "a wrong password p") {
		t.Errorf("who was refused: got %s; want ann's wrong password, by words alone", said)
	}
	if said := risso("audit", "actions", "--who", "kim"); !strings.Contains(said, "the password of kim was changed") {
		t.Errorf("what kim did: got %s; want the changed password", said)
	}
}
