package chaos

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/avail/chaos/ledger"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/sandbox"
)

// Controller is a process that fails a group over.
type Controller interface {
	Name() string
	Start(ctx context.Context) error
	Kill() error // as if by SIGKILL
}

// Box is a sandbox in which all faults are real ones: signals to processes, packets dropped in network namespaces, file systems that are filled and limited.
type Box struct {
	Sandbox     *sandbox.Sandbox
	Controllers []Controller
	// Where asks the controllers where the primary is. Nil: it is always the node that was made as such.
	Where func(ctx context.Context) (ledger.Server, error)

	password string
}

// account is that of the writers: it may do nothing but write and read the ledger's rows, so that read_only holds for it.
const account = "risso_chaos"

// Prepare makes the ledger's table and the writers' account.
func (b *Box) Prepare(ctx context.Context) error {
	b.password = strings.ToLower(rand.Text())
	db, err := b.Sandbox.Primary().DB()
	if err != nil {
		return err
	}
	defer db.Close()
	for _, q := range preparation(b.password) {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("prepare the ledger: %s", strings.ReplaceAll(err.Error(), b.password, "…"))
		}
	}
	return nil
}

// Names are the nodes by their server_id, and by those that they get when they are filled again.
func (b *Box) Names(ctx context.Context) (map[uint64]string, error) {
	names := map[uint64]string{}
	for _, n := range b.Sandbox.Nodes {
		db, err := n.DB()
		if err != nil {
			return nil, err
		}
		var id uint64
		err = db.QueryRowContext(ctx, "SELECT /* risso chaos: which server is which */ @@server_id").Scan(&id)
		db.Close()
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		for i := range uint64(1000) {
			names[id+i*sandbox.Renumbered] = n.Name
		}
	}
	return names, nil
}

// Members are the nodes.
func (b *Box) Members() []string {
	var list []string
	for _, n := range b.Sandbox.Nodes {
		list = append(list, n.Name)
	}
	return list
}

// Find asks where the primary is.
func (b *Box) Find(ctx context.Context) (ledger.Server, error) {
	if b.Where == nil {
		n := b.Sandbox.Primary()
		return ledger.Server{Name: n.Name, Address: address(n)}, nil
	}
	s, err := b.Where(ctx)
	if err != nil {
		return s, err
	}
	for _, n := range b.Sandbox.Nodes { // a controller may call them otherwise
		if address(n) == s.Address {
			s.Name = n.Name
		}
	}
	return s, nil
}

func address(n *sandbox.Node) string { return net.JoinHostPort(n.Host, strconv.Itoa(n.Port)) }

// Open makes a pool as clients have it.
func (b *Box) Open(address string) (*sql.DB, error) { return b.open(address, sandbox.Clients) }

// Direct makes a pool from a node's own side of the network.
func (b *Box) Direct(member string) (*sql.DB, error) {
	n, err := b.Sandbox.Node(member)
	if err != nil {
		return nil, err
	}
	return b.open(address(n), member)
}

func (b *Box) open(address, from string) (*sql.DB, error) {
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd = "tcp", address, account, b.password
	c.Timeout = 3 * time.Second
	c.Logger = &mysql.NopLogger{} // errors come back to the caller anyway
	if w := b.Sandbox.Network; w != nil {
		place, err := w.Place(from)
		if err != nil {
			return nil, err
		}
		c.DialFunc = place.Dial
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// Can says why a kind of fault cannot be caused here; nil: it can.
func (b *Box) Can(k Kind) error {
	switch k {
	case Partition, PartitionIn, PartitionOut:
		if b.Sandbox.Network == nil {
			return errors.New("the sandbox has no network of its own")
		}
	case Blind:
		if b.Sandbox.Network == nil || len(b.Controllers) == 0 {
			return errors.New("there is no controller in a network of its own")
		}
	case DiskFull, DiskSlow:
		if b.Sandbox.Disk == 0 {
			return errors.New("the nodes have no disks of their own")
		}
	case Clock:
		if !b.Sandbox.Clock {
			return errors.New("the nodes have no clocks of their own")
		}
	case KillController, KillBoth:
		if len(b.Controllers) == 0 {
			return errors.New("there is no controller")
		}
	}
	return nil
}

// Target is the primary, a replica or a controller.
func (b *Box) Target(f Fault, primary string) (string, error) {
	if err := b.Can(f.Kind); err != nil {
		return "", fmt.Errorf("fault %d (%s): %w", f.Number, f.Kind, err)
	}
	switch {
	case f.Kind == KillController:
		return b.Controllers[f.Draw%uint64(len(b.Controllers))].Name(), nil
	case f.Kind.about().Replica:
		others := slices.DeleteFunc(b.Members(), func(m string) bool { return m == primary })
		if len(others) == 0 {
			return "", errors.New("there is no replica")
		}
		return others[f.Draw%uint64(len(others))], nil
	}
	return primary, nil
}

// Break causes a fault.
func (b *Box) Break(ctx context.Context, f Fault, target string) error {
	if f.Kind == KillController {
		c, err := b.controller(target)
		if err != nil {
			return err
		}
		return c.Kill()
	}
	n, err := b.Sandbox.Node(target)
	if err != nil {
		return err
	}
	w := b.Sandbox.Network
	switch f.Kind {
	case Kill, KillReplica:
		return n.Kill(syscall.SIGKILL)
	case Freeze, Stall:
		return n.Kill(syscall.SIGSTOP)
	case Partition, PartitionIn, PartitionOut:
		for _, p := range w.Places {
			if p.Name == target {
				continue
			}
			if f.Kind != PartitionOut {
				err = errors.Join(err, w.Cut(ctx, p.Name, target))
			}
			if f.Kind != PartitionIn {
				err = errors.Join(err, w.Cut(ctx, target, p.Name))
			}
		}
		return err
	case Blind:
		return errors.Join(w.Cut(ctx, sandbox.Control, target), w.Cut(ctx, target, sandbox.Control))
	case DiskFull:
		return n.Fill(ctx)
	case DiskSlow:
		return n.Slow(20 + int(f.Draw%80))
	case Clock:
		by := time.Minute + time.Duration(f.Draw%7200)*time.Second
		if f.Draw%2 == 0 {
			by = -by
		}
		return n.Jump(by)
	case KillBoth:
		return b.killBoth(ctx, f, n)
	}
	return fmt.Errorf("no way to cause %s", f.Kind)
}

// killBoth kills the primary, a controller in the midst of what that brings about, and starts the controller again.
func (b *Box) killBoth(ctx context.Context, f Fault, n *sandbox.Node) error {
	c := b.Controllers[f.Draw%uint64(len(b.Controllers))]
	if err := n.Kill(syscall.SIGKILL); err != nil {
		return err
	}
	if err := delay.For(ctx, time.Duration(f.Draw%2500)*time.Millisecond); err != nil {
		return err
	}
	if err := c.Kill(); err != nil {
		return err
	}
	if err := delay.For(ctx, 500*time.Millisecond); err != nil {
		return err
	}
	return c.Start(ctx)
}

func (b *Box) controller(name string) (Controller, error) {
	i := slices.IndexFunc(b.Controllers, func(c Controller) bool { return c.Name() == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no controller %q", name)
	}
	return b.Controllers[i], nil
}

// Heal ends a fault.
func (b *Box) Heal(ctx context.Context, f Fault, target string) (damage string, err error) {
	if f.Kind == KillController {
		c, err := b.controller(target)
		if err != nil {
			return "", err
		}
		return "", c.Start(ctx)
	}
	n, err := b.Sandbox.Node(target)
	if err != nil {
		return "", err
	}
	switch f.Kind {
	case Partition, PartitionIn, PartitionOut, Blind:
		return "", b.Sandbox.Network.MendAll(ctx)
	case DiskFull:
		if err = n.Empty(); err == nil {
			select { // it may be about to end, as it could not write
			case <-n.Ended():
			case <-time.After(endsWithin):
			case <-ctx.Done():
			}
			err = b.logAgain(ctx, n)
		}
	case DiskSlow:
		err = n.Fast()
	case Clock:
		err = n.Jump(0)
	case Freeze, Stall:
		err = n.Kill(syscall.SIGCONT)
	}
	if err != nil {
		return "", err
	}
	if err = b.start(ctx, n); damaged(err) {
		return b.reseed(ctx, n, err)
	}
	return "", err
}

// logAgain starts a MariaDB anew that writes no binary log any more, as it could not, as a person does.
func (b *Box) logAgain(ctx context.Context, n *sandbox.Node) error {
	r, err := n.Query(ctx, "SHOW MASTER STATUS")
	if err != nil || len(r[0].Rows) > 0 {
		return nil // it does not run, and is started; or is a newer MySQL, which ended
	}
	if err := n.Stop(ctx); err != nil {
		return err
	}
	return b.start(ctx, n)
}

// damaged reports whether a server does not start any more with the data that it has. A MariaDB that could not write its binary log to its end, as its disk was full, finds
// transactions there that it neither may commit nor roll back.
func damaged(err error) bool {
	return err != nil && strings.Contains(err.Error(), "--tc-heuristic-recover")
}

// reseed fills a server that is damaged from the primary, as a person does. It stays as it is while it is the primary itself.
func (b *Box) reseed(ctx context.Context, n *sandbox.Node, why error) (damage string, err error) {
	s, err := b.Find(ctx)
	if err != nil {
		return "", errors.Join(why, err)
	}
	primary, err := b.Sandbox.Node(s.Name)
	if err != nil || primary == n {
		return "", errors.Join(why, err)
	}
	if err := n.Reseed(ctx, primary); err != nil {
		return "", errors.Join(why, err)
	}
	return "it did not start with the data that it had: its binary log and its tables differ in transactions that it had prepared", nil
}

// endsWithin is how long a server may take to end that could not write.
const endsWithin = 2 * time.Second

// start starts a node that does not run: as an operating system does it, and closed to clients where somebody opens it who knows that it is the primary.
func (b *Box) start(ctx context.Context, n *sandbox.Node) error {
	if b.Where == nil {
		return n.Start(ctx)
	}
	return n.StartClosed(ctx)
}

// HealAll ends whatever was caused in a sandbox, and starts what does not run, closed to clients: for a run that was killed.
func HealAll(ctx context.Context, s *sandbox.Sandbox) error {
	var errs []error
	if s.Network != nil {
		errs = append(errs, s.Network.MendAll(ctx))
	}
	for _, n := range s.Nodes {
		errs = append(errs, n.Kill(syscall.SIGCONT), n.Empty(), n.Fast())
		if s.Clock {
			errs = append(errs, n.Jump(0))
		}
		errs = append(errs, n.StartClosed(ctx))
	}
	return errors.Join(errs...)
}
