// Package route is the command route: a router that brings clients to the servers of a group.
package route

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/route"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/serve"
	"github.com/rissodb/risso/internal/serve/config"
)

type command struct {
	screen.Streams
	listen, urls, trusted []string
	tokenFile, config     string
	rules                 route.Rules
	role, fallback        string
	header, status        string
	o                     route.Options
}

// New is risso route.
func New(s screen.Streams) *cobra.Command {
	c := &command{Streams: s}
	cmd := &cobra.Command{
		Use:   "route",
		Short: "Bring clients to the primary of a group, or to its replicas, and follow a failover",
		Long: `Takes connections of MySQL clients and carries them to the servers of a group, as risso serve tells where
they are. When the primary changes, connections to the old one are cut at once, and new clients go to the
new one. While there is none, new clients are held for --hold instead of being refused; one that waited
in vain gets an error that says why. What client and server say to each other is not looked at: logins,
TLS and compression pass through.

--listen may be given several times, each with options of its own that stand behind the address:
  role=primary|replica  max-lag=5s  fallback=primary|hold|refuse  proxy-protocol=off|v1|v2
The flags of the same names are for those that do not say.

With the role replica, a client gets the replica that has the fewest connections for its weight; one that
is late counts less. With --max-lag no client is brought to one that is later, or whose lag is not known, and those
that a replica has when it becomes too late are cut. --fallback says what happens while no replica may have
clients.

--url names each risso serve that may be asked; the highest epoch wins. While none answers, what was last told
stays in force. SIGTERM ends it: no new clients, those that are there may end within --drain.`,
		Example: `  risso route --listen :3306 --group shop --url http://risso:8306
  risso route --listen :3306 --listen :3307,role=replica,max-lag=5s --group shop --url http://a:8306 --url http://b:8306
  risso route --listen :3306 --group shop --proxy-protocol v2 --status 127.0.0.1:8307`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&c.listen, "listen", nil, "address to take clients at, :3306, with options: :3307,role=replica; may be repeated")
	fl.StringVar(&c.o.Group, "group", "", "the group")
	fl.StringArrayVar(&c.urls, "url", nil, "address of risso serve: http://risso:8306; may be repeated (default: the one on this machine)")
	fl.StringVar(&c.tokenFile, "token-file", "", "file with the token (default: the environment variable RISSO_TOKEN)")
	fl.StringVar(&c.config, "config", "", "config file of risso serve, which says where it listens")
	fl.StringVar(&c.role, "role", string(route.Primary), "where clients go: primary or replica")
	flags.DurationVar(fl, &c.rules.MaxLag, "max-lag", 0, "how late a replica may be; 0: any")
	fl.StringVar(&c.fallback, "fallback", string(route.ToPrimary), "where clients for replicas go while none may have them: primary, hold (they wait) or refuse")
	flags.DurationVar(fl, &c.o.Hold, "hold", route.DefaultHold, "how long a client waits for a server")
	fl.IntVar(&c.o.MostHeld, "max-held", route.DefaultMostHeld, "how many clients may wait at once")
	flags.DurationVar(fl, &c.o.Connect, "connect-timeout", route.DefaultConnect, "how long a server may take to greet")
	flags.DurationVar(fl, &c.o.Drain, "drain", route.DefaultDrain, "how long connections may stay when the router ends")
	fl.StringVar(&c.header, "proxy-protocol", string(route.NoHeader), "tell servers the addresses of clients by the PROXY protocol: off, v1 or v2")
	fl.StringArrayVar(&c.trusted, "accept-proxy", nil, "network of load balancers whose connections begin with a PROXY header: 10.0.0.0/24; may be repeated")
	fl.StringVar(&c.status, "status", "", "address to tell its state at over HTTP, as risso route status asks for: 127.0.0.1:8307")
	cmd.AddCommand(newStatus(s))
	return cmd
}

func (c *command) run(ctx context.Context) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	doors, err := c.specs()
	if err != nil {
		return err
	}
	if c.o.Controllers, err = c.controllers(); err != nil {
		return err
	}
	var all []net.Listener
	defer func() {
		if err != nil {
			for _, ln := range all {
				_ = ln.Close()
			}
		}
	}()
	for i := range doors {
		ln, err := serve.Listen(ctx, doors[i].at)
		if err != nil {
			return err
		}
		all = append(all, ln)
		doors[i].Listener = ln
		c.o.Doors = append(c.o.Doors, doors[i].Door)
	}
	c.o.Say = func(text string) { fmt.Fprintf(c.Err, "risso: %s\n", text) }
	var told net.Listener
	if c.status != "" {
		told, err = serve.Listen(ctx, c.status)
		if fault.Code(err) == fault.InUse {
			return fault.New(fault.InUse, "choose another with --status", err)
		}
		if err != nil {
			return err
		}
		defer told.Close()
	}
	r, err := route.New(c.o)
	if err != nil {
		return err
	}
	for _, d := range c.o.Doors {
		what := "primary"
		if d.Role == route.Replica {
			what = "replicas"
		}
		fmt.Fprintf(c.Err, "risso: ready on %s for the %s of group %s\n", d.Listener.Addr(), what, c.o.Group)
	}
	if told != nil {
		fmt.Fprintf(c.Err, "risso: state on http://%s/\n", told.Addr())
		server := &http.Server{Handler: tell(r), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
		go func() { _ = server.Serve(told) }()
		defer server.Close()
	}
	return r.Run(ctx)
}

func (c *command) check() error {
	switch {
	case len(c.listen) == 0:
		return fault.Usagef("--listen says where clients come: :3306")
	case c.o.Group == "":
		return fault.Usagef("--group says whose servers clients are brought to")
	case c.o.Hold < 0 || c.o.Drain < 0:
		return fault.Usagef("--hold and --drain: 0 or longer")
	case c.o.MostHeld < 0:
		return fault.Usagef("--max-held %d: 0 or more", c.o.MostHeld)
	case c.o.Connect < 10*time.Millisecond:
		return fault.Usagef("--connect-timeout %s: at least 10ms", digits.Duration(c.o.Connect))
	}
	if err := group.CheckName(c.o.Group); err != nil {
		return err
	}
	for _, text := range c.trusted {
		p, err := netip.ParsePrefix(text)
		if a, no := netip.ParseAddr(text); err != nil && no == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			return fault.Usagef("--accept-proxy %q: write it as 10.0.0.0/24", text)
		}
		c.o.Trusted = append(c.o.Trusted, p)
	}
	if c.status != "" {
		if _, err := config.CheckListen(c.status); err != nil {
			return fault.Usagef("--status %q: write it as host:port", c.status)
		}
	}
	return nil
}

// spec is a door that is not open yet.
type spec struct {
	route.Door
	at string
}

// specs reads --listen: an address, and options behind it.
func (c *command) specs() (list []spec, err error) {
	for _, text := range c.listen {
		s := spec{Door: route.Door{Rules: c.rules, Header: route.Header(c.header)}}
		s.Role, s.Fallback = route.Role(c.role), route.Fallback(c.fallback)
		given := false
		for i, part := range strings.Split(text, ",") {
			if i == 0 {
				s.at = part
				if _, err := config.CheckListen(part); err != nil {
					return nil, err
				}
				continue
			}
			name, value, _ := strings.Cut(part, "=")
			switch name {
			case "role":
				s.Role = route.Role(value)
			case "max-lag":
				given = true
				if s.MaxLag, err = digits.ParseDuration(value); err != nil {
					return nil, fault.Usagef("--listen %q: max-lag: %w", text, err)
				}
			case "fallback":
				s.Fallback = route.Fallback(value)
			case "proxy-protocol":
				s.Header = route.Header(value)
			default:
				return nil, fault.Usagef("--listen %q: no option %q; there are role, max-lag, fallback and proxy-protocol", text, name)
			}
		}
		if s.Role == route.Primary && !given && len(c.listen) > 1 {
			s.MaxLag = 0 // the flag is for the others
		}
		if err := s.Check(); err != nil {
			return nil, fault.Usagef("--listen %q: %w", text, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// controllers are those of --url, or that of this machine.
func (c *command) controllers() (list []route.Controller, err error) {
	urls := c.urls
	if len(urls) == 0 {
		urls = []string{""}
	}
	for _, u := range urls {
		r := flags.Running{To: u, TokenFile: c.tokenFile, ConfigFile: c.config}
		if err := r.Find("--url"); err != nil {
			return nil, err
		}
		list = append(list, route.Controller{URL: r.URL, Token: r.Token()})
	}
	return list, nil
}

// tell answers with the state of a router.
func tell(r *route.Router) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method != http.MethodGet && q.Method != http.MethodHead {
			http.Error(w, "Ask by GET.", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = render.JSON(w, r.Status()) // who asked is gone
	})
}

// newStatus is risso route status.
func newStatus(s screen.Streams) *cobra.Command {
	var address, output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Where the clients of a router are: connections by server, held, cut, and the view that it follows",
		Long: `Asks a risso route that was started with --status where its clients are, which of them wait, what it cut,
and which view of its group it follows.`,
		Example: `  risso route status --status 127.0.0.1:8307
  risso route status --status 127.0.0.1:8307 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := config.CheckListen(address); err != nil {
				return fault.Usagef("--status %q: write it as host:port", address)
			}
			a, err := ask(cmd.Context(), address)
			if err != nil {
				return err
			}
			if output == "json" {
				return render.JSON(s.Out, a)
			}
			return show(s, a)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&address, "status", "127.0.0.1:8307", "where the router tells its state")
	flags.OutputVar(fl, &output, "", "text", "json")
	return cmd
}

func ask(ctx context.Context, address string) (a route.Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return a, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return a, fault.New(fault.Failed, "is risso route running there with --status?", fmt.Errorf("ask %s: %w", address, errors.Unwrap(err)))
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || resp.StatusCode != http.StatusOK {
		return a, fault.New(fault.Failed, "--status is that of risso route", fmt.Errorf("%s is no risso route: status %d", address, resp.StatusCode))
	}
	return a, nil
}

func show(s screen.Streams, a route.Status) error {
	age := "never told"
	if a.ViewAge != nil {
		age = "told " + digits.Age(*a.ViewAge)
	}
	primary := a.Primary
	if primary == "" {
		primary = "none"
		if a.NoPrimary != "" {
			primary += " (" + a.NoPrimary + ")"
		}
	}
	fmt.Fprintf(s.Out, "group %s, epoch %d, %s; primary: %s\n", a.Group, a.Epoch, age, primary)
	fmt.Fprintf(s.Out, "%s of at most %s; %s of at most %s\n", digits.Counted(a.Open, "client"), digits.Thousands(a.MostOpen), digits.Counted(a.Held, "held one"), digits.Thousands(a.MostHeld))
	for _, c := range a.Controllers {
		text := "answers"
		if !c.Answers {
			text = "does not answer"
		}
		if c.Error != "" {
			text += ": " + c.Error
		}
		if c.Older > 0 {
			text += fmt.Sprintf(", and tells epoch %d, which is older: not followed", c.Older)
		}
		fmt.Fprintf(s.Out, "controller %s: %s\n", c.URL, text)
	}
	servers := render.Table{Heads: []string{"SERVER", "ADDRESS", "PLACE", ">WEIGHT", ">LAG", ">OPEN", ">TOTAL", ">CUT", ">FAILED", "STATE"}}
	for _, v := range a.Servers {
		lag, weight, state, place := "unknown", digits.Number(v.Weight), "", v.Place
		if v.Lag != nil {
			lag = digits.Seconds(*v.Lag)
		}
		if place == "" {
			place = "none now"
		}
		if place != string(route.Replica) {
			lag, weight = "", ""
		}
		if v.Down {
			state = "does not answer: " + v.Problem
		}
		servers.Rows = append(servers.Rows, []string{v.Server, v.Address, place, weight, lag, digits.Thousands(v.Open), digits.Thousands(v.Total), digits.Thousands(v.Cut), digits.Thousands(v.Failed), state})
	}
	doors := render.Table{Heads: []string{"LISTEN", "ROLE", ">OPEN", ">HELD", ">TAKEN", ">WAITED", ">REFUSED", ">GONE"}}
	for _, d := range a.Doors {
		doors.Rows = append(doors.Rows, []string{d.Listen, string(d.Role), digits.Thousands(d.Open), digits.Thousands(d.Held), digits.Thousands(d.Taken), digits.Thousands(d.Waited), digits.Thousands(d.Refused), digits.Thousands(d.Gone)})
	}
	for _, t := range []render.Table{servers, doors} {
		fmt.Fprintln(s.Out)
		for _, line := range t.Lines(screen.Width(s.Out)) {
			fmt.Fprintln(s.Out, line)
		}
	}
	return nil
}
