package sandbox

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/pattern"
)

// account is the name of the account that each sandbox gets.
const account = "risso"

// build is a server with its recipe.
type build struct {
	server Server
	recipe recipe
}

// plan is what Up was asked for, checked and complete.
type plan struct {
	root, cache, name string
	topology          Topology
	servers           []build // one per node
	settings          []string
	password          string
	data              func(context.Context, string) ([]string, error) // nil: an empty server
	network, clock    bool
	semiSync          bool
	disk              int64
	timeout, answer   time.Duration
	progress          func(string)
}

func newPlan(ctx context.Context, o Options) (*plan, error) {
	p := &plan{name: o.Name, topology: o.Topology, settings: slices.Clone(o.Settings), timeout: o.StartTimeout, answer: o.AnswerTimeout, progress: o.Progress, data: o.Data,
		network: o.Network, disk: o.Disk, clock: o.Clock, semiSync: o.SemiSync}
	p.password = strings.ToLower(rand.Text()) // letters and digits: no statement has to quote it
	if p.topology == "" {
		p.topology = TopologySingle
	}
	if p.timeout <= 0 {
		p.timeout = nodeTimeout
	}
	if p.progress == nil {
		p.progress = func(string) {}
	}
	var err error
	if p.root, err = rootOf(o.Dir); err != nil {
		return nil, err
	}
	if p.cache = o.CacheDir; p.cache == "" {
		if p.cache, err = DefaultCacheDir(); err != nil {
			return nil, err
		}
	}
	if p.name != "" && !nameForm().MatchString(p.name) {
		return nil, fault.New(fault.Usage, "use up to 40 of a-z, 0-9, dot, dash and underscore", fmt.Errorf("%q is not a name for a sandbox", p.name))
	}
	for _, setting := range p.settings {
		if err := checkSetting(setting); err != nil {
			return nil, err
		}
	}
	count, err := nodeCount(o)
	if err != nil {
		return nil, err
	}
	if p.semiSync && p.topology != TopologyReplication {
		return nil, fault.New(fault.Usage, "use --topology replication", errors.New("semi-synchronous replication without replicas"))
	}
	if (p.network || p.disk > 0 || p.clock) && (p.topology == TopologyGalera || p.data != nil) {
		return nil, fault.New(fault.Usage, "leave those options out", errors.New("a Galera cluster, or a server on given data, with a network, disks or a clock of its own"))
	}
	if p.data != nil && count != 1 {
		return nil, fault.New(fault.Usage, "a single server can be started on it", fmt.Errorf("%d nodes on given data", count))
	}
	find := o.Find
	if find == nil {
		find = Find
	}
	return p, p.chooseServers(ctx, find, o.Servers, count)
}

// nodeCount is how many nodes the options ask for.
func nodeCount(o Options) (int, error) {
	replicas := o.Replicas
	if replicas == 0 {
		replicas = 2
	}
	if replicas < 0 || replicas > 20 {
		return 0, fault.New(fault.Usage, "a sandbox has 1 to 20", fmt.Errorf("%d replicas", replicas))
	}
	switch o.Topology {
	case TopologySingle, "":
		if o.Replicas > 0 {
			return 0, fault.New(fault.Usage, "use --topology replication", errors.New("a single server has no replicas"))
		}
		return max(1, len(o.Servers)), nil
	case TopologyReplication, TopologyGalera:
		if len(o.Servers) > 1+replicas {
			return 0, fault.New(fault.Usage, "raise --replicas", fmt.Errorf("%d servers for %d nodes", len(o.Servers), 1+replicas))
		}
		return 1 + replicas, nil
	}
	return 0, fault.New(fault.Usage, "use single, replication or galera", fmt.Errorf("unknown topology %q", o.Topology))
}

// chooseServers finds a server for each node and checks that they fit together.
func (p *plan) chooseServers(ctx context.Context, find func(context.Context, string) (Server, error), specs []string, count int) error {
	if len(specs) == 0 {
		specs = []string{string(FamilyMariaDB)}
	}
	known := map[string]build{}
	for i := range count {
		spec := specs[min(i, len(specs)-1)]
		b, ok := known[spec]
		if !ok {
			s, err := find(ctx, spec)
			if err != nil {
				return err
			}
			r, err := recipeFor(s)
			if err != nil {
				return err
			}
			b = build{server: s, recipe: r}
			known[spec] = b
		}
		p.servers = append(p.servers, b)
	}
	first := p.servers[0].server
	for _, b := range p.servers {
		s := b.server
		if p.topology == TopologyGalera && s.Family != FamilyMariaDB {
			return fault.New(fault.Usage, "sandboxes support Galera only with MariaDB servers", fmt.Errorf("no Galera cluster of %s", s.Name))
		}
		if p.topology != TopologyReplication {
			continue
		}
		if (s.Family == FamilyMariaDB) != (first.Family == FamilyMariaDB) {
			return fault.New(fault.Usage, "the GTIDs of MySQL and MariaDB differ", fmt.Errorf("%s cannot follow %s by GTID", s.Name, first.Name))
		}
		if s.number() < first.number() {
			return fault.New(fault.Usage, "a replica must not be older than its primary: put the older one first", fmt.Errorf("%s cannot follow %s", s.Name, first.Name))
		}
	}
	return nil
}

var settingForm = pattern.Lazy(`^[A-Za-z][A-Za-z0-9_.-]*(=[^\n\r]*)?$`)

// checkSetting refuses what would take a node out of the sandbox's hands.
func checkSetting(setting string) error {
	if !settingForm().MatchString(setting) {
		return fault.New(fault.Usage, "write it as key=value, such as innodb_buffer_pool_size=1G", fmt.Errorf("option %q", setting))
	}
	key, _, _ := strings.Cut(setting, "=")
	key = strings.TrimPrefix(strings.ReplaceAll(key, "-", "_"), "loose_")
	if slices.Contains([]string{"datadir", "socket", "port", "user", "pid_file", "basedir", "bind_address", "log_error", "server_id", "tmpdir", "defaults_file"}, key) {
		return fault.New(fault.Usage, "the sandbox sets that itself", fmt.Errorf("option %q", setting))
	}
	return nil
}

// sandbox is the record of what is planned.
func (p *plan) sandbox(root, name string) *Sandbox {
	s := &Sandbox{
		Name: name, Topology: p.topology, Dir: filepath.Join(root, name), Created: time.Now().Round(time.Second),
		State: StateStarting, User: account, timeout: p.timeout, answer: p.answer, progress: p.progress,
	}
	names := p.nodeNames()
	s.Disk, s.Clock = p.disk, p.clock
	if p.network {
		s.Network = plannedNetwork(s.Dir, names)
	}
	for i, b := range p.servers {
		dir := filepath.Join(s.Dir, names[i])
		s.Nodes = append(s.Nodes, &Node{
			Name: names[i], Role: p.role(i), Server: b.server.Name, Version: b.server.Version, Host: "127.0.0.1",
			Socket: filepath.Join(dir, "mysqld.sock"), Datadir: filepath.Join(dir, "data"), State: StateStopped,
			DefaultsFile: filepath.Join(dir, "client.cnf"), ErrorLog: filepath.Join(dir, "error.log"), Program: b.server, sandbox: s,
		})
		if s.Network != nil {
			place, n := s.Network.Places[len(s.Network.Places)-len(names)+i], s.Nodes[i]
			n.Host, n.Namespace, n.Port = place.Address, place.Namespace, networkPort
		}
	}
	if slices.ContainsFunc(s.Nodes, func(n *Node) bool { return len(n.Socket) > socketLimit }) {
		s.SocketDir = filepath.Join("/tmp", socketDirPrefix+strings.ToLower(rand.Text()))
		for _, n := range s.Nodes {
			n.Socket = filepath.Join(s.SocketDir, n.Name)
		}
	}
	for _, n := range s.Nodes {
		n.DSN = n.plainConfig().FormatDSN()
	}
	return s
}

func (p *plan) role(i int) string {
	switch {
	case p.topology == TopologyGalera:
		return RoleGalera
	case p.topology == TopologySingle:
		return RoleStandalone
	case i == 0:
		return RolePrimary
	}
	return RoleReplica
}

func (p *plan) nodeNames() []string {
	names := make([]string, len(p.servers))
	count := map[string]int{}
	for i, b := range p.servers {
		switch p.role(i) {
		case RolePrimary:
			names[i] = "primary"
		case RoleReplica:
			names[i] = fmt.Sprintf("replica%d", i)
		case RoleGalera:
			names[i] = fmt.Sprintf("node%d", i+1)
		default:
			names[i] = b.server.Name
			if count[b.server.Name]++; count[b.server.Name] > 1 {
				names[i] = fmt.Sprintf("%s-%d", b.server.Name, count[b.server.Name])
			}
		}
	}
	return names
}

// bringUp makes what the record says.
func (s *Sandbox) bringUp(ctx context.Context, p *plan) error {
	if err := os.WriteFile(filepath.Join(s.Dir, secretFile), []byte(p.password), 0o600); err != nil {
		return fmt.Errorf("keep the password: %w", err)
	}
	if s.SocketDir != "" {
		if err := os.Mkdir(s.SocketDir, 0o700); err != nil {
			return fmt.Errorf("create a folder for sockets: %w", err)
		}
	}
	if s.Network != nil {
		if err := s.Network.make(ctx); err != nil {
			return err
		}
	}
	if p.data != nil {
		return s.bringUpOn(ctx, p)
	}
	templates, err := s.templates(ctx, p)
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	for i, n := range s.Nodes {
		g.Go(func() error {
			if err := n.prepare(gctx, templates[p.servers[i].server.Binary]); err != nil {
				return fmt.Errorf("node %s: %w", n.Name, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if p.topology == TopologyGalera {
		err = s.startCluster(ctx, p)
	} else {
		err = s.startNodes(ctx, p)
	}
	if err == nil && p.semiSync { // not before the replicas follow: they need the account, which would wait for them
		err = s.Primary().runRecipe(ctx, p.servers[0].recipe.semiSource)
	}
	if err != nil {
		return err
	}
	return s.ready()
}

// ready records that everything runs.
func (s *Sandbox) ready() error {
	s.mu.Lock()
	s.Ready, s.State = true, StateRunning
	s.mu.Unlock()
	return s.save()
}

// startNodes starts all nodes at the same time; replicas then wait for the primary.
func (s *Sandbox) startNodes(ctx context.Context, p *plan) error {
	accountMade := make(chan struct{})
	g, ctx := errgroup.WithContext(ctx)
	for i, n := range s.Nodes {
		g.Go(func() error {
			if err := n.startOnAnyPort(ctx, p, p.servers[i]); err != nil {
				return err
			}
			if n.Role == RoleReplica {
				select {
				case <-accountMade:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				if err := n.follow(ctx, s.Primary(), p.servers[i].recipe, p.password); err != nil {
					return fmt.Errorf("node %s: %w", n.Name, err)
				}
				return nil
			}
			if err := n.makeAccount(ctx, p.servers[i].recipe, p.password); err != nil {
				return fmt.Errorf("node %s: %w", n.Name, err)
			}
			if n.Role == RolePrimary {
				close(accountMade)
			}
			return nil
		})
	}
	return g.Wait()
}

// templates makes sure of a template for each kind of server, and returns their
// folders by the server's program.
func (s *Sandbox) templates(ctx context.Context, p *plan) (map[string]string, error) {
	scratch := filepath.Join(s.Dir, "bootstrap")
	var mu sync.Mutex
	dirs, begun := map[string]string{}, map[string]bool{}
	g, ctx := errgroup.WithContext(ctx)
	for _, b := range p.servers {
		if begun[b.server.Binary] {
			continue
		}
		begun[b.server.Binary] = true
		t := template{server: b.server, recipe: b.recipe, galera: p.topology == TopologyGalera, birth: ofBirth(p.settings), cache: p.cache, scratch: scratch, say: s.progress}
		g.Go(func() error {
			dir, err := t.ensure(ctx)
			mu.Lock()
			defer mu.Unlock()
			dirs[t.server.Binary] = dir
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return dirs, os.RemoveAll(scratch)
}

// prepare makes the node's folder.
func (n *Node) prepare(ctx context.Context, template string) error {
	if err := os.MkdirAll(filepath.Join(n.dir(), "tmp"), 0o700); err != nil {
		return err
	}
	if err := n.makeDisk(ctx); err != nil {
		return err
	}
	return copyTree(ctx, n.Datadir, template, false)
}

func (n *Node) configPath() string { return filepath.Join(n.dir(), "my.cnf") }

// startOnAnyPort starts the node on a free port. A program that does not ask
// the kernel for a free port could still be faster: then another one is tried.
func (n *Node) startOnAnyPort(ctx context.Context, p *plan, b build) error {
	const tries = 5
	start := time.Now()
	for try := 1; ; try++ {
		err := n.startOnFreePort(ctx, p, b)
		if err == nil {
			n.tellStarted(start)
			return nil
		}
		if try == tries || !errors.Is(err, errPortTaken) {
			return err
		}
	}
}

func (n *Node) tellStarted(start time.Time) {
	n.sandbox.progress(fmt.Sprintf("%s: %s %s on port %d (%s)", n.Name, n.Program.Family, n.Version, n.Port, seconds(start)))
}

func (n *Node) startOnFreePort(ctx context.Context, p *plan, b build) error {
	if n.Namespace == "" { // else all ports of its own are free
		hold, err := freePort()
		if err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
		defer hold.release()
		n.sandbox.mu.Lock()
		n.Port = hold.Port
		n.sandbox.mu.Unlock()
	}
	lines := slices.Concat(b.recipe.redo, b.recipe.settings)
	if n.Role == RoleReplica {
		lines = append(lines, b.recipe.readOnly...)
	}
	if p.semiSync {
		lines = append(lines, b.recipe.semiSync...)
	}
	if err := n.writeConfig(p, lines); err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	return n.start(ctx)
}

// writeConfig writes the configuration of the server, what was asked for last,
// and the one of its clients.
func (n *Node) writeConfig(p *plan, lines []string) error {
	tmp := filepath.Join(n.dir(), "tmp")
	own := []string{
		"# made by risso sandbox; risso sandbox down removes it",
		"[mysqld]",
		"basedir=" + n.Program.Basedir,
		fmt.Sprintf("port=%d", n.Port),
		"socket=" + n.Socket,
		"pid-file=" + filepath.Join(n.dir(), "mysqld.pid"),
		"log-error=" + n.ErrorLog,
		"tmpdir=" + tmp,
		"secure-file-priv=" + tmp,
		fmt.Sprintf("server_id=%d", n.serverID()),
		"bind-address=" + n.Host,
		"report_host=" + n.Host,
		fmt.Sprintf("report_port=%d", n.Port),
	}
	if os.Geteuid() == 0 {
		own = append(own, "user=root") // servers refuse root without it
	}
	all := slices.Concat(own, common, lines, p.settings)
	if n.Galera != nil {
		// Else the script of a state transfer leaves its logs in /tmp for good.
		all = append(all, "[sst]", "sst-log-archive=0")
	}
	text := strings.Join(all, "\n") + "\n"
	if err := os.WriteFile(n.configPath(), []byte(text), 0o600); err != nil {
		return err
	}
	client := fmt.Sprintf("[client]\nuser=%s\npassword=%s\nhost=%s\nport=%d\nprotocol=tcp\n", n.sandbox.User, p.password, n.Host, n.Port)
	return os.WriteFile(n.DefaultsFile, []byte(client), 0o600)
}

// serverID is a number that no other node has: on this machine, or, in a network of its own, there.
func (n *Node) serverID() int {
	if n.Namespace == "" {
		return n.Port
	}
	return 1 + slices.Index(n.sandbox.Nodes, n)
}

// fill puts what is known now into the statements of a recipe.
func fill(statements []string, n *Node, password string) []string {
	inner := sha1.Sum([]byte(password))
	outer := sha1.Sum(inner[:])
	r := strings.NewReplacer("{user}", account, "{password}", password, "{host}", n.Host, "{port}", fmt.Sprint(n.Port),
		// The hash of mysql_native_password is SHA1(SHA1(password)) in hexadecimal.
		"{native}", "*"+strings.ToUpper(hex.EncodeToString(outer[:])))
	out := make([]string, len(statements))
	for i, s := range statements {
		out[i] = r.Replace(s)
	}
	return out
}

// run executes the statements of a recipe. Errors name them by their first
// words only, because a password may follow.
func run(ctx context.Context, db *sql.DB, statements []string, password string) error {
	for _, q := range statements {
		if _, err := db.ExecContext(ctx, q); err != nil {
			words := strings.Fields(q)
			return fmt.Errorf("%s: %s", strings.Join(words[:min(2, len(words))], " "), strings.ReplaceAll(err.Error(), password, "…"))
		}
	}
	return nil
}

// runRecipe runs statements that need nothing filled in.
func (n *Node) runRecipe(ctx context.Context, statements []string) error {
	db, err := n.DB()
	if err != nil {
		return err
	}
	defer db.Close()
	if err := run(ctx, db, statements, "\x00"); err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	return nil
}

func (n *Node) makeAccount(ctx context.Context, r recipe, password string) error {
	db, err := n.DB()
	if err != nil {
		return err
	}
	defer db.Close()
	return run(ctx, db, fill(r.account, n, password), password)
}

// follow makes the node a replica and waits until it has what the primary has
// written: its account and the schema test. That proves that changes arrive.
// As long as it comes nearer it is waited for: how much there is to apply, and
// how busy the machine is, nobody knows here.
func (n *Node) follow(ctx context.Context, primary *Node, r recipe, password string) error {
	start := time.Now()
	source, err := primary.DB()
	if err != nil {
		return err
	}
	defer source.Close()
	db, err := n.DB()
	if err != nil {
		return err
	}
	defer db.Close()
	if err := run(ctx, db, fill(r.follow, primary, password), password); err != nil {
		return err
	}
	var position string
	if err := source.QueryRowContext(ctx, r.position).Scan(&position); err != nil {
		return fmt.Errorf("read the position of the primary: %w", err)
	}
	near := nearer{at: start, limit: n.sandbox.timeout}
	for {
		var result sql.NullInt64
		err := db.QueryRowContext(ctx, r.reached, position).Scan(&result)
		if err == nil && result.Valid && result.Int64 == 0 {
			n.sandbox.progress(fmt.Sprintf("%s: replicates from %s (%s)", n.Name, primary.Name, seconds(start)))
			return nil
		}
		if why := replicationError(ctx, db, r.status); why != "" {
			return fmt.Errorf("replication has stopped: %s", why)
		}
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err != nil {
			return fmt.Errorf("wait for the primary's changes: %w", err)
		}
		var now string
		if err := db.QueryRowContext(ctx, r.position).Scan(&now); ctx.Err() != nil {
			return context.Cause(ctx)
		} else if err != nil {
			return fmt.Errorf("read how far the node has come: %w", err)
		}
		if !near.waits(now, time.Now()) {
			return fmt.Errorf("it does not catch up with the primary: it has been at %q for %s", now, n.sandbox.timeout)
		}
	}
}

// nearer tells a replica that catches up from one that stands still.
type nearer struct {
	last  string
	at    time.Time // when it was seen to move last, or the wait began
	limit time.Duration
}

// waits reports whether it pays to wait on for a replica that is at a position now.
func (n *nearer) waits(position string, now time.Time) bool {
	if position != n.last {
		n.last, n.at = position, now
	}
	return now.Sub(n.at) <= n.limit
}

// replicationError reads the last error of a replica's threads.
func replicationError(ctx context.Context, db *sql.DB, status string) string {
	rows, err := db.QueryContext(ctx, status)
	if err != nil {
		return ""
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil || !rows.Next() {
		return ""
	}
	values := make([]sql.NullString, len(names))
	targets := make([]any, len(names))
	for i := range values {
		targets[i] = &values[i]
	}
	if rows.Scan(targets...) != nil {
		return ""
	}
	var why []string
	for i, name := range names {
		if (name == "Last_IO_Error" || name == "Last_SQL_Error") && values[i].String != "" {
			why = append(why, values[i].String)
		}
	}
	return strings.Join(why, "; ")
}
