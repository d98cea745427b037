package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
)

// kept is text that is written while it may be read.
type kept struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write never fails.
func (k *kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.Write(p)
}

func (k *kept) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.String()
}

// running starts risso serve for a folder, and returns its address and what it logs.
func running(t *testing.T, data string) (address string, log *kept) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	said, w := io.Pipe()
	log = &kept{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Main(ctx, []string{"serve", "--host-only", "--verbose", "--listen", "127.0.0.1:0", "--data", data}, screen.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.MultiWriter(log, w)})
		w.Close()
	}()
	t.Cleanup(func() { cancel(); <-ended })
	ready := regexp.MustCompile(`ready on (http://\S+)`)
	for lines := bufio.NewScanner(said); address == "" && lines.Scan(); {
		if m := ready.FindStringSubmatch(lines.Text()); m != nil {
			address = m[1]
		}
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	return address, log
}

// TestAccess makes users and tokens by commands, signs in to a risso serve with them, and reads who did what there. No password is in what is printed,
// logged or stored.
func TestAccess(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("RISSO_TOKEN", "")
	data := filepath.Join(t.TempDir(), "data")
	const password, second = "correct horse battery staple", "another long password"
	var all bytes.Buffer
	risso := func(stdin, line string) (int, string, string) {
		t.Helper()
		var out, said bytes.Buffer
		code := Main(t.Context(), append(shellWords(line), "--data", data), screen.Streams{In: strings.NewReader(stdin), Out: &out, Err: &said})
		all.WriteString(out.String() + said.String())
		return code, out.String(), said.String()
	}
	for _, c := range []struct {
		stdin, line string
		code        int
		says        string
	}{
		{"short\n", "user add ann", 1, "needs 12"},
		{password + "\n", "user add 'a b'", 2, "letters, digits"},
		{"", "user add ann", 2, "--password-file"},
		{"", "user add ann --password-file /nosuch", 2, "--password-file"},
		{password + "\n", "user add ann --role root", 2, "look, change, failover or admin"},
		{password + "\n", "user add ann --role look --only group=x", 2, "changes nothing"},
		{password + "\n", "user add ann --role admin --only group=x", 2, "about all users"},
		{password + "\n", "user add ann --role change --only x", 2, "group=PATTERN"},
		{password + "\nignored", "user add Ann --role admin", 0, "the user ann, who may manage access, was added"},
		{password + "\n", "user add ann", 1, "already in use"},
		{password + "\r\n", "user add bob --role failover --only group=shop*", 0, "may fail over, only group=shop*"},
		{"", "user role ann look", 1, "risso user role NAME admin"},
		{"", "user remove ann", 1, "the last user with the role admin"},
		{"", "user role bob change", 0, "only for group=shop*"},
		{"", "user role bob look", 0, "of another role the limits stay: only for group=shop*"},
		{"", "user role bob failover", 0, "the role failover, only for group=shop*"},
		{"", "user role bob change --all", 0, "the role change"},
		{"", "user role kim look", 1, "risso user list"},
		{"", "user logout kim", 1, "risso user list"},
		{second + "\n", "user password bob", 0, "was changed"},
		{"", "user list", 0, "bob                  may change, never signed in"},
		{"", "token create ann", 1, "--user ann"},
		{"", "token create x --user kim", 1, "kim"},
		{"", "token create x --expires 0", 2, "90d"},
		{"", "token create x --role act --expires 90d --user Bob", 0, "risso_"},
		{"", "token list", 0, "x                    may change, of bob"},
		{"", "token off", 0, "signing in remains required"},
		{"", "audit actions --since soon", 2, "12h or 7d"},
	} {
		if code, out, said := risso(c.stdin, c.line); code != c.code || !strings.Contains(out+said, c.says) {
			t.Errorf("risso %s: got %d %s%s, want %d and %q", c.line, code, out, said, c.code, c.says)
		}
	}
	tokens := map[string]string{}
	for _, role := range []string{"look", "admin"} {
		code, out, said := risso("", "token create by-"+role+" --role "+role)
		if tokens[role] = strings.TrimSpace(out); code != 0 || tokens[role] == "" {
			t.Fatal(said)
		}
	}
	url, log := running(t, data)
	for _, c := range []struct {
		body string
		code int
	}{{`{"user":"ann","password":"` + password + `"}`, 200}, {`{"user":"ann","password":"` + second + `"}`, 401}, {`{"user":"bob","password":"` + second + `"}`, 200}, {`{"token":"` + tokens["look"] + `x"}`, 401}} {
		resp, err := http.Post(url+"/api/login", "application/json", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.code {
			t.Errorf("%s: got %d %s %v, want %d", c.body, resp.StatusCode, b, err, c.code)
		}
		all.Write(b)
	}
	t.Setenv("RISSO_TOKEN", tokens["look"])
	if code, _, said := risso("", "audit actions --url "+url); code != fault.Failed || !strings.Contains(said, "by-look has the role look, and this needs the role admin") || !strings.Contains(said, "--role admin") {
		t.Errorf("with the role look: got %d %s; want it refused, with the way to it", code, said)
	}
	if code, _, said := call(t, "event", "--url", url, "x"); code == 0 || !strings.Contains(said, "needs the role change") {
		t.Errorf("a mark with the role look: got %d %s; want it refused", code, said)
	}
	t.Setenv("RISSO_TOKEN", tokens["admin"])
	code, out, said := risso("", "audit actions --url "+url+" -o json")
	var a struct {
		Actions []struct{ Who, Via, Role, Address, Call, Outcome, Text string }
	}
	if err := json.Unmarshal([]byte(out), &a); code != 0 || err != nil {
		t.Fatalf("got %d %s %s %v", code, out, said, err)
	}
	for _, want := range []struct{ who, via, role, address, call, outcome, says string }{
		{" on ", "shell", "admin", "", "risso user add", "done", "the user ann, who may manage access, was added by "},
		{" on ", "shell", "admin", "", "risso user remove", "failed", "ann is the last user with the role admin"},
		{"ann", "password", "admin", "127.0.0.1", "POST /api/login", "done", "a session was begun with a password"},
		{"somebody at 127.0.0.1", "", "", "127.0.0.1", "POST /api/login", "refused", "a sign-in as ann with a wrong password was refused"},
		{"by-look", "token", "look", "127.0.0.1", "GET /api/actions", "refused", "because it needs the role admin"},
		{"by-look", "token", "look", "127.0.0.1", "POST /api/events", "refused", "because it needs the role change"},
	} {
		found := false
		for _, x := range a.Actions {
			found = found || strings.Contains(x.Who, want.who) && x.Via == want.via && x.Role == want.role && x.Address == want.address && x.Call == want.call && x.Outcome == want.outcome && strings.Contains(x.Text, want.says)
		}
		if !found {
			t.Errorf("no action is %+v: %s", want, out)
		}
	}
	if code, out, _ := risso("", "audit actions --refused --who by-look"); code != 0 || strings.Count(out, "\n") != 2 {
		t.Errorf("got %d %s, want two lines", code, out)
	}
	all.WriteString(log.String())
	files, err := filepath.Glob(filepath.Join(data, "state.db*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	for _, secret := range []string{password, second, "short\n"} {
		if bytes.Contains(all.Bytes(), []byte(secret)) {
			t.Errorf("the password %q was printed, logged or stored", secret)
		}
	}
}
