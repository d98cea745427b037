package chaos

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/avail/chaos/ledger"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

// Own is a group of the user's own servers, in which faults are caused by the commands that the user gives.
type Own struct {
	Names []string                // of the members
	At    map[string]string       // their addresses
	Admin map[string]mysql.Target // how they are reached as an administrator
	// Breaks and Heals are the commands, by kind. In them {name}, {address}, {host} and {port} are those of the server that the fault happens to.
	Breaks, Heals map[Kind]string
	Where         func(ctx context.Context) (ledger.Server, error)

	password string
}

// hookLimit is how long a command may take.
const hookLimit = time.Minute

// ParseHooks reads commands: KIND=COMMAND.
func ParseHooks(flag string, list []string) (map[Kind]string, error) {
	hooks := map[Kind]string{}
	for _, text := range list {
		name, command, ok := strings.Cut(text, "=")
		kinds, err := ParseKinds([]string{name})
		if !ok || command == "" {
			return nil, fault.Usagef("--%s %q: want KIND=COMMAND", flag, text)
		}
		if err != nil {
			return nil, err
		}
		hooks[kinds[0]] = command
	}
	return hooks, nil
}

// Statements are what Prepare runs on the primary, without the password.
func (*Own) Statements() []string { return preparation("…") }

// preparation are the statements that make the ledger's table and the writers' account, which may do nothing but write and read the rows: read_only holds for it.
func preparation(password string) []string {
	return append(ledger.Definition(),
		"CREATE USER /* risso chaos: may do nothing but write the ledger's rows */ IF NOT EXISTS "+account+"@'%'",
		"ALTER USER /* risso chaos: a password for this run */ "+account+"@'%' IDENTIFIED BY '"+password+"'",
		"GRANT /* risso chaos: may do nothing but write the ledger's rows */ SELECT, INSERT ON "+ledger.Schema+".* TO "+account+"@'%'")
}

// Leftovers are the statements by which a user removes what Prepare made.
func (*Own) Leftovers() []string {
	return []string{"DROP USER " + account + "@'%'", "DROP DATABASE " + ledger.Schema}
}

// Prepare makes the ledger's table and the writers' account, on the primary.
func (o *Own) Prepare(ctx context.Context) error {
	s, err := o.Find(ctx)
	if err != nil {
		return fmt.Errorf("prepare the ledger: %w", err)
	}
	c, err := mysql.Connect(ctx, o.Admin[s.Name], nil)
	if err != nil {
		return fmt.Errorf("prepare the ledger: %w", err)
	}
	defer c.Close()
	o.password = strings.ToLower(rand.Text()) + "A1!" // as password policies want it
	for _, q := range preparation(o.password) {
		if err := c.Exec(ctx, q); err != nil {
			return fmt.Errorf("prepare the ledger: %s", strings.ReplaceAll(err.Error(), o.password, "…"))
		}
	}
	return nil
}

// Numbers are the members by their server_id.
func (o *Own) Numbers(ctx context.Context) (map[uint64]string, error) {
	names := map[uint64]string{}
	for _, name := range o.Names {
		c, err := mysql.Connect(ctx, o.Admin[name], nil)
		if err != nil {
			return nil, err
		}
		text, err := c.Text(ctx, "SELECT /* risso chaos: which server is which */ @@server_id")
		c.Close()
		var id uint64
		if err == nil {
			id, err = strconv.ParseUint(text, 10, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if names[id] != "" {
			return nil, fmt.Errorf("%s and %s have the same server_id, %d", names[id], name, id)
		}
		names[id] = name
	}
	return names, nil
}

// Members are the members.
func (o *Own) Members() []string { return o.Names }

// Find asks where the primary is.
func (o *Own) Find(ctx context.Context) (ledger.Server, error) {
	s, err := o.Where(ctx)
	if err == nil && !slices.Contains(o.Names, s.Name) {
		for name, at := range o.At {
			if at == s.Address {
				s.Name = name
			}
		}
	}
	return s, err
}

// Open makes a pool as clients have it.
func (o *Own) Open(address string) (*sql.DB, error) {
	c := driver.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd = "tcp", address, account, o.password
	c.TLSConfig = "preferred"
	c.Timeout = 3 * time.Second
	c.Logger = &driver.NopLogger{} // errors come back to the caller anyway
	connector, err := driver.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// Direct makes a pool for a member. It is from this machine, not from the member's side of a partition: run risso chaos where that can be reached.
func (o *Own) Direct(member string) (*sql.DB, error) { return o.Open(o.At[member]) }

// Can says why a kind of fault cannot be caused; nil: it can.
func (o *Own) Can(k Kind) error {
	if o.Breaks[k] == "" {
		return fmt.Errorf("no command for it: --fault %s=…", k)
	}
	return nil
}

// Target is the primary or a replica.
func (o *Own) Target(f Fault, primary string) (string, error) {
	if err := o.Can(f.Kind); err != nil {
		return "", err
	}
	if !f.Kind.about().Replica {
		return primary, nil
	}
	others := slices.DeleteFunc(slices.Clone(o.Names), func(m string) bool { return m == primary })
	if len(others) == 0 {
		return "", errors.New("there is no replica")
	}
	return others[f.Draw%uint64(len(others))], nil
}

// Break runs the command of a fault.
func (o *Own) Break(ctx context.Context, f Fault, target string) error {
	return Hook(ctx, o.Filled(o.Breaks[f.Kind], target))
}

// Heal runs the command that ends it; without one the fault ends by itself, as a server that was killed is started by its host.
func (o *Own) Heal(ctx context.Context, f Fault, target string) (damage string, err error) {
	return "", Hook(ctx, o.Filled(o.Heals[f.Kind], target))
}

// Filled is a command for a member.
func (o *Own) Filled(command, member string) string {
	host, port, err := net.SplitHostPort(o.At[member])
	if err != nil {
		host = o.At[member]
	}
	return strings.NewReplacer("{name}", fleet.ShellWord(member), "{address}", fleet.ShellWord(o.At[member]), "{host}", fleet.ShellWord(host), "{port}", fleet.ShellWord(port)).Replace(command)
}

// Hook runs a command of the user's in a shell; "" does nothing.
func Hook(ctx context.Context, command string) error {
	if command == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, hookLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Env = os.Environ()
	cmd.WaitDelay = time.Second
	// What it started ends with it: it must cause no fault after that was healed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Through finds the primary behind a proxy or router: whoever answers there is it. Which server that is, its server_id tells.
func (o *Own) Through(address string, names map[uint64]string) func(ctx context.Context) (ledger.Server, error) {
	return func(ctx context.Context) (ledger.Server, error) {
		db, err := o.Open(address)
		if err != nil {
			return ledger.Server{}, err
		}
		defer db.Close()
		var id uint64
		if err := db.QueryRowContext(ctx, "SELECT /* risso chaos: who is behind this address? */ @@server_id").Scan(&id); err != nil {
			return ledger.Server{}, err
		}
		return ledger.Server{Name: names[id], Address: address}, nil
	}
}
