// Package incident is the command incident: what was kept around stalls and critical findings.
package incident

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/watch/incident"
)

// ListAnswer lists incidents, the newest first.
type ListAnswer struct {
	Incidents []incident.Incident `json:"incidents"`
}

// command is what all commands below incident have.
type command struct {
	screen.Streams
	flags.Running
	output string
}

// keeps is what a risso serve must be able to.
const keeps = "keep incidents"

// New is the command incident.
func New(s screen.Streams) *cobra.Command {
	c := &command{Streams: s}
	cmd := &cobra.Command{
		Use:   "incident",
		Short: "What happened in a stall: list, show, share as HTML",
		Long: `When a server stalls, or something critical is found, a running risso serve keeps what its
sessions, transactions and locks did in each second from half a minute before until a minute
after (see docs/incidents.md). These commands ask it.`,
		Example: `  risso incident list --since 7d
  risso incident show
  risso incident show db1-20261124-022337 --html stall.html`,
	}
	c.Bind(cmd)
	flags.OutputVar(cmd.PersistentFlags(), &c.output, "", "text", "json")
	cmd.AddCommand(c.list(), c.show())
	return cmd
}

func (c *command) list() *cobra.Command {
	var server, since string
	cmd := &cobra.Command{Use: "list", Short: "Incidents, the newest first", Args: cobra.NoArgs, Example: "  risso incident list --server db1 --since 24h",
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := digits.ParseAge(since)
			if err != nil {
				return fault.Usagef("--since %q: write it as 12h or 7d: so long ago", since)
			}
			q := url.Values{"from": {strconv.FormatInt(time.Now().Add(-d).Unix(), 10)}}
			if server != "" {
				q.Set("instance", fleet.Slug(server))
			}
			var a ListAnswer
			if err := c.Do(cmd.Context(), http.MethodGet, "/api/incidents?"+q.Encode(), nil, keeps, &a); err != nil {
				return err
			}
			if c.output == "json" {
				return render.JSON(c.Out, a)
			}
			return screen.Tabulate(c.Out, func(w io.Writer) {
				for _, i := range a.Incidents {
					lasted := "goes on"
					if !i.Ended.IsZero() {
						lasted = digits.Span(i.Ended.Sub(i.Began))
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", i.ID, i.Began.Local().Format(time.DateTime), lasted, i.Title)
				}
			})
		}}
	cmd.Flags().StringVar(&server, "server", "", "only those of this server")
	cmd.Flags().StringVar(&since, "since", "30d", "only since so long ago")
	return cmd
}

func (c *command) show() *cobra.Command {
	var page string
	var literals bool
	cmd := &cobra.Command{Use: "show [ID]", Short: "Tell an incident, or write it as one HTML file", Args: cobra.MaximumNArgs(1),
		Long: `Tells an incident step by step; without an ID, the newest one. --html writes it as one file that refers to nothing elsewhere;
literals of statements are left out of it, unless --literals is given.`,
		Example: "  risso incident show db1-20261124-022337\n  risso incident show db1-20261124-022337 --html stall.html",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.named(cmd.Context(), args)
			if err != nil {
				return err
			}
			t, err := c.told(cmd.Context(), id, literals || page == "")
			if err != nil {
				return err
			}
			if page != "" {
				if err := write(page, t); err != nil {
					return err
				}
			}
			switch {
			case c.output == "json":
				return render.JSON(c.Out, t)
			case page != "":
				return nil
			}
			return tell(c.Out, t)
		}}
	cmd.Flags().StringVar(&page, "html", "", "write it as one HTML file")
	cmd.Flags().BoolVar(&literals, "literals", false, "leave the literals of statements in the file")
	return cmd
}

// named is the incident that the user named, or the newest one.
func (c *command) named(ctx context.Context, args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	var a ListAnswer
	if err := c.Do(ctx, http.MethodGet, "/api/incidents?limit=1", nil, keeps, &a); err != nil {
		return "", err
	}
	if len(a.Incidents) == 0 {
		return "", fault.New(fault.Failed, "", errors.New("there was no incident yet"))
	}
	return a.Incidents[0].ID, nil
}

func (c *command) told(ctx context.Context, id string, literals bool) (*incident.Told, error) {
	q := url.Values{"id": {id}, "literals": {strconv.FormatBool(literals)}}
	t := new(incident.Told)
	return t, c.Do(ctx, http.MethodGet, "/api/incident?"+q.Encode(), nil, keeps, t)
}

// write writes the page; a file that is there is not touched.
func write(path string, t *incident.Told) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if os.IsExist(err) {
		return fault.Usagef("%s is there already", path)
	}
	if err != nil {
		return err
	}
	return errors.Join(t.HTML(f), f.Close())
}

// tell writes the story.
func tell(w io.Writer, t *incident.Told) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", t.Story.First)
	for _, s := range t.Story.Steps {
		fmt.Fprintf(&b, "%s  %s\n", s.At.Local().Format("15:04:05"), s.Text)
	}
	fmt.Fprintf(&b, "\n%s\n", t.Story.End)
	for _, d := range t.Deadlocks {
		fmt.Fprintf(&b, "\ndeadlock, seen at %s\n%s", time.Unix(d.Tick, 0).Local().Format("15:04:05"), d.Drawn)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
