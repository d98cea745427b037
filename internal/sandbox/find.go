package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/pattern"
)

// Family is the line of servers that a program belongs to; it decides the recipe.
type Family string

// The families a sandbox can start.
const (
	FamilyMariaDB Family = "mariadb"
	FamilyMySQL   Family = "mysql"
	FamilyPercona Family = "percona" // starts like MySQL, has its own name
)

// flavours are what servers of the families say they are.
var flavours = map[Family]fleet.Flavour{FamilyMariaDB: fleet.FlavourMariaDB, FamilyMySQL: fleet.FlavourMySQL, FamilyPercona: fleet.FlavourPercona}

// FamilyOf is the family of servers of a flavour; FamilyMySQL if unknown.
func FamilyOf(f fleet.Flavour) Family {
	for family, flavour := range flavours {
		if flavour == f {
			return family
		}
	}
	return FamilyMySQL
}

// Like is what Find finds that is most like another server (see Nearest), or would.
func Like(ctx context.Context, flavour fleet.Flavour, number fleet.Version) string {
	if s, err := Nearest(ctx, fleet.Server{Flavour: flavour, Number: number}, nil); err == nil {
		return s.Name
	}
	if flavour == fleet.FlavourPercona {
		return string(FamilyMySQL)
	}
	return string(FamilyOf(flavour))
}

// Nearest is the server on this machine that is most like another one, of those that suit (nil: all that read the same SQL): of the same series and
// not older, else of the next newer one, else the newest of the older ones. In a series its flavour goes first.
func Nearest(ctx context.Context, like fleet.Server, suits func(fleet.Server) bool) (Server, error) {
	found, looked, err := Servers(ctx)
	if err != nil && !errors.Is(err, ErrNoServer) {
		return Server{}, err
	}
	return nearest(found, looked, like, suits)
}

func nearest(found []Server, looked []string, like fleet.Server, suits func(fleet.Server) bool) (best Server, err error) {
	least := fleet.Never
	for _, s := range found {
		if k := s.Kind(); k.SameKind(like) && (suits == nil || suits(k)) && distance(k, like) < least {
			best, least = s, distance(k, like)
		}
	}
	if least == fleet.Never {
		return best, noServer(string(FamilyOf(like.Flavour))+"-"+like.Number.Series(), found, looked, nil)
	}
	return best, nil
}

// distance orders servers by how far they are from another one: lower is nearer.
func distance(s, like fleet.Server) fleet.Version {
	n, want := s.Number, like.Number
	far := max(n-want, want-n)
	switch {
	case n.SameSeries(want):
		if n < want {
			far += 1_000
		}
		if s.Flavour != like.Flavour {
			far += 10_000
		}
		return far
	case n > want:
		return 1_000_000 + far
	}
	return 100_000_000 + far
}

// Server is a server program installed on this machine.
type Server struct {
	Name    string `json:"name"` // family and series, such as mysql-8.0
	Family  Family `json:"family"`
	Version string `json:"version"` // as the program reports it
	Binary  string `json:"binary"`
	Basedir string `json:"basedir"`

	fetched bool // in Risso's cache, where script/setup puts servers that the system does not have
}

func (s Server) number() fleet.Version { return fleet.ParseVersion(s.Version) }

// Kind is what sort of server the program is.
func (s Server) Kind() fleet.Server {
	return fleet.Server{Flavour: flavours[s.Family], Version: s.Version, Number: s.number()}
}

// ErrNoServer is the reason of Find and Servers when nothing was found; the
// error's text lists the places.
var ErrNoServer = errors.New("no such server on this machine")

// binaryNames are the places of the server inside a basedir, best first.
func binaryNames() []string {
	var all []string
	for _, dir := range []string{"bin", "sbin", "libexec"} {
		for _, name := range []string{"mariadbd", "mysqld"} {
			all = append(all, filepath.Join(dir, name))
		}
	}
	return all
}

// places lists the programs to look at, and the words that say where.
func places() (binaries, looked []string) {
	see := func(where string, candidates ...string) {
		looked = append(looked, where)
		for _, c := range candidates {
			if executable(c) {
				binaries = append(binaries, c)
			}
		}
	}
	base := func(dir string) (c []string) {
		for _, b := range binaryNames() {
			c = append(c, filepath.Join(dir, b))
		}
		return c
	}
	bases := func(pattern string) (c []string) {
		dirs, _ := filepath.Glob(pattern) // the only error is a bad pattern
		for _, d := range dirs {
			c = append(c, base(d)...)
		}
		return c
	}
	for _, d := range filepath.SplitList(os.Getenv("RISSO_SERVERS")) {
		c := []string{d}
		c = append(c, base(d)...)
		see(d+" (RISSO_SERVERS)", append(c, bases(filepath.Join(d, "*"))...)...)
	}
	for _, d := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(d) {
			see(d, filepath.Join(d, "mariadbd"), filepath.Join(d, "mysqld"))
		}
	}
	for _, d := range []string{"/usr/sbin", "/usr/libexec"} {
		see(d, filepath.Join(d, "mariadbd"), filepath.Join(d, "mysqld"))
	}
	see("/usr/local/mysql", base("/usr/local/mysql")...)
	see("/opt/*", bases("/opt/*")...)
	if cache, err := DefaultCacheDir(); err == nil {
		see(filepath.Join(cache, "servers", "*"), bases(filepath.Join(cache, "servers", "*"))...)
	}
	return binaries, looked
}

// fetchedDir is the folder, with a slash, of the servers that script/setup fetched; "" if there is none.
func fetchedDir() string {
	cache, err := DefaultCacheDir()
	if err != nil {
		return ""
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(cache, "servers"))
	if err != nil {
		return ""
	}
	return dir + string(filepath.Separator)
}

func executable(p string) bool {
	fi, err := os.Stat(p)
	return err == nil && fi.Mode().IsRegular() && fi.Mode().Perm()&0o111 != 0
}

// Servers finds the servers installed on this machine, the best of a kind
// first: MariaDB before MySQL, what is installed before what script/setup
// fetched in addition (that one is of another series than the programs on PATH),
// newer before older. Looked says where it looked.
func Servers(ctx context.Context) (found []Server, looked []string, err error) {
	binaries, looked := places()
	looked = unique(looked)
	// One program is often reached by several paths and names.
	seen := map[string]bool{}
	var todo []string
	for _, b := range binaries {
		real, err := filepath.EvalSymlinks(b)
		if err != nil || seen[real] {
			continue
		}
		seen[real] = true
		todo = append(todo, real)
	}
	results := make([]Server, len(todo))
	errs := make([]error, len(todo))
	var wg sync.WaitGroup
	for i, b := range todo {
		wg.Go(func() { results[i], errs[i] = inspect(ctx, b) })
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, looked, err
	}
	fetched := fetchedDir()
	for i, s := range results {
		if errs[i] == nil {
			s.fetched = fetched != "" && strings.HasPrefix(s.Binary, fetched)
			found = append(found, s)
		}
	}
	sort.SliceStable(found, func(i, j int) bool {
		if found[i].Family != found[j].Family {
			return found[i].Family < found[j].Family
		}
		if found[i].fetched != found[j].fetched {
			return found[j].fetched
		}
		return found[j].number() < found[i].number()
	})
	if len(found) == 0 {
		return nil, looked, noServer("any server", nil, looked, errs)
	}
	return found, looked, nil
}

// Find returns the server that spec means: a family (mariadb: the first of
// Servers), a family with the beginning of a version (mysql-8.0, mysql-8.0.15), or the path of a
// program, of a basedir, or of a folder that a tarball was unpacked into.
func Find(ctx context.Context, spec string) (Server, error) {
	if strings.ContainsRune(spec, filepath.Separator) {
		return findPath(ctx, spec)
	}
	family, version, _ := strings.Cut(spec, "-")
	switch Family(family) {
	case FamilyMariaDB, FamilyMySQL, FamilyPercona:
	default:
		return Server{}, fault.New(fault.Usage, "use mariadb, mariadb-11.8, mysql-9.7, mysql-8.0, mysql-5.7, percona-8.0 or the path of a server", fmt.Errorf("unknown server %q", spec))
	}
	found, looked, err := Servers(ctx)
	if err != nil && !errors.Is(err, ErrNoServer) {
		return Server{}, err
	}
	for _, s := range found {
		if string(s.Family) == family && (version == "" || s.Version == version || strings.HasPrefix(s.Version+"-", version+"-") || strings.HasPrefix(s.Version, version+".")) {
			return s, nil
		}
	}
	return Server{}, noServer(spec, found, looked, nil)
}

// Named is what sort of server a name such as mysql-8.4 means, also if none is installed; false if it names no version.
func Named(spec string) (fleet.Server, bool) {
	family, version, ok := strings.Cut(spec, "-")
	flavour, known := flavours[Family(family)]
	if !ok || !known || fleet.ParseVersion(version) == 0 {
		return fleet.Server{}, false
	}
	return fleet.Server{Flavour: flavour, Version: version, Number: fleet.ParseVersion(version)}, true
}

func findPath(ctx context.Context, path string) (Server, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return Server{}, fmt.Errorf("server %s: %w", path, err)
	}
	candidates := []string{abs}
	for _, b := range binaryNames() {
		candidates = append(candidates, filepath.Join(abs, b))
	}
	for _, b := range binaryNames() {
		inner, _ := filepath.Glob(filepath.Join(abs, "*", b)) // what a tarball unpacks
		candidates = append(candidates, inner...)
	}
	for _, c := range candidates {
		if executable(c) {
			real, err := filepath.EvalSymlinks(c)
			if err != nil {
				return Server{}, fmt.Errorf("server %s: %w", path, err)
			}
			return inspect(ctx, real)
		}
	}
	return Server{}, fault.New(fault.Usage, "give mysqld or mariadbd itself, or a folder that contains bin/mysqld, bin/mariadbd, sbin/… or libexec/…", fmt.Errorf("no server at %s", path))
}

// versionForm takes the number out of what `mysqld --version` prints, such as
// "mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64".
var versionForm = pattern.Lazy(`Ver (\d+\.\d+\.\d+[^ ]*)`)

// inspect asks a program what it is.
func inspect(ctx context.Context, binary string) (Server, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	base := basedir(binary)
	cmd := exec.CommandContext(ctx, binary, "--no-defaults", "--version")
	cmd.Env = environ(base)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return Server{}, fmt.Errorf("%s --version: %w: %s", binary, err, firstLine(string(out)))
	}
	m := versionForm().FindStringSubmatch(string(out))
	if m == nil {
		return Server{}, fmt.Errorf("%s --version prints no version: %s", binary, firstLine(string(out)))
	}
	s := Server{Version: m[1], Binary: binary, Basedir: base, Family: FamilyMySQL}
	switch {
	case strings.Contains(string(out), "MariaDB"):
		s.Family = FamilyMariaDB
		s.Version, _, _ = strings.Cut(s.Version, "-")
	case strings.Contains(string(out), "Percona"):
		s.Family = FamilyPercona
	}
	s.Name = string(s.Family) + "-" + s.number().Series()
	return s, nil
}

// basedir is the folder above bin, sbin or libexec.
func basedir(binary string) string { return filepath.Dir(filepath.Dir(binary)) }

// environ is what a server program inherits. A tarball brings its own
// libraries; those of the system are found anyway. Variables that would change a
// server's behaviour are left out.
func environ(base string) []string {
	var env []string
	for _, e := range os.Environ() {
		k, _, _ := strings.Cut(e, "=")
		if strings.HasPrefix(k, "MYSQL") || strings.HasPrefix(k, "MARIADB") || k == "LD_LIBRARY_PATH" || k == "NOTIFY_SOCKET" {
			continue
		}
		env = append(env, e)
	}
	if base != "/usr" && base != "/usr/local" && base != "/" {
		env = append(env, "LD_LIBRARY_PATH="+filepath.Join(base, "lib"))
	}
	return env
}

// tool finds a program that belongs to a server: in its basedir, else on PATH.
func (s Server) tool(names ...string) (string, bool) {
	for _, name := range names {
		for _, dir := range []string{"bin", "scripts"} {
			if p := filepath.Join(s.Basedir, dir, name); executable(p) {
				return p, true
			}
		}
	}
	for _, name := range names {
		if p, err := exec.LookPath(name); err == nil {
			return p, true
		}
	}
	return "", false
}

// noServer says what was looked for, what is there, where it looked, and what to do.
func noServer(spec string, found []Server, looked []string, errs []error) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: looked in %s", spec, strings.Join(looked, ", "))
	if len(found) > 0 {
		names := make([]string, len(found))
		for i, s := range found {
			names[i] = s.Name
		}
		fmt.Fprintf(&b, "; found only %s", strings.Join(names, ", "))
	}
	for _, err := range errs {
		if err != nil {
			fmt.Fprintf(&b, "; %v", err)
		}
	}
	b.WriteString("; run script/setup, or install one (Debian: mariadb-server; Ubuntu: mysql-server; RHEL: mysql-server), or give its path, or set RISSO_SERVERS")
	return fmt.Errorf("%w: %s", ErrNoServer, b.String())
}

func unique(in []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, s := range in {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}
