package appliers

import "context"

func (c *command) watch(ctx context.Context) error { return nil }
