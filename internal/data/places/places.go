// Package places opens the places of backups and mirrored logs by the names that users give them, and determines which keys to
// trust there.
package places

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/store/blob"
)

// Keys reads recipients, each itself or a file of them, and the file of an identity; both may be empty.
func Keys(recipients []string, identity string) (k repo.Keys, err error) {
	if k.Recipients, err = repo.ReadRecipients(recipients...); err != nil {
		return k, fault.Usagef("--encrypt-to: %w", err)
	}
	if identity != "" {
		if k.Identities, err = repo.ReadIdentities(identity); err != nil {
			return k, fault.Usagef("--identity: %w", err)
		}
	}
	k.CacheDir = filepath.Join(home.Data(), "keys")
	return k, nil
}

// Make opens the repository in a place, and makes one if there is none. What is taken into it is signed.
func Make(ctx context.Context, place string, k repo.Keys) (*repo.Repo, func(), error) {
	k, err := Sign(k)
	if err != nil {
		return nil, nil, err
	}
	store, err := blob.Open(ctx, place, blob.Options{})
	if err != nil {
		return nil, nil, err
	}
	r, err := repo.CreateWith(ctx, repo.On(store), k)
	if err == nil {
		err = Own(r, place, k)
	}
	if err != nil {
		store.Close()
		return nil, nil, Failure(ctx, place, err)
	}
	return r, func() { store.Close() }, nil
}

// Open opens the repository in a place; the caller closes it.
func Open(ctx context.Context, place string, k repo.Keys) (*repo.Repo, func(), error) {
	store, err := blob.Open(ctx, place, blob.Options{})
	if err != nil {
		return nil, nil, err
	}
	r, err := repo.OpenWith(ctx, repo.On(store), k)
	if err != nil {
		store.Close()
		if errors.Is(err, repo.ErrNoKey) {
			return nil, nil, fault.New(fault.Failed, "nothing was changed", fmt.Errorf("%s: %w", Words(place), err))
		}
		return nil, nil, Failure(ctx, place, err)
	}
	return r, func() { store.Close() }, nil
}

// Failure is an error of a repository and how to fix it.
func Failure(ctx context.Context, place string, err error) error {
	remedy := ""
	switch {
	case ctx.Err() != nil:
		return fault.New(fault.Interrupted, "", errors.New("interrupted"))
	case errors.Is(err, repo.ErrNoRepository):
		remedy = "risso backup --to makes one"
	case errors.Is(err, repo.ErrFull):
		remedy = "prune needs room for an empty file; free some space by hand: no backup needs what is under damaged/"
	case errors.Is(err, repo.ErrPruning):
		remedy = "if it was just killed on another machine, its lease ends within " + digits.Seconds(repo.LeaseLife.Seconds())
	}
	return fault.New(fault.Failed, remedy, fmt.Errorf("%s: %w", Words(place), err))
}
