package sandbox

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rissodb/risso/internal/fault"
)

// Network is the network of a sandbox whose nodes are in network namespaces of their own, with one more for clients and controllers. All packets pass a router, in a
// namespace too, which can drop those from one place to another. Nothing of it is seen outside of the namespaces.
type Network struct {
	Router string  `json:"router"` // the namespace of the router
	Places []Place `json:"places"`
}

// Place is a namespace of a network.
type Place struct {
	Name      string `json:"name"`      // the node's, or Clients, or Control
	Namespace string `json:"namespace"` // as ip netns list shows it
	Address   string `json:"address"`
}

// The places of a network besides its nodes.
const (
	Clients = "clients" // where applications are
	Control = "control" // where controllers are
)

// namespaceDir is where ip(8) keeps namespaces that have a name.
const namespaceDir = "/run/netns"

// networkPort is the port of each node, in its namespace.
const networkPort = 3306

// cutPreference is that of the router's rules which drop packets: by it they are found again.
const cutPreference = "1000"

// plannedNetwork is the network of a sandbox in a folder. The names of its namespaces are made from the folder's.
func plannedNetwork(dir string, nodes []string) *Network {
	h := fnv.New32a()
	h.Write([]byte(dir))
	prefix := fmt.Sprintf("risso-%08x-", h.Sum32())
	w := &Network{Router: prefix + "router"}
	for i, name := range append([]string{Clients, Control}, nodes...) {
		w.Places = append(w.Places, Place{Name: name, Namespace: prefix + name, Address: fmt.Sprintf("10.77.0.%d", 10+i)})
	}
	return w
}

// Place finds one by its name.
func (w *Network) Place(name string) (Place, error) {
	i := slices.IndexFunc(w.Places, func(p Place) bool { return p.Name == name })
	if i < 0 {
		return Place{}, fmt.Errorf("the sandbox's network has no place %q", name)
	}
	return w.Places[i], nil
}

// make makes the namespaces and joins them.
func (w *Network) make(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return fault.New(fault.Usage, "run it as root, or without a network of its own", errors.New("only root can make network namespaces"))
	}
	const gateway = "10.77.0.1"
	steps := [][]string{{"netns", "add", w.Router}}
	for i, p := range w.Places {
		port := fmt.Sprintf("port%d", i)
		in, router := []string{"-n", p.Namespace}, []string{"-n", w.Router}
		steps = append(steps, []string{"netns", "add", p.Namespace},
			append(slices.Clone(router), "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", p.Namespace),
			append(slices.Clone(in), "link", "set", "lo", "up"),
			append(slices.Clone(in), "addr", "add", p.Address+"/32", "dev", "eth0"),
			append(slices.Clone(in), "link", "set", "eth0", "up"),
			append(slices.Clone(in), "route", "add", gateway, "dev", "eth0", "scope", "link"),
			append(slices.Clone(in), "route", "add", "default", "via", gateway),
			append(slices.Clone(router), "link", "set", port, "up"),
			append(slices.Clone(router), "addr", "add", gateway+"/32", "dev", port),
			append(slices.Clone(router), "route", "add", p.Address+"/32", "dev", port))
	}
	for _, step := range steps {
		if err := ip(ctx, step...); err != nil {
			return err
		}
	}
	return inNamespace(w.Router, func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) })
}

// remove removes the namespaces, and all that is in them.
func (w *Network) remove(ctx context.Context) error {
	var errs []error
	for _, p := range append([]Place{{Namespace: w.Router}}, w.Places...) {
		if _, err := os.Stat(filepath.Join(namespaceDir, p.Namespace)); err == nil {
			errs = append(errs, ip(ctx, "netns", "del", p.Namespace))
		}
	}
	return errors.Join(errs...)
}

// Cut drops all packets from one place to another from now on. What goes the other way still arrives. It may be done twice.
func (w *Network) Cut(ctx context.Context, from, to string) error {
	if err := w.Mend(ctx, from, to); err != nil {
		return err
	}
	return w.rule(ctx, "add", from, to)
}

// Mend lets packets from one place to another pass again.
func (w *Network) Mend(ctx context.Context, from, to string) error {
	err := w.rule(ctx, "del", from, to)
	if err != nil && strings.Contains(err.Error(), "No such file") {
		return nil // nothing was cut
	}
	return err
}

func (w *Network) rule(ctx context.Context, do, from, to string) error {
	a, err := w.Place(from)
	if err != nil {
		return err
	}
	b, err := w.Place(to)
	if err != nil {
		return err
	}
	return ip(ctx, "-n", w.Router, "rule", do, "from", a.Address, "to", b.Address, "pref", cutPreference, "blackhole")
}

// MendAll lets all packets pass again.
func (w *Network) MendAll(ctx context.Context) error {
	for {
		err := ip(ctx, "-n", w.Router, "rule", "del", "pref", cutPreference)
		if err != nil && strings.Contains(err.Error(), "No such file") {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// Dial connects as a program at that place does. The address is a literal one: there are no names in the namespaces.
func (p Place) Dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	err = p.Do(func() error {
		var d net.Dialer
		c, err = d.DialContext(ctx, network, address)
		return err
	})
	return c, err
}

// Do calls a function on a thread that is in the namespace: sockets that it makes, and programs that it starts, are there.
func (p Place) Do(do func() error) error { return inNamespace(p.Namespace, do) }

// inNamespace calls a function on a thread of its own in a network namespace; "" is this process's.
func inNamespace(name string, do func() error) error {
	if name == "" {
		return do()
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine, and takes its namespace along
		done <- func() error {
			f, err := os.Open(filepath.Join(namespaceDir, name))
			if err != nil {
				return fmt.Errorf("enter the network namespace %s: %w", name, err)
			}
			defer f.Close()
			if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("enter the network namespace %s: %w", name, err)
			}
			return do()
		}()
	}()
	return <-done
}

// ip runs ip(8).
func ip(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return fault.New(fault.Usage, "install it (Debian: iproute2)", errors.New("ip is needed to make network namespaces"))
	}
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
