package chaos

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestLeft: of a run that was killed, the faults that it had not ended are found, the last first, and its controllers, but no other process that has the number by now.
func TestLeft(t *testing.T) {
	dir := t.TempDir()
	mark := filepath.Join(dir, "controller")
	if err := os.WriteFile(mark, []byte("sleep 60\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ours, other := exec.Command("sh", mark), exec.Command("sleep", "60")
	for _, c := range []*exec.Cmd{ours, other} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	}
	j, err := NewJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []Entry{{Event: "sandbox", Sandbox: "/box"}, {Event: "controller", PID: ours.Process.Pid}, {Event: "controller", PID: other.Process.Pid},
		{Event: "break", Fault: 1, Kind: Kill}, {Event: "heal", Fault: 1, Kind: Kill}, {Event: "break", Fault: 2, Kind: Freeze}, {Event: "break", Fault: 3, Kind: Clock}} {
		if err := j.Note(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := ReadLeft(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Faults) != 2 || l.Faults[0].Fault != 3 || l.Faults[1].Fault != 2 || l.Sandbox != "/box" || len(l.PIDs) != 1 || l.PIDs[0] != ours.Process.Pid {
		t.Errorf("got %+v, want faults 3 and 2, and process %d", l, ours.Process.Pid)
	}
	if err := l.End(); err != nil {
		t.Fatal(err)
	}
	if st, _ := ours.Process.Wait(); st == nil || st.Success() {
		t.Errorf("the controller ended by itself: %v", st)
	}
	if _, err := ReadLeft(t.TempDir()); err == nil {
		t.Error("a folder without a journal has nothing left")
	}
}

// TestHooks: commands of the user's get the server's names as words of a shell, and one that fails is an error with what it said.
func TestHooks(t *testing.T) {
	breaks, err := ParseHooks("fault", []string{"kill=printf '%s' {host}:{port} {name} > {name}"})
	if err != nil {
		t.Fatal(err)
	}
	o := &Own{Names: []string{"a b"}, At: map[string]string{"a b": "db1:3306"}, Breaks: breaks}
	t.Chdir(t.TempDir())
	if err := o.Break(t.Context(), Fault{Kind: Kill}, "a b"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("a b"); err != nil || string(got) != "db1:3306a b" {
		t.Errorf("got %q, %v; want the server's names", got, err)
	}
	if _, err := o.Heal(t.Context(), Fault{Kind: Kill}, "a b"); err != nil {
		t.Errorf("a fault that ends by itself: %v", err)
	}
	if o.Can(Freeze) == nil || o.Can(Kill) != nil {
		t.Error("what has a command is possible, and nothing else")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := Hook(ctx, "echo no such host >&2; exit 3"); err == nil || err.Error() != "echo no such host >&2; exit 3: exit status 3: no such host" {
		t.Errorf("got %v", err)
	}
	for _, bad := range []string{"kill", "kill=", "meteor=x"} {
		if _, err := ParseHooks("fault", []string{bad}); err == nil {
			t.Errorf("%q is a command for a fault", bad)
		}
	}
}
