package state

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// unanswered agrees on nothing: what it is asked is not answered.
type unanswered struct{ Asker }

func (u unanswered) Propose(ctx context.Context, _ Change) error {
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err := u.Ask(ctx, http.MethodPost, "/propose", nil)
	return err
}

func (u unanswered) Level(context.Context) error { return ErrNoLeader }

// TestUnsure: of a change nobody answered it is said once that it is not known, without the address of a socket, and what to do.
func TestUnsure(t *testing.T) {
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	defer server.Close()
	defer close(end)
	stores, _ := shareStores(t, 1)
	stores[0].Share(unanswered{Asker{Client: server.Client(), Base: server.URL, Away: ErrShut}})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := stores[0].PutDocument(ctx, Document{Kind: "group", Key: "shop", Body: json.RawMessage(`{}`)})
	if want := "store group shop: it is not known whether the change was made: no answer: context deadline exceeded"; !errors.Is(err, ErrUnsure) || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
	if remedy := fleet.RemedyOf(err); !strings.Contains(remedy, "risso controller list") {
		t.Errorf("remedy %q, want how to see which controllers answer", remedy)
	}
}
