package cli

import (
	"context"
	"errors"

	"github.com/rissodb/risso/internal/data/drill"
	"github.com/rissodb/risso/internal/data/load"
	"github.com/rissodb/risso/internal/data/repo"
)

// drillLoader puts logical backups into a drill's server.
func drillLoader() drill.Loader { return restoreLoader{} }

// restoreLoader is a restore as a drill needs it.
type restoreLoader struct{}

// Load implements drill.Loader.
func (restoreLoader) Load(ctx context.Context, r drill.LoadRequest) (drill.Loaded, error) {
	got, err := load.Restore(ctx, load.Options{Repo: r.Repo, Backup: r.Backup, Into: r.Into, Threads: r.Threads, SkipIncompatible: true, Hold: true,
		Progress: func(p load.Progress) { r.Progress(p.Stage, p.Bytes, p.Total) }})
	out := drill.Loaded{Tables: got.Tables, Rows: got.Rows, Bytes: got.Bytes, Notes: got.Notes}
	for _, t := range got.Different {
		out.Different = append(out.Different, t.Schema+"."+t.Table)
	}
	if errors.Is(err, load.ErrDifferent) && len(out.Different) > 0 {
		err = nil // the drill says so
	}
	return out, err
}

// drillRoller rolls a drill's server forward with the logs that are mirrored at a place.
func drillRoller(place string) drill.Roller { return nil }

// mirrored looks how far the mirrored logs of a backup's server reach; nil where none are mirrored.
func mirrored(ctx context.Context, place string, newest repo.Header) (*mirrorFacts, error) {
	return nil, nil
}
