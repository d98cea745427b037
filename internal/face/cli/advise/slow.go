package advise

import (
	"context"
	"fmt"

	"github.com/rissodb/risso/internal/explain/digest"
	"github.com/rissodb/risso/internal/fault"
)

// slowProfile reads what classes of statements cost from slow logs; nil if none were given.
func (f *adviseFlags) slowProfile(ctx context.Context) (*digest.Profile, error) {
	if len(f.slow) == 0 {
		return nil, nil
	}
	var sources []digest.Source
	for _, name := range f.slow {
		s, err := digest.File(name)
		if err != nil {
			return nil, fault.New(fault.Usage, "", fmt.Errorf("--slow-log: %w", err))
		}
		sources = append(sources, s)
	}
	p, err := digest.Run(ctx, digest.Options{Samples: 3}, sources...)
	if err != nil {
		return nil, fmt.Errorf("--slow-log: %w", err)
	}
	if err := p.NoLog(""); err != nil {
		return nil, fmt.Errorf("--slow-log: %w", err)
	}
	return p, nil
}
