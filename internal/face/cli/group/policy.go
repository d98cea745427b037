package group

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rissodb/risso/internal/avail/failover/carry"
	"github.com/rissodb/risso/internal/avail/group"
	"github.com/rissodb/risso/internal/avail/group/keep"
	"github.com/rissodb/risso/internal/avail/repoint"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/serve/config"
)

// policy are the flags that say how a group fails over.
type policy struct {
	semiSync, lossless, manual, noRow, rebuild, noRejoin bool
	about, center                                        string
	pause, agents                                        time.Duration
	agentPort                                            int
	agentToken                                           string
}

func (p *policy) flags(fl *pflag.FlagSet) {
	fl.BoolVar(&p.semiSync, "semi-sync", false, "each new primary waits for an acknowledgement of a replica before a commit is acknowledged")
	fl.BoolVar(&p.lossless, "lossless", false, "refuse a failover that is known to lose transactions")
	fl.BoolVar(&p.manual, "manual", false, "risso serve --failover auto does not fail it over: a person does")
	fl.BoolVar(&p.noRow, "no-row", false, "write no row (into the schema risso) by which a promotion is verified")
	fl.BoolVar(&p.rebuild, "rebuild", false, "risso serve --failover auto rebuilds a member that has transactions of its own, once they are written down")
	fl.BoolVar(&p.noRejoin, "no-rejoin", false, "an old primary that comes back does not replicate by itself, though it has nothing of its own")
	fl.StringVar(&p.about, "about", "", "what it is, in your words")
	fl.StringVar(&p.center, "center", "", "data center whose members follow before others (default: that of the old primary)")
	flags.DurationVar(fl, &p.pause, "pause", group.DefaultPause, "between two automatic failovers")
	fl.IntVar(&p.agentPort, "agent-port", 0, "port of the agents on the members' hosts, which take orders to fence; 0: none is asked")
	fl.StringVar(&p.agentToken, "agent-token-file", "", "file with the token that agents share with the controllers")
	flags.DurationVar(fl, &p.agents, "agent-ttl", 0, "each member has a risso agent, which fences it after so long without a controller, as 3s")
}

func (p *policy) check() error {
	switch {
	case p.pause < 0 || p.agents < 0:
		return fault.Usagef("--pause and --agent-ttl must not be negative")
	case p.agentPort < 0 || p.agentPort > 65535:
		return fault.Usagef("--agent-port %d is no port", p.agentPort)
	}
	if err := group.CheckCenter(p.center); err != nil {
		return fault.Usagef("--center: %w", err)
	}
	return nil
}

// apply gives a group what was asked for; asked says whether a flag counts.
func (p *policy) apply(g *group.Group, asked func(flag string) bool) {
	to := &g.Policy
	for flag, set := range map[string]func(){
		"semi-sync":  func() { to.SemiSync = p.semiSync },
		"lossless":   func() { to.Lossless = p.lossless },
		"manual":     func() { to.Automatic = !p.manual },
		"no-row":     func() { to.Unwritten = p.noRow },
		"rebuild":    func() { to.Rebuild = p.rebuild },
		"no-rejoin":  func() { to.Rejoin = !p.noRejoin },
		"about":      func() { g.About = p.about },
		"center":     func() { to.Center = p.center },
		"pause":      func() { to.Pause = p.pause },
		"agent-port": func() { to.AgentPort = p.agentPort },
		"agent-ttl":  func() { to.Agents = p.agents },
	} {
		if asked(flag) {
			set()
		}
	}
}

func newSetPolicy(s screen.Streams) *cobra.Command {
	c, p := &command{}, &policy{}
	cmd := &cobra.Command{Use: "set-policy GROUP", Short: "Say how a group fails over", Args: cobra.ExactArgs(1),
		Long: `Changes what is given; all else stays as it is. What was switched on is switched off by =false. Nothing is
changed on the servers: after --semi-sync, risso group prepare sets it up.

` + fault.Help,
		Example: "  risso group set-policy shop --lossless --pause 30m\n  risso group set-policy shop --manual=false --center east",
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := p.check(); err != nil {
			return err
		}
		asked := cmd.Flags().Changed
		changes := false
		p.apply(&group.Group{}, func(flag string) bool { changes = changes || asked(flag); return false })
		if !changes && !asked("agent-token-file") {
			return fault.Usagef("say what of the policy is to change, as --lossless")
		}
		token := ""
		if asked("agent-token-file") {
			var err error
			if token, err = flags.Secret(p.agentToken); err != nil {
				return fault.Usagef("--agent-token-file: %w", err)
			}
		}
		return c.With(cmd.Context(), func(r *keep.Room) error { return c.setPolicy(cmd.Context(), r, args[0], p, asked, token) })
	}
	c.bind(cmd, s)
	p.flags(cmd.Flags())
	return cmd
}

func (c *command) setPolicy(ctx context.Context, r *keep.Room, name string, p *policy, asked func(string) bool, token string) error {
	access, err := r.Access(ctx, name)
	if err != nil {
		return err
	}
	var g *group.Group
	if token != "" {
		access.Agents = token
		err = r.SetAccess(ctx, name, access)
	}
	if err == nil {
		g, err = r.Change(ctx, name, func(g *group.Group) error {
			if p.apply(g, asked); g.Policy.AgentPort != 0 && access.Agents == "" {
				return fault.New(fault.Usage, "--agent-token-file", errors.New("agents take orders only by a token"))
			}
			return nil
		})
	}
	if err := c.Did(ctx, name, "the change of the policy of group "+name, err); err != nil {
		return err
	}
	return c.tell([]group.Group{*g})
}

func newSetAccess(s screen.Streams) *cobra.Command {
	c := &command{}
	servers := flags.Servers{}
	user, password := "", ""
	cmd := &cobra.Command{Use: "set-access GROUP", Short: "Change the accounts by which members are reached, and replicate", Args: cobra.ExactArgs(1),
		Long: `Takes other accounts, as after a password was changed. Members are named as in the group, by --dsn or in the
config file; those that are not named stay as they are. Each account is tried first, and has to lead to the
address that the member has. Members replicate by the account of one of them, unless another one was
given: that is changed with it. Nothing is changed on the servers: members that replicate already go on with
the account that they have, also after its password was changed, until they connect anew. One that Risso
points at another primary gets the new password then, and the new account where the old one is refused; one
that its primary refuses gets it from risso serve --failover auto. A running risso serve takes
the accounts for failovers at once, and for the rest of what it watches when it is started again.

` + fault.Help,
		Example: "  risso group set-access shop --dsn 'db1=risso:secret@tcp(db1:3306)/' --dsn 'db2=risso:secret@tcp(db2:3306)/'\n  risso group set-access shop --replication-user repl --replication-password-file repl.password",
		RunE: func(cmd *cobra.Command, args []string) error {
			var account *keep.Account
			if cmd.Flags().Changed("replication-user") {
				secret, err := flags.Secret(password)
				if err != nil {
					return fault.Usagef("--replication-password-file: %w", err)
				}
				account = &keep.Account{User: user, Password: secret}
			}
			var list []config.Watched
			if account == nil || len(servers.Dsns) > 0 || servers.All {
				var err error
				if list, err = servers.Watched(); err == nil {
					err = tried(cmd.Context(), list)
				}
				if err != nil {
					return err
				}
			}
			return c.With(cmd.Context(), func(r *keep.Room) error { return c.setAccess(cmd.Context(), r, args[0], list, account) })
		}}
	c.bind(cmd, s)
	servers.Bind(cmd)
	cmd.Flags().StringVar(&user, "replication-user", "", "account by which members replicate (default: as it was)")
	cmd.Flags().StringVar(&password, "replication-password-file", "", "file with its password")
	return cmd
}

// setAccess stores accounts that let Risso in.
func (c *command) setAccess(ctx context.Context, r *keep.Room, name string, list []config.Watched, account *keep.Account) error {
	g, err := r.Group(ctx, name)
	if err != nil {
		return err
	}
	access, err := r.Access(ctx, name)
	if err != nil {
		return err
	}
	for _, w := range list {
		if err := leads(g, access, w); err != nil {
			return err
		}
		was, err := access.Target(w.Instance.Name)
		if err != nil {
			return err
		}
		if account == nil && was.User() == access.Replication.User && was.Password() == access.Replication.Password { // as it is where nobody gave another one
			account = &keep.Account{User: w.Target.User(), Password: w.Target.Password()}
		}
		access.Members[w.Instance.Name] = w.Target.Secret()
	}
	reached := map[string]mysql.Target{}
	for _, m := range g.Members {
		if reached[m.Name], err = access.Target(m.Name); err != nil {
			return err
		}
	}
	patience := carry.DefaultLimits().Look
	if account != nil {
		access.Replication = *account
		if no := carry.CheckReplication(ctx, g, reached, *account, patience, names(g.Members)...); len(no) > 0 {
			return repoint.Refused("group "+name, refusals(no))
		}
	}
	if err := c.Did(ctx, name, "the change of the accounts of group "+name, r.SetAccess(ctx, name, access)); err != nil {
		return err
	}
	lacks(c.Err, carry.Lacking(ctx, g, reached, patience))
	return c.tell([]group.Group{*g})
}

// leads refuses an account that does not lead to the member whose name it has.
func leads(g *group.Group, access keep.Access, w config.Watched) error {
	i := g.Find(w.Instance.Name)
	if i < 0 {
		return fault.New(fault.Usage, "risso group show "+g.Name, fmt.Errorf("%s: %w", w.Instance.Name, group.ErrNone))
	}
	was, err := access.Target(w.Instance.Name)
	if at := w.Target.Address(); err != nil || at != g.Members[i].Address && at != was.Address() {
		return fault.New(fault.Usage, "risso group remove and risso group add give a member another address", fmt.Errorf("%s is at %s, not at %s", w.Instance.Name, g.Members[i].Address, at))
	}
	return nil
}
