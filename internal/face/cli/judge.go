package cli

import (
	"fmt"
	"time"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/watch/live"
)

type plainJudge struct{}

func newJudge(string) live.Judge { return plainJudge{} }

func (plainJudge) Judge(_ time.Time, it, _ live.Facts) ([]fleet.Finding, string) {
	v := it.View()
	if !v.Up {
		return nil, fmt.Sprintf("the server %s since %s", v.Reason, v.DownSince.Format("15:04:05"))
	}
	return nil, "healthy"
}
