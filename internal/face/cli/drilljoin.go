package cli

import (
	"context"

	"github.com/rissodb/risso/internal/data/drill"
	"github.com/rissodb/risso/internal/data/repo"
)

// drillLoader puts logical backups into a drill's server.
func drillLoader() drill.Loader { return nil }

// drillRoller rolls a drill's server forward with the logs that are mirrored at a place.
func drillRoller(place string) drill.Roller { return nil }

// mirrored looks how far the mirrored logs of a backup's server reach; nil where none are mirrored.
func mirrored(ctx context.Context, place string, newest repo.Header) (*mirrorFacts, error) {
	return nil, nil
}
