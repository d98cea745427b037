package topology

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/serve/topology"
)

// looks is what a risso serve must be able to.
const looks = "look at the topology"

// ask asks a running risso serve.
func (c *command) ask(ctx context.Context) error {
	now := time.Now()
	at, err := flags.Lately(c.at, now, time.Local)
	if err != nil {
		return fault.Usagef("--at: %w", err)
	}
	if c.output == "dot" {
		return fault.Usagef("--output dot draws what is found now by --dsn; of risso serve there are text, json and svg")
	}
	path := "/api/topology"
	if !at.IsZero() {
		path += "?" + url.Values{"at": {strconv.FormatInt(at.Unix(), 10)}}.Encode()
	}
	var a topology.Answer
	if err := c.to.Do(ctx, http.MethodGet, path, nil, looks, &a); err != nil {
		return err
	}
	if c.output == "json" {
		return render.JSON(c.Out, a)
	}
	if !a.Known {
		hint := ""
		if !a.Before.IsZero() {
			hint = "the last time before that is known: --at '" + a.Before.Local().Format(time.DateTime) + "'"
		}
		return fault.New(fault.Failed, hint, errors.New("not known: "+a.Why))
	}
	if c.output == "svg" {
		_, err := io.WriteString(c.Out, a.Shown.SVG())
		return err
	}
	if !at.IsZero() {
		if _, err := fmt.Fprintf(c.Out, "as it was from %s to %s\n", a.From.Local().Format(time.DateTime), a.Until.Local().Format(time.DateTime)); err != nil {
			return err
		}
	}
	_, err = io.WriteString(c.Out, a.Shown.Words+"\n\n"+a.Shown.Tree(screen.Width(c.Out)))
	return err
}
