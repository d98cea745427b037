package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
)

func TestPasswordSpan(t *testing.T) {
	for _, c := range []struct{ arg, want string }{
		{"root:secret@tcp(h:3306)/", "secret"},
		{"--dsn=root:s:e@cr/et@tcp(h:3306)/db?tls=true", "s:e@cr/et"},
		{"root@unix(/a:b@c/d.sock)/", ""},
		{"root:pw@/", "pw"},
		{"--dsn", ""},
		{"/var/lib/data:x@y", ""},
		{"root:@tcp(h)/", ""},
		{"root://pw@tcp(h)/", "//pw"},
		{"clickhouse://risso:pw@host:9000/db", "pw"},
		{"--events-url=http://risso:p@w@host:8123", "p@w"},
		{"--events-url=clickhouse://host:9000/db", ""},
	} {
		start, end, ok := passwordSpan(c.arg)
		if got := c.arg[start:end]; got != c.want || ok != (c.want != "") {
			t.Errorf("password of %q: got %q, want %q", c.arg, got, c.want)
		}
	}
}

// TestSecretSpans: passwords that have a name are found, too.
func TestSecretSpans(t *testing.T) {
	for _, c := range []struct{ arg, want string }{
		{"--mysql-password=hush@hush", "hush@hush"}, {"--mysql_password=a&b", "a&b"}, {"--pgsql-password=hush", "hush"}, {"--mysql-password=", ""},
		{"postgres:///db?host=/run/pg&user=u&password=hush&x=1", "hush"}, {"--dsn=postgres://u:one@h/db?PASSWORD=two", "one two"}, {"postgres://h/db?sslpassword=hush", "hush"},
		{"root:pw@/db", "pw"}, {"--set-b=default_password_lifetime=3", ""}, {"SELECT password=1", ""},
	} {
		var got []string
		for _, s := range secretSpans(c.arg) {
			got = append(got, strings.TrimPrefix(c.arg[s[0]:s[1]], "//u:"))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.arg, got, c.want)
		}
	}
	// A message contains no password, wherever the argument ends.
	var errs bytes.Buffer
	code := Main(t.Context(), []string{"bench", "report", "--mysql-password=hush", "/no/such?password=hush"}, screen.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &errs})
	if code != fault.Usage || strings.Contains(errs.String(), "hush") {
		t.Errorf("code %d: got %s; want code fault.Usage, no \"hush\" in it", code, errs.String())
	}
	errs.Reset()
	if code := Main(t.Context(), []string{"bench", "report", "/no/such?password=hush"}, screen.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &errs}); code != fault.Usage || !strings.Contains(errs.String(), "password=***") {
		t.Errorf("code %d: got %s; want code fault.Usage, \"password=***\" in it", code, errs.String())
	}
}

// TestWipedFromProcessList runs this test binary as a process that was given a password and looks at what the
// kernel shows of its command line.
func TestWipedFromProcessList(t *testing.T) {
	if os.Getenv("RISSO_WIPE_CHILD") != "" {
		safe := WipePasswords(os.Args)
		if last := safe[len(safe)-1]; !strings.Contains(last, "tops3cret") {
			os.Exit(3)
		}
		os.Stdout.WriteString("wiped\n")
		time.Sleep(10 * time.Second)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=TestWipedFromProcessList", "--", "--mysql-password=tops3cret", "root:tops3cret@tcp(127.0.0.1:1)/")
	cmd.Env = append(os.Environ(), "RISSO_WIPE_CHILD=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	buf := make([]byte, 6)
	if n, err := out.Read(buf); err != nil || string(buf[:n]) != "wiped\n" {
		t.Fatalf("child said %q, %v; want \"wiped\\n\"", buf[:n], err)
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(line), "tops3cret") || !strings.Contains(string(line), "--mysql-password=*********\x00root:*********@tcp") {
		t.Errorf("the process list shows %q; want no \"tops3cret\" in it, \"--mysql-password=*********\\x00root:*********@tcp\" in it", line)
	}
}
