// Package agent is the command agent: the process beside a database server that fences it when nobody confirms that it is the primary.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/agent"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/serve"
	"github.com/rissodb/risso/internal/serve/config"
)

type command struct {
	screen.Streams
	flags.Server
	group, member, listen  string
	servers                []string
	tokenFile, fence       string
	state, output          string
	ttl                    time.Duration
	keepBoot, once, reopen bool
}

// DefaultListen is where an agent is asked.
const DefaultListen = ":8307"

// New is risso agent.
func New(s screen.Streams) *cobra.Command {
	c := &command{Streams: s}
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Fence a database server that nobody confirms as the primary, from beside it",
		Long: `Runs on the host of a member of a group. It asks risso serve four times a second who the primary is.
When none has confirmed for --ttl that its server is, or another one is, it fences the server:
super_read_only, or read_only and a global read lock, and the sessions of clients ended. Nobody can be
told then that a write is done. When a controller confirms the server again, the agent opens it. What
was there before is in a journal: an agent that is killed leaves the server as it is, and the next one
goes on. SIGTERM does not fence; a global read lock that the agent holds goes with it.

--fence says when: lost (nobody confirms it, or another is the primary), deposed (another is), or never.

At --listen it answers /health, /replica and /primary for load balancers, as risso health does; /primary
503 as soon as it hears that another server is the primary, and with --fence lost as soon as nobody
confirms it. It answers controllers at /witness and /fence, signed with the token.
--once asks the server and the controllers once, says what an agent would work with and what is wrong
with that, such as a server that would come up writable after a restart, and ends.`,
		Example: `  risso agent --dsn 'risso@unix(/run/mysqld/mysqld.sock)/' --group shop --member db1:3306 --server https://risso1:8306,https://risso2:8306 --token-file /etc/risso/token
  risso agent --dsn 'risso:secret@tcp(db1:3306)/' --group shop --server https://risso1:8306 --fence deposed --listen 127.0.0.1:8307
  risso agent --dsn 'risso:secret@tcp(db1:3306)/' --group shop --server https://risso1:8306 --once`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	fl := cmd.Flags()
	c.Bind(cmd, "the server to look after")
	fl.StringVar(&c.group, "group", "", "its group")
	fl.StringVar(&c.member, "member", "", "its name or address in the group (default: the address of --dsn)")
	fl.StringArrayVar(&c.servers, "server", nil, "address of a risso serve that controls the group: https://risso:8306; may be repeated, or several with commas")
	fl.StringVar(&c.tokenFile, "token-file", "", "file with the token (default: the environment variable RISSO_TOKEN)")
	fl.StringVar(&c.listen, "listen", DefaultListen, "address to answer at")
	fl.StringVar(&c.fence, "fence", agent.FenceLost, "when to fence: "+strings.Join(agent.Fences(), ", "))
	flags.DurationVar(fl, &c.ttl, "ttl", agent.DefaultTTL, "how long it holds that a controller confirmed the server; as the controllers have it")
	fl.BoolVar(&c.keepBoot, "boot", true, "a fenced server takes no writes after a restart either, where it can write that down itself (MySQL 8.0 and later)")
	fl.BoolVar(&c.reopen, "reopen", true, "open the server when it was started anew, came up read-only by its settings, and is confirmed as the primary")
	fl.BoolVar(&c.once, "once", false, "ask once, say what is wrong, and end")
	fl.StringVar(&c.state, "state", "", "folder of the journal (default "+home.State("agent")+")")
	flags.OutputVar(fl, &c.output, "with --once", "text", "json")
	return cmd
}

// shortest is the shortest lease: below it one slow answer would fence a server.
const shortest = time.Second

// options checks the flags.
func (c *command) options() (o agent.Options, err error) {
	if c.group == "" {
		return o, fault.Usagef("--group: name the group that the server belongs to")
	}
	if err := group.CheckName(c.group); err != nil {
		return o, err
	}
	o = agent.Options{Group: c.group, Member: c.member, TTL: c.ttl, Fence: c.fence, Boot: c.keepBoot, Reopen: c.reopen, State: c.state}
	for _, list := range c.servers {
		for one := range strings.SplitSeq(list, ",") {
			u, err := url.Parse(one)
			switch {
			case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "":
				return o, fault.Usagef("--server: write it as https://host:8306")
			case u.User != nil:
				return o, fault.Usagef("--server: no password belongs there; give the token by --token-file or RISSO_TOKEN")
			}
			o.Controllers = append(o.Controllers, u.Scheme+"://"+u.Host)
		}
	}
	switch {
	case len(o.Controllers) == 0:
		return o, fault.Usagef("--server: name the risso serve that controls the group")
	case !slices.Contains(agent.Fences(), c.fence):
		return o, fault.Usagef("--fence %q: one of %s", c.fence, strings.Join(agent.Fences(), ", "))
	case c.ttl < shortest:
		return o, fault.Usagef("--ttl %s: at least %s, or one slow answer would fence the server", c.ttl, shortest)
	case c.output != "text" && !c.once:
		return o, fault.Usagef("--output is for --once")
	}
	if o.Target, err = c.Target(); err != nil {
		return o, err
	}
	if o.Member == "" {
		host, _, err := net.SplitHostPort(o.Target.Address())
		if ip := net.ParseIP(host); err != nil || host == "localhost" || ip != nil && ip.IsLoopback() {
			return o, fault.Usagef("--member: which member of the group is it? --dsn leads to this machine, by no name that the others know")
		}
		o.Member = o.Target.Address()
	}
	o.Token = os.Getenv("RISSO_TOKEN")
	if c.tokenFile != "" {
		text, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return o, fault.Usagef("--token-file: %w", err)
		}
		o.Token = string(text)
	}
	o.Token = strings.TrimSpace(o.Token)
	if o.State == "" {
		o.State = home.State("agent")
	}
	o.Tell = func(line string) { fmt.Fprintf(c.Err, "risso: %s\n", line) }
	return o, nil
}

func (c *command) run(ctx context.Context) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	if c.once {
		return c.look(ctx, agent.New(o))
	}
	if _, err := config.CheckListen(c.listen); err != nil {
		return err
	}
	ln, err := serve.Listen(ctx, c.listen)
	if err != nil {
		return err
	}
	a := agent.New(o)
	answers := &http.Server{Handler: a.Handler(), ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() {
		if err := answers.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			o.Tell("answers no more: " + err.Error())
		}
	}()
	defer answers.Close()
	if o.Token == "" {
		o.Tell("no token is given: controllers take this agent for no witness, and orders to fence are refused")
	}
	fmt.Fprintf(c.Err, "risso: ready on http://%s, beside %s, %s of the group %s; it is fenced %s\n", ln.Addr(), o.Target.Address(), o.Member, o.Group, when(o))
	return a.Run(ctx)
}

// when says when a server is fenced.
func when(o agent.Options) string {
	switch o.Fence {
	case agent.FenceLost:
		return "when nobody confirms it for " + o.TTL.String() + ", or another server is the primary"
	case agent.FenceDeposed:
		return "when another server is the primary"
	}
	return "when a controller orders it"
}

// look is --once.
func (c *command) look(ctx context.Context, a *agent.Agent) error {
	s, err := a.Look(ctx)
	if err != nil {
		return err
	}
	if c.output == "json" {
		err = render.JSON(c.Out, s)
	} else {
		err = write(c.Out, s)
	}
	if err == nil && len(s.Problems) > 0 {
		return &fault.Told{Code: fault.Failed}
	}
	return err
}

// write writes a survey as text.
func write(w io.Writer, s agent.Survey) error {
	var b strings.Builder
	role := map[bool]string{true: "read-only", false: "takes writes"}[s.ReadOnly]
	if s.Replicates {
		role += ", replicates"
	}
	fmt.Fprintf(&b, "%s, %s of the group %s: %s\n", s.Server, s.Member, s.Group, role)
	for _, one := range s.Controllers {
		switch {
		case !one.Answers:
			fmt.Fprintf(&b, "%s: %s\n", one.URL, one.Error)
		case one.Mine:
			fmt.Fprintf(&b, "%s: this server is the primary of epoch %d\n", one.URL, one.Epoch)
		case one.Primary == "":
			fmt.Fprintf(&b, "%s: nobody is the primary; epoch %d\n", one.URL, one.Epoch)
		default:
			fmt.Fprintf(&b, "%s: %s is the primary of epoch %d\n", one.URL, one.Primary, one.Epoch)
		}
	}
	fmt.Fprintf(&b, "after a restart it takes writes: %s (%s)\n", s.Boot.Writable, s.Boot.Words)
	if len(s.Boot.Tail) > 0 {
		fmt.Fprintf(&b, "after a crash it commits what no replica acknowledged; an old primary does not with, in the section [mysqld] of its option file: %s\n", strings.Join(s.Boot.Tail, ", "))
	}
	fmt.Fprintf(&b, "to fence it: %s\n", strings.Join(s.Statements, "; "))
	fmt.Fprintf(&b, "a controller that cannot reach this agent waits %s before it promotes another server, where the group has --agent-ttl %s\n", digits.Span(s.Wait), digits.Duration(s.TTL))
	for _, p := range s.Problems {
		fmt.Fprintf(&b, "! %s: %s\n", p.What, fault.Line(p.Why, p.Remedy))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
