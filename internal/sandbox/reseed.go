package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// WaitForReplicas lets a node that was promoted wait until a replica has what it acknowledges, as the primary of a sandbox with SemiSync does.
func (n *Node) WaitForReplicas(ctx context.Context) error {
	r, err := recipeFor(n.Program)
	if err != nil {
		return err
	}
	return n.runRecipe(ctx, r.semiSource)
}

// Renumbered is how far apart the numbers are that a node has as server_id, one after each Reseed.
const Renumbered = 1000

// renumber gives a node another server_id: a server takes no changes from others that it once made itself, by their number.
func (n *Node) renumber() error {
	text, err := os.ReadFile(n.configPath())
	if err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if id, ok := strings.CutPrefix(line, "server_id="); ok {
			number, err := strconv.Atoi(id)
			if err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
			lines[i] = fmt.Sprintf("server_id=%d", number+Renumbered)
		}
	}
	return os.WriteFile(n.configPath(), []byte(strings.Join(lines, "\n")), 0o600)
}

// Reseed throws away what a node of a replication topology has, and lets it get everything again from a primary: of a MariaDB by a dump, else by binary logs that go back to the
// beginning. The node comes back closed to clients, with another server_id. Settings that a data directory has for good have to be the usual ones.
func (n *Node) Reseed(ctx context.Context, primary *Node) error {
	r, err := recipeFor(n.Program)
	if err != nil {
		return err
	}
	password, err := n.sandbox.Password()
	if err != nil {
		return err
	}
	cache, err := DefaultCacheDir()
	if err != nil {
		return err
	}
	scratch := filepath.Join(n.sandbox.Dir, "bootstrap")
	t := template{server: n.Program, recipe: r, cache: cache, scratch: scratch, say: n.sandbox.progress}
	dir, err := t.ensure(ctx)
	if err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	if err := errors.Join(os.RemoveAll(scratch), n.Kill(syscall.SIGKILL), n.unused(ctx)); err != nil {
		return err
	}
	entries, err := os.ReadDir(n.Datadir) // it may be where a file system is mounted
	if err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(n.Datadir, e.Name())); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	if err := errors.Join(copyTree(ctx, n.Datadir, dir, false), n.renumber()); err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	if err := n.StartClosed(ctx); err != nil {
		return err
	}
	if n.Program.Family == FamilyMariaDB {
		if err := n.copyOf(ctx, primary); err != nil {
			return fmt.Errorf("node %s: copy %s: %w", n.Name, primary.Name, err)
		}
	}
	if err := n.follow(ctx, primary, r, password); err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	return nil
}

// copyOf fills an empty node with a dump of another one, whose binary logs may begin anew as it was rebuilt itself. Nothing of that is in its own.
func (n *Node) copyOf(ctx context.Context, primary *Node) error {
	path, ok := n.Program.tool("mariadb-dump", "mysqldump")
	if !ok {
		return errors.New("neither mariadb-dump nor mysqldump is installed (Debian: mariadb-client)")
	}
	dump := exec.CommandContext(ctx, path, "--no-defaults", "--user=root", "--socket="+primary.Socket, "--all-databases", "--single-transaction", "--gtid", "--master-data=1", "--routines", "--events", "--flush-privileges")
	dump.Env = environ(basedir(path))
	load, err := n.Client(ctx, []string{"--init-command=SET SESSION sql_log_bin = 0"})
	if err != nil {
		return err
	}
	var said, loaded strings.Builder
	dump.Stderr, load.Stderr = &said, &loaded
	if load.Stdin, err = dump.StdoutPipe(); err != nil {
		return err
	}
	if err := dump.Start(); err != nil {
		return err
	}
	lerr := load.Run()
	derr := dump.Wait()
	if lerr != nil {
		lerr = fmt.Errorf("load: %w: %s", lerr, strings.TrimSpace(loaded.String()))
	}
	if derr != nil {
		derr = fmt.Errorf("dump: %w: %s", derr, strings.TrimSpace(said.String()))
	}
	return errors.Join(lerr, derr)
}
