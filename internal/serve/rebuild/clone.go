package rebuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rissodb/risso/internal/avail/repoint"
	"github.com/rissodb/risso/internal/change"
	"github.com/rissodb/risso/internal/delay"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/read"
)

// FromClone is what From begins with if a server is to be copied by CLONE.
const FromClone = "clone"

// passwordVariable names the password of the channel to a run that goes on after the one that knew it was killed: no journal has it.
const passwordVariable = "RISSO_REPLICATION_PASSWORD"

// cloner lets a MySQL replace its own data by those of another, file by file.
type cloner struct {
	*copier
	host     string // of the donor, as the replica reaches it
	port     int
	channel  string
	source   string // address at which the channel points
	filter   string // what the channel leaves out
	settings mysql.ChannelSettings
	wait     time.Duration
	started  int64 // when the replica was started, before that
	kept     *repoint.Copy
	password string // of the channel, if the caller knows it
}

// Fetches is a step of a plan.
func (c *cloner) Fetches() change.Step {
	return change.Step{What: "prepare", Where: c.from + " for CLONE", Why: "it gets the plug-in clone, if it has none, until the end; how the channel of " + c.name + " is set is read"}
}

// Fetch prepares the donor, and reads what CLONE does not keep.
func (c *cloner) Fetch(ctx context.Context) (repoint.Copy, error) {
	copied := repoint.Copy{ID: FromClone, Words: "a clone of " + c.from, Time: time.Now().UTC()}
	node, err := mysql.Connect(ctx, c.node, nil)
	if err != nil {
		return copied, err
	}
	defer node.Close()
	if c.settings, err = mysql.ReadChannelSettings(ctx, node, c.channel); err != nil {
		return copied, fmt.Errorf("%s: %w", c.name, err)
	}
	copied.Settings = &c.settings
	donor, err := mysql.Connect(ctx, c.donor, nil)
	if err != nil {
		return copied, err
	}
	defer donor.Close()
	copied.Installed, err = install(ctx, donor)
	if err != nil {
		return copied, fmt.Errorf("%s: %w", c.from, err)
	}
	c.kept = &copied
	return copied, nil
}

// install makes sure of the plug-in, and says whether it was not there.
func install(ctx context.Context, conn *mysql.Conn) (fresh bool, err error) {
	state, err := read.PluginState(ctx, conn, FromClone)
	switch {
	case err != nil || state == "ACTIVE":
		return false, err
	case state != "":
		return false, fmt.Errorf("the plug-in clone is %s", state)
	}
	const statement = "INSTALL PLUGIN clone SONAME 'mysql_clone.so'"
	if err := conn.Exec(ctx, statement); err != nil {
		return false, fmt.Errorf("%s: %w", statement, err)
	}
	return true, nil
}

// Checks are none: what keeps CLONE from working is seen before, or by the server when it is told to.
func (c *cloner) Checks(func() *repoint.Copy) change.Plan { return nil }

// Fills are steps of a plan.
func (c *cloner) Fills(copied func() *repoint.Copy) change.Plan {
	from := net.JoinHostPort(c.host, strconv.Itoa(c.port))
	return change.Plan{
		{What: "CLONE INSTANCE FROM", Where: from + " on " + c.name, Why: "it drops all that it has, and restarts; from here on there is no way back but another copy", Do: c.clone},
		{What: "wait", Where: "until " + c.name + " is back", Why: "a server that nothing starts again (error 3707) has to be started by hand meanwhile", Do: func(ctx context.Context) error { return c.back(ctx, copied()) }},
		{What: "set", Where: "the channel of " + c.name, Why: "CLONE brings the donor's channels, or none: it gets its own again, by the account that it had", Do: func(ctx context.Context) error { return c.restoreChannel(ctx, copied()) }},
	}
}

// clone runs the statement. When it is over the server goes away, and may come again.
func (c *cloner) clone(ctx context.Context) error {
	conn, err := mysql.Connect(ctx, c.node.WithPatience(0), nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := install(ctx, conn); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	if c.started, err = read.Started(ctx, conn); err != nil {
		return err
	}
	list := "SET GLOBAL clone_valid_donor_list = " + mysql.Literal(net.JoinHostPort(c.host, strconv.Itoa(c.port)))
	if err := conn.Exec(ctx, list); err != nil {
		return fmt.Errorf("%s on %s: %w", list, c.name, err)
	}
	before, err := schemas(ctx, conn)
	if err != nil {
		return err
	}
	watch, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { // ends with stop
		defer close(done)
		c.watch(watch)
	}()
	err = conn.Exec(ctx, c.donor.CloneFrom(c.host, c.port))
	stop()
	<-done
	c.line.Clear()
	switch n := mysql.ErrorNumber(err); {
	case ctx.Err() != nil: // the server goes on copying until it is told to stop
		kctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return errors.Join(context.Cause(ctx), mysql.Kill(kctx, c.node, conn.Server.ConnectionID))
	case n == errno.RestartFailed:
		c.say(c.name + " has its copy and cannot restart itself, as nothing would start it again: start it on its machine, within " + digits.Span(c.wait))
		return nil
	case err == nil, n == 0: // it went away, to restart: how it ended it tells when it is back
		return nil
	}
	remedy := ""
	if mysql.ClassOf(err) == mysql.ClassPrivilege || strings.Contains(err.Error(), "1045") || strings.Contains(err.Error(), "BACKUP_ADMIN") {
		remedy = "the account of " + c.from + " has to be able to log in there from the machine of " + c.name + ", with BACKUP_ADMIN; that of " + c.name + " needs CLONE_ADMIN"
	}
	err = fmt.Errorf("CLONE INSTANCE on %s: %w", c.name, err)
	if now, serr := schemas(ctx, conn); serr == nil && before != "" && now == before { // CLONE drops them first
		err = fmt.Errorf("%w: %w", repoint.ErrIntact, err)
	}
	return fault.New(fault.Failed, remedy, err)
}

// schemas are those of users.
func schemas(ctx context.Context, conn *mysql.Conn) (string, error) {
	return conn.Text(ctx, "SELECT /* risso: is all still there? */ GROUP_CONCAT(SCHEMA_NAME ORDER BY 1) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')")
}

// watch shows how far CLONE is.
func (c *cloner) watch(ctx context.Context) {
	conn, err := mysql.Connect(ctx, c.node, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	for delay.For(ctx, 500*time.Millisecond) == nil {
		rows, err := conn.Maps(ctx, "SELECT /* risso: how far is CLONE? */ COALESCE(SUM(ESTIMATE), 0) AS e, COALESCE(SUM(DATA), 0) AS d FROM performance_schema.clone_progress")
		if err != nil || len(rows) == 0 {
			return
		}
		total, _ := strconv.ParseInt(rows[0]["e"], 10, 64)
		done, _ := strconv.ParseInt(rows[0]["d"], 10, 64)
		c.line.Stage("cloning "+c.from, "bytes", done, total)
	}
}

// back waits until the server was started again, and reads how CLONE ended.
func (c *cloner) back(ctx context.Context, copied *repoint.Copy) error {
	var last error
	for began := time.Now(); time.Since(began) < c.wait; {
		ended, done, err := c.ended(ctx)
		if err != nil {
			last = err
		}
		switch {
		case done && !strings.HasPrefix(ended.State, "Completed"):
			return fmt.Errorf("CLONE on %s: %s", c.name, ended.State)
		case done:
			copied.GTIDs, copied.Log, copied.Pos = ended.GTIDs, ended.Log, ended.Pos
			return nil
		}
		if err := delay.For(ctx, 300*time.Millisecond); err != nil {
			return err
		}
	}
	return fault.New(fault.Failed, "start it on its machine", fmt.Errorf("%s did not come back within %s: %w", c.name, digits.Span(c.wait), last))
}

// ended asks a server that was started again.
func (c *cloner) ended(ctx context.Context) (out mysql.ClonedTo, done bool, err error) {
	conn, err := mysql.Connect(ctx, c.node, nil)
	if err != nil {
		return out, false, err
	}
	defer conn.Close()
	started, err := read.Started(ctx, conn)
	if err != nil || c.started != 0 && started <= c.started+1 { // by a clock of whole seconds
		return out, false, err
	}
	out, err = mysql.ReadCloned(ctx, conn)
	return out, err == nil && !strings.HasPrefix(out.State, "In Progress"), err
}

// restoreChannel gives the replica the channel that it had; where it leads, a later step says.
func (c *cloner) restoreChannel(ctx context.Context, copied *repoint.Copy) error {
	set := c.settings
	if copied.Settings != nil && !set.HasPassword() {
		set = copied.Settings.WithPassword(cmp.Or(os.Getenv(passwordVariable), c.password))
		if !set.HasPassword() {
			return fault.New(fault.Failed, passwordVariable+"=… in the environment", fmt.Errorf("the password of %s, by which %s follows its source, is not known any more, as the run that knew it ended", mysql.Literal(set.User), c.name))
		}
	}
	conn, err := mysql.Connect(ctx, c.node, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	if filter, there, err := c.marked(ctx, conn); err != nil || there { // an earlier run did it, and found that a filter was gone
		return errors.Join(err, c.sameFilter(filter))
	}
	host, text, err := net.SplitHostPort(c.source)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	for _, s := range []string{"SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = ON"} {
		if err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s on %s: %w", s, c.name, err)
		}
	}
	if err := c.forget(ctx, conn); err != nil {
		return err
	}
	if err := conn.Exec(ctx, conn.Server.Set(c.channel, set, mysql.Pointing{Host: repoint.RebuildHost(host), Port: port})); err != nil {
		return fmt.Errorf("set the channel of %s: %w", c.name, err) // without the statement, which has the password
	}
	if copied.Installed {
		if err := uninstall(ctx, conn); err != nil {
			return err
		}
	}
	filter, _, err := c.marked(ctx, conn)
	return errors.Join(err, c.sameFilter(filter))
}

// startTime bounds how long a server that was started takes to let the threads of its channels run.
const startTime = 10 * time.Second

// forget takes its channels from a server that was started a moment ago. It does not wait there for the threads that it starts, and one that only begins is
// not stopped.
func (c *cloner) forget(ctx context.Context, conn *mysql.Conn) error {
	for until := time.Now().Add(startTime); ; {
		stop, forget := conn.Server.StopReplica(""), conn.Server.ForgetChannels()
		if err := conn.Exec(ctx, stop); err != nil {
			return fmt.Errorf("%s on %s: %w", stop, c.name, err)
		}
		err := conn.Exec(ctx, forget)
		if err == nil {
			return nil
		}
		if mysql.ErrorNumber(err) != errno.ChannelRuns || time.Now().After(until) {
			return fmt.Errorf("%s on %s: %w", forget, c.name, err)
		}
		if err := delay.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// marked reports whether the replica has its channel, which leads nowhere, and what that leaves out.
func (c *cloner) marked(ctx context.Context, conn *mysql.Conn) (filter string, there bool, err error) {
	list, err := read.ReplicaChannels(ctx, conn)
	for _, ch := range list {
		if _, is := repoint.Rebuilt(ch.Status.Source); is && ch.Name == c.channel {
			return ch.Filter.String(), true, err
		}
	}
	return "", false, err
}

// sameFilter refuses to go on with a channel that leaves out other things than before: those that were set without the option file do not survive a restart.
func (c *cloner) sameFilter(now string) error {
	if now == c.filter {
		return nil
	}
	return fault.New(fault.Failed, "CHANGE REPLICATION FILTER sets it again", fmt.Errorf("the channel of %s left out %q before it was started again, and leaves out %q now", c.name, c.filter, now))
}

func uninstall(ctx context.Context, conn *mysql.Conn) error {
	state, err := read.PluginState(ctx, conn, FromClone)
	if err != nil || state == "" {
		return err
	}
	if err := conn.Exec(ctx, "UNINSTALL PLUGIN clone"); err != nil {
		return fmt.Errorf("UNINSTALL PLUGIN clone: %w", err)
	}
	return nil
}

// Remove takes the plug-in from the donor, if it got it for this.
func (c *cloner) Remove() error {
	if c.kept == nil || !c.kept.Installed {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) // also after an interrupt
	defer cancel()
	conn, err := mysql.Connect(ctx, c.donor, nil)
	if err != nil {
		return fmt.Errorf("%s: the plug-in clone stays: %w", c.from, err)
	}
	defer conn.Close()
	return uninstall(ctx, conn)
}

// cloner finds out whether CLONE will do.
func (j *Job) cloner(ctx context.Context, f *copier, v repoint.RebuildVerdict) (*cloner, error) {
	t := j.Question.Topology
	d, n := &t.Nodes[j.Question.Donor], &t.Nodes[j.Question.Replica]
	var no []repoint.Refusal
	refuse := func(code, remedy, format string, args ...any) {
		no = append(no, repoint.Refusal{Code: code, Trouble: fleet.Trouble{What: code, Why: fmt.Sprintf(format, args...), Remedy: remedy}})
	}
	k := &cloner{copier: f, channel: v.Channel.Name, source: v.Channel.Source, filter: v.Channel.Filter, wait: j.Repointer.Wait, password: j.Password}
	host, port, err := net.SplitHostPort(j.Question.DonorAddress())
	if err == nil {
		k.host = host
		k.port, err = strconv.Atoi(port)
	}
	if err != nil {
		refuse("no_address", "", "nobody tells by which address %s reaches %s", n.Name, d.Name)
	}
	if why := mysql.Of(n.Server).CannotClone(mysql.Of(d.Server)); why != "" {
		refuse("version", "--from "+d.Name+" copies rows over the network", "%s", why)
		return nil, repoint.Refused("rebuild "+n.Name, no)
	}
	if !v.Channel.GTID && len(t.Sources(v.From)) > 0 {
		refuse("donor_position", "--from "+d.Name, "%s is a replica itself, which %s would be as well until its channel is set: without GTIDs its place would be lost", d.Name, n.Name)
	}
	conn, err := mysql.Connect(ctx, f.donor, nil)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	other, err := conn.Text(ctx, `SELECT /* risso: what CLONE leaves empty */ COUNT(*) FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND ENGINE <> 'InnoDB'
		AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')`)
	if err != nil {
		return nil, err
	}
	if other != "0" {
		refuse("engines", "--from "+d.Name, "CLONE copies InnoDB only: %s other tables of %s would be empty", other, d.Name)
	}
	events, err := conn.Text(ctx, "SELECT /* risso: would they run on the replica, too? */ COUNT(*) FROM information_schema.EVENTS WHERE STATUS = 'ENABLED'")
	if err != nil {
		return nil, err
	}
	if events != "0" {
		refuse("events", "take a replica as donor: --from clone=NAME; or --from "+d.Name, "CLONE would bring %s events of %s that are switched on, and run there as well", events, d.Name)
	}
	state, err := read.PluginState(ctx, conn, FromClone)
	if err != nil {
		return nil, err
	}
	if state == "" && d.Writes.Super {
		refuse("plugin", "SET GLOBAL super_read_only = OFF; INSTALL PLUGIN clone SONAME 'mysql_clone.so'; SET GLOBAL super_read_only = ON on "+d.Name, "%s has no plug-in clone, and takes none, as it is super_read_only", d.Name)
	}
	rights, err := conn.Rights(ctx)
	if err != nil {
		return nil, err
	}
	if !rights.Have("", "", "BACKUP_ADMIN") {
		refuse("privileges", conn.Server.CloneDonorGrants()+" on "+d.Name, "the account of %s may not let itself be cloned", d.Name)
	}
	if len(no) > 0 {
		return nil, repoint.Refused("rebuild "+n.Name, no)
	}
	if left := j.Question.Left; left != nil && left.Copy != nil {
		k.kept = left.Copy
	}
	return k, nil
}

// CloneNotes are what CLONE does not do as a copy of rows does.
func CloneNotes(name, donor, filter string) []string {
	list := []string{"accounts, and all else in the schema mysql, are those of " + donor + " afterwards: " + name + " is asked by the same account then",
		name + " restarts: what was set by SET GLOBAL, and not written down, is gone; server_uuid, the option file and what SET PERSIST wrote stay"}
	if filter != "" {
		list = append(list, "what the channel leaves out ("+filter+") has to stand in the option file, or be set again after the restart")
	}
	return list
}
