package read

import (
	"context"
	"fmt"

	"github.com/rissodb/risso/internal/mysql"
)

// PluginState is the state of a plug-in: ACTIVE, INACTIVE, DISABLED, or "" if it is not installed.
func PluginState(ctx context.Context, c *mysql.Conn, name string) (string, error) {
	state, err := c.Text(ctx, "SELECT /* risso: is the plug-in there? */ PLUGIN_STATUS FROM information_schema.PLUGINS WHERE PLUGIN_NAME = '"+name+"'")
	if err != nil {
		return "", fmt.Errorf("read the list of plug-ins: %w", err)
	}
	return state, nil
}
