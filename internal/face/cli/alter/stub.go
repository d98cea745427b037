package alter

import (
	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/face/cli/screen"
)

func newRun(s screen.Streams) *cobra.Command    { return &cobra.Command{Use: "run"} }
func newStatus(s screen.Streams) *cobra.Command { return &cobra.Command{Use: "status"} }
