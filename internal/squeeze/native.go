//go:build cgo

package squeeze

import (
	"runtime"
	"slices"

	"github.com/DataDog/zstd"
)

// Native is true if this build uses libzstd.
const Native = true

// level is that of libzstd. On rows of sysbench, orders, JSON documents and measurements together it packs 627 MB per second
// of processor time by 4.04; level 2 375 by 4.00, level -1 691 by 2.18, the Go encoder's fastest 311 by 3.82.
const level = 1

// frames is a context of libzstd, which is freed when the garbage collector finds it.
type frames struct{ ctx zstd.Ctx }

func newFrames() (*frames, error) { return &frames{zstd.NewCtx()}, nil }

func (f *frames) append(to, raw []byte) ([]byte, error) {
	// With room for the worst case it writes into the given slice, and makes none of its own.
	to = slices.Grow(to, zstd.CompressBound(len(raw)))
	frame, err := f.ctx.CompressLevel(to[len(to):], raw, level)
	runtime.KeepAlive(f)
	if err != nil {
		return to, err
	}
	return to[:len(to)+len(frame)], nil
}
