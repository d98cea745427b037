package topology

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/topology/picture"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/oneline"
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
	when := fmt.Sprintf("as it was from %s to %s", a.From.Local().Format(time.DateTime), a.Until.Local().Format(time.DateTime))
	if at.IsZero() {
		when = fmt.Sprintf("as it was seen at %s, %s before it was asked for", a.Until.Local().Format(time.DateTime), digits.Span(a.At.Sub(a.Until).Round(time.Second)))
	}
	width := screen.Width(c.Out)
	_, err = io.WriteString(c.Out, when+"\n"+a.Shown.Words+"\n\n"+a.Shown.Tree(width)+foundText(a.Shown, width))
	return err
}

// foundText is what was diagnosed in a picture, as text: what follows from something else is left out, as that stands there.
func foundText(p *picture.Picture, width int) string {
	var b strings.Builder
	for i := range p.Nodes {
		for _, f := range p.Nodes[i].Findings {
			if f.Because != "" {
				continue
			}
			fmt.Fprintf(&b, "%s\n", oneline.Cut(fmt.Sprintf("%-8s  %s: %s", f.Severity, f.ID, oneline.Of(f.What)), width))
			if f.Severity > fleet.SeverityInfo {
				fmt.Fprintf(&b, "          %s\n          next: %s\n", oneline.Cut(oneline.Of(f.Why), max(width-10, 0)), oneline.Of(f.Remedy))
			}
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + b.String()
}
