package blob_test

import (
	"encoding/pem"
	"net"
	"testing"

	"golang.org/x/crypto/ssh/agent"
)

func encodePEM(b *pem.Block) []byte { return pem.EncodeToMemory(b) }

// serveAgent is an SSH agent with one key, until the test ends.
func serveAgent(t *testing.T, sock string, key any) {
	t.Helper()
	keys := agent.NewKeyring()
	if err := keys.Add(agent.AddedKey{PrivateKey: key}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			agent.ServeAgent(keys, c)
			c.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
}
