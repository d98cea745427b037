package state

import (
	"errors"
	"testing"
)

// TestDocuments holds that of two that change a document at once one is told so.
func TestDocuments(t *testing.T) {
	ctx := t.Context()
	s := newStore(t)
	d, err := s.PutDocument(ctx, Document{Kind: "group", Key: "g", By: "a", Body: []byte(`{"n":1}`)})
	if err != nil || d.Version != 1 {
		t.Fatalf("%+v, %v", d, err)
	}
	if _, err := s.PutDocument(ctx, Document{Kind: "group", Key: "g", Body: []byte(`{}`)}); !errors.Is(err, ErrConflict) {
		t.Errorf("a second new one: %v", err)
	}
	other := d
	d.Body = []byte(`{"n":2}`)
	if d, err = s.PutDocument(ctx, d); err != nil || d.Version != 2 {
		t.Fatalf("%+v, %v", d, err)
	}
	if _, err := s.PutDocument(ctx, other); !errors.Is(err, ErrConflict) {
		t.Errorf("an old one: %v", err)
	}
	if got, err := s.Document(ctx, "group", "g"); err != nil || string(got.Body) != `{"n":2}` || got.Version != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	if list, err := s.Documents(ctx, "group"); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	for _, key := range []string{"g/1", "g/2", "h/1", "g", "ga"} {
		if _, err := s.PutDocument(ctx, Document{Kind: "change", Key: key, Body: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := s.DocumentsUnder(ctx, "change", "g/"); err != nil || len(list) != 2 || list[0].Key != "g/1" || list[1].Key != "g/2" {
		t.Errorf("under g/: %v, %v", list, err)
	}
	if err := s.DropDocument(ctx, "group", "g", 1); !errors.Is(err, ErrConflict) {
		t.Errorf("drop an old one: %v", err)
	}
	if err := s.DropDocument(ctx, "group", "g", 2); err != nil {
		t.Error(err)
	}
	if _, err := s.Document(ctx, "group", "g"); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
}
