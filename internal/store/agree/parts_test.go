package agree

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestLog: entries and kept values are there after the log was opened again, and are cut and overwritten as Raft wants it.
func TestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	l, err := openLog(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	var list []*raft.Log
	for i := range uint64(10) {
		list = append(list, &raft.Log{Index: i + 1, Term: 1, Type: raft.LogCommand, Data: []byte{byte(i)}, AppendedAt: time.Unix(int64(i), 0)})
	}
	if first, err := l.FirstIndex(); first != 0 || err != nil {
		t.Errorf("an empty log: got %d, %v; want 0", first, err)
	}
	if err := errors.Join(l.StoreLogs(list), l.StoreLog(&raft.Log{Index: 8, Term: 2, Type: raft.LogNoop}), l.DeleteRange(9, 10), l.DeleteRange(1, 4),
		l.SetUint64([]byte("CurrentTerm"), 1<<63), l.Set([]byte("who"), []byte("c1")), l.Close()); err != nil {
		t.Fatal(err)
	}
	if l, err = openLog(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	first, err1 := l.FirstIndex()
	last, err2 := l.LastIndex()
	term, err3 := l.GetUint64([]byte("CurrentTerm"))
	who, err4 := l.Get([]byte("who"))
	none, err5 := l.GetUint64([]byte("none"))
	nothing, err6 := l.Get([]byte("none"))
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil || first != 5 || last != 8 || term != 1<<63 || string(who) != "c1" || none != 0 || len(nothing) != 0 {
		t.Errorf("got %d to %d, term %d, %q, %d, %q, %v; want 5 to 8, %d, c1, 0, nothing", first, last, term, who, none, nothing, err, uint64(1<<63))
	}
	var e raft.Log
	if err := l.GetLog(8, &e); err != nil || e.Term != 2 || e.Type != raft.LogNoop {
		t.Errorf("an entry that was overwritten: got %+v, %v; want that of term 2", e, err)
	}
	if err := l.GetLog(6, &e); err != nil || e.Index != 6 || string(e.Data) != "\x05" || !e.AppendedAt.Equal(time.Unix(5, 0)) {
		t.Errorf("got %+v, %v; want entry 6 as it was", e, err)
	}
	if err := l.GetLog(4, &e); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("an entry that was cut: got %v, want ErrLogNotFound", err)
	}
}

// TestStrangers: who has no certificate of the controllers gets no answer, and neither does their port's plain text.
func TestStrangers(t *testing.T) {
	a := found(t, "c1")
	until(t, "a leader", a.Leader)
	f, err := MakeFolder(t.TempDir(), Settings{Cluster: "another", Name: "c1", Address: sandboxtest.FreeAddress(t)})
	if err != nil {
		t.Fatal(err)
	}
	k, err := f.keys()
	if err != nil {
		t.Fatal(err)
	}
	own, err := a.Folder.keys()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(c net.Conn, err error) string {
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		_, _ = io.WriteString(c, "POST /status HTTP/1.1\r\nHost: c1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n") // that fails where it is refused
		text, _ := io.ReadAll(c)
		return string(text)
	}
	for name, c := range map[string]struct {
		tls  *tls.Config
		good bool
	}{
		"its own":         {&tls.Config{Certificates: []tls.Certificate{own.cert}, RootCAs: own.pool, ServerName: serverName, NextProtos: []string{protocolHTTP}}, true},
		"another's":       {&tls.Config{Certificates: []tls.Certificate{k.cert}, InsecureSkipVerify: true, NextProtos: []string{protocolHTTP}}, false},
		"none":            {&tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocolHTTP}}, false},
		"none, for Raft":  {&tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocolRaft}}, false},
		"an old protocol": {&tls.Config{Certificates: []tls.Certificate{own.cert}, RootCAs: own.pool, ServerName: serverName, MaxVersion: tls.VersionTLS12}, false},
	} {
		conn, err := tls.Dial("tcp", a.Folder.Address, c.tls)
		if err != nil {
			if c.good {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if got := ask(conn, nil); strings.Contains(got, "200 OK") != c.good {
			t.Errorf("a certificate that is %s: got %q, want an answer: %v", name, got, c.good)
		}
	}
	if got := ask(net.Dial("tcp", a.Folder.Address)); strings.Contains(got, "200 OK") {
		t.Errorf("plain text: got %q", got)
	}
	if _, err := ParseInvitation([]byte(`{"format": "something else"}`)); err == nil {
		t.Error("something else was taken for an invitation")
	}
	for _, s := range []Settings{{Name: "", Address: "a:1"}, {Name: "a b", Address: "a:1"}, {Name: "a", Address: "a"}, {Name: "a", Address: ":1"}, {Name: "a", Address: "a:0"}, {Name: "a", Address: "a:1", Heartbeat: 1}} {
		if s.Check() == nil {
			t.Errorf("%+v was taken", s)
		}
	}
}
