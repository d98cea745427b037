package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rissodb/risso/internal/delay"
)

// Galera is the ports that a cluster node listens on in addition to the one for clients.
type Galera struct {
	Port    int `json:"port"`     // group communication
	ISTPort int `json:"ist_port"` // incremental state transfer
	SSTPort int `json:"sst_port"` // full state transfer
}

// newCluster makes a node the first of a cluster instead of a joiner.
const newCluster = "--wsrep-new-cluster"

// ErrNoGalera is the reason of Up when a cluster is asked for and Galera's library is not on this machine.
var ErrNoGalera = errors.New("no Galera library (libgalera_smm.so)")

// provider finds Galera's library.
func provider(s Server) (string, error) {
	patterns := []string{
		filepath.Join(s.Basedir, "lib*", "galera*", "libgalera_smm.so"),
		filepath.Join(s.Basedir, "lib*", "libgalera_smm.so"),
		"/usr/lib*/galera*/libgalera_smm.so",
		"/usr/lib/*/libgalera_smm.so",
	}
	for _, p := range patterns {
		if found, _ := filepath.Glob(p); len(found) > 0 { // the patterns are good
			return found[len(found)-1], nil // galera-4 after galera-3
		}
	}
	return "", fmt.Errorf("%w: looked in %s; run script/setup, or install it (Debian: galera-4)", ErrNoGalera, strings.Join(unique(patterns), ", "))
}

// foundCluster runs the server once as a cluster of one, so that the data
// directory holds the identity and the first position of a cluster's history.
// Copies of it then join each other with an incremental transfer of the few
// changes since, instead of a copy of all data. Only sandboxes share that
// identity; their names and addresses keep them apart.
func (t template) foundCluster(ctx context.Context, work, data string) error {
	lib, err := provider(t.server)
	if err != nil {
		return err
	}
	hold, err := freePort()
	if err != nil {
		return err
	}
	defer hold.release()
	log := filepath.Join(work, "cluster.log")
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	args := append([]string{"--no-defaults", "--datadir=" + data, "--basedir=" + t.server.Basedir, "--tmpdir=" + work,
		// Nothing connects: the log shows it. A relative path is never too long.
		"--socket=cluster.sock", "--skip-networking",
		"--wsrep-on=ON", "--wsrep-provider=" + lib, "--wsrep-cluster-address=gcomm://", newCluster,
		fmt.Sprintf("--wsrep-node-address=127.0.0.1:%d", hold.Port),
		fmt.Sprintf("--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:%d;gcache.size=128K", hold.Port),
		"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2"}, dashed(t.recipe.redo)...)
	if os.Geteuid() == 0 {
		args = append(args, "--user=root")
	}
	cmd := exec.CommandContext(ctx, t.server.Binary, args...)
	cmd.Env = environ(t.server.Basedir)
	cmd.Dir = work
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 2 * time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	watchErr := awaitLog(ctx, log, cmd.Process.Pid, "Synchronized with group")
	// A clean shutdown writes the position to its file. One that has only just begun to serve may not hear that it is to end.
	ended := make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		for {
			_ = cmd.Process.Signal(syscall.SIGTERM) // it fails once it has ended
			select {
			case <-ended:
				return
			case <-time.After(5 * time.Second):
			}
		}
	})
	err = cmd.Wait()
	close(ended)
	asking.Wait()
	if err != nil || watchErr != nil {
		b, _ := os.ReadFile(log) // the reason, if there is one
		return fmt.Errorf("%w: %s", errors.Join(watchErr, err), lastErrors(string(b)))
	}
	// What the next start would take for the members of before.
	return removeFiles(data, "galera.cache", "gvwstate.dat")
}

// awaitLog waits, at most 20 seconds, until a child has written a word to its log.
func awaitLog(ctx context.Context, path string, pid int, word string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 20*time.Second, fmt.Errorf("the log does not say %q", word))
	defer cancel()
	for {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.Contains(b, []byte(word)) {
			return nil
		}
		if _, state, err := procStat(pid); err != nil || state == 'Z' {
			return errors.New("the server ended")
		}
		if err := delay.For(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// startCluster starts the nodes one after the other: two that join at the same time
// wait for each other's state transfer, which takes longer.
func (s *Sandbox) startCluster(ctx context.Context, p *plan) error {
	var holds []*portHold
	defer func() {
		for _, h := range holds {
			h.release()
		}
	}()
	take := func() (int, error) {
		h, err := freePort()
		if err != nil {
			return 0, err
		}
		holds = append(holds, h)
		return h.Port, nil
	}
	for _, n := range s.Nodes {
		var ports [4]int
		for i := range ports {
			port, err := take()
			if err != nil {
				return err
			}
			ports[i] = port
		}
		n.Port, n.Galera = ports[0], &Galera{Port: ports[1], ISTPort: ports[2], SSTPort: ports[3]}
	}
	for i, n := range s.Nodes {
		start := time.Now()
		lines, err := s.clusterSettings(n)
		if err != nil {
			return err
		}
		if err := n.writeConfig(p, append(lines, p.servers[i].recipe.redo...)); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
		var args []string
		if i == 0 {
			args = append(args, newCluster)
		} else if err := n.joinOnly(); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
		if err := n.start(ctx, args...); err != nil {
			return err
		}
		n.tellStarted(start)
	}
	return s.Primary().makeAccount(ctx, p.servers[0].recipe, p.password)
}

// clusterSettings is the part of a node's configuration that makes it a member.
func (s *Sandbox) clusterSettings(n *Node) ([]string, error) {
	lib, err := provider(n.Program)
	if err != nil {
		return nil, err
	}
	// rsync started by root drops its privileges and then cannot read a private folder.
	method := "mariabackup"
	if _, ok := n.Program.tool("mariabackup", "mariadb-backup"); !ok {
		if os.Geteuid() == 0 {
			return nil, errors.New("mariabackup is missing, which nodes copy data with (Debian: mariadb-backup)")
		}
		method = "rsync"
	}
	var members []string
	for _, m := range s.Nodes {
		members = append(members, fmt.Sprintf("%s:%d", m.Host, m.Galera.Port))
	}
	options := []string{
		fmt.Sprintf("gmcast.listen_addr=tcp://%s:%d", n.Host, n.Galera.Port),
		fmt.Sprintf("ist.recv_addr=%s:%d", n.Host, n.Galera.ISTPort),
		"gcache.size=32M",
		// Members find each other sooner. When a silent one is given up stays as it is.
		"evs.join_retrans_period=PT0.1S", "evs.keepalive_period=PT0.2S", "evs.inactive_check_period=PT0.1S",
	}
	return []string{
		"wsrep_on=ON",
		"wsrep_provider=" + lib,
		"wsrep_cluster_name=risso-" + s.Name,
		"wsrep_cluster_address=gcomm://" + strings.Join(members, ","),
		"wsrep_node_name=" + n.Name,
		fmt.Sprintf("wsrep_node_address=%s:%d", n.Host, n.Galera.Port),
		fmt.Sprintf("wsrep_node_incoming_address=%s:%d", n.Host, n.Port),
		fmt.Sprintf("wsrep_sst_receive_address=%s:%d", n.Host, n.Galera.SSTPort),
		"wsrep_sst_method=" + method,
		"wsrep_sst_auth=root:", // over the donor's own socket, without a password
		`wsrep_provider_options="` + strings.Join(options, ";") + `"`,
		"binlog_format=ROW",
		"log_slave_updates=ON",
		"innodb_autoinc_lock_mode=2",
	}, nil
}

// joinOnly takes from a copied data directory the right to found a cluster,
// which only the first node may have.
func (n *Node) joinOnly() error {
	path := filepath.Join(n.Datadir, "grastate.dat")
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, bytes.Replace(b, []byte("safe_to_bootstrap: 1"), []byte("safe_to_bootstrap: 0"), 1), 0o600)
}

// awaitSynced returns when the node takes part in the cluster.
func (n *Node) awaitSynced(ctx context.Context) error {
	db, err := n.DB()
	if err != nil {
		return err
	}
	defer db.Close()
	var name, state string
	for {
		err := db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'wsrep_local_state_comment'").Scan(&name, &state)
		if err == nil && state == "Synced" {
			return nil
		}
		select {
		case <-n.exited:
			return n.deathReason()
		default:
		}
		if serr := delay.For(ctx, 10*time.Millisecond); serr != nil {
			return errors.Join(fmt.Errorf("%w: the node is %q, not Synced", serr, state), err)
		}
	}
}
