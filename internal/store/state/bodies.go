package state

import (
	"context"
	"encoding/json"
	"fmt"
)

// Documents is where documents are kept: a Store, or what changes it together with others.
type Documents interface {
	PutDocument(ctx context.Context, d Document) (Document, error)
	Document(ctx context.Context, kind, key string) (Document, error)
	Documents(ctx context.Context, kind string) ([]Document, error)
	DocumentsUnder(ctx context.Context, kind, prefix string) ([]Document, error)
	DropDocument(ctx context.Context, kind, key string, version int64) error
}

// Decode reads the body of a document into v.
func (d Document) Decode(v any) error {
	if err := json.Unmarshal(d.Body, v); err != nil {
		return fmt.Errorf("read %s %s: %w", d.Kind, d.Key, err)
	}
	return nil
}

// ReadBody reads the body of a document into v, and returns its version. It wraps ErrNotFound if there is none.
func ReadBody(ctx context.Context, docs Documents, kind, key string, v any) (version int64, err error) {
	d, err := docs.Document(ctx, kind, key)
	if err != nil {
		return 0, err
	}
	return d.Version, d.Decode(v)
}

// ReadBodies reads the bodies of all documents of a kind, by key.
func ReadBodies[T any](ctx context.Context, docs Documents, kind string) ([]T, error) {
	all, err := docs.Documents(ctx, kind)
	if err != nil {
		return nil, err
	}
	list := make([]T, len(all))
	for i, d := range all {
		if err := d.Decode(&list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// WriteBody writes v over a version, 0 for a new document, and returns the new version. It wraps ErrConflict if another one is there.
func WriteBody(ctx context.Context, docs Documents, who, kind, key string, version int64, v any) (int64, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return 0, err
	}
	d, err := docs.PutDocument(ctx, Document{Kind: kind, Key: key, Version: version, By: who, Body: body})
	return d.Version, err
}
