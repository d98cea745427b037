package mysql_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/sandbox"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestCanceled: whatever a connection was about when its caller canceled it, its error says so. It is canceled at another moment each time: also between two statements, and
// just before one is sent.
func TestCanceled(t *testing.T) {
	box := sandboxtest.Sandbox(t, sandbox.Options{Servers: []string{"mariadb"}})
	for i := range 300 {
		ctx, cancel := context.WithCancel(t.Context())
		c := sandboxtest.Connect(t, box.Nodes[0])
		time.AfterFunc(time.Duration(i)*3*time.Microsecond, cancel)
		var err error
		for n := 0; err == nil; n++ {
			if n%2 == 0 {
				_, err = c.Maps(ctx, "SELECT 1")
			} else {
				err = c.Exec(ctx, "DO 1")
			}
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("canceled after %d steps: got %v", i, err)
		}
		c.Close()
	}
}
