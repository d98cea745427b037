package mysql

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// Defaults is what a client option file says about logging in: the [client] group,
// then [client-server], [mysql], [mariadb-client] and [risso], the later winning.
type Defaults struct {
	User, Password, Host, Port, Socket string

	options tlsOptions
	tls     *tls.Config // made of options; nil: they ask for nothing
}

// UserDefaultsFile is ~/.my.cnf, or "" if there is no home.
func UserDefaultsFile() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".my.cnf")
}

// ReadDefaults reads an option file as the mysql clients do. A missing file means empty
// Defaults and no error. (https://dev.mysql.com/doc/refman/9.4/en/option-files.html)
func ReadDefaults(path string) (Defaults, error) {
	var d Defaults
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) || path == "" {
		return d, nil
	}
	if err != nil {
		return d, fmt.Errorf("read option file: %w", err)
	}
	defer f.Close()
	group, at := "", 0
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		line := strings.TrimSpace(sc.Text())
		at++
		if line == "" || line[0] == '#' || line[0] == ';' || line[0] == '!' {
			continue
		}
		if line[0] == '[' {
			group = strings.TrimSuffix(strings.TrimPrefix(line, "["), "]")
			continue
		}
		if isClientGroup(group) {
			d.set(line)
			if d.Port != "" && !isPort(d.Port) {
				return d, fmt.Errorf("option file %s, line %d: port=%s is no port number", path, at, d.Port)
			}
		}
	}
	if err := sc.Err(); err != nil {
		return d, fmt.Errorf("read option file %s: %w", path, err)
	}
	if d.tls, err = d.options.config(); err != nil {
		return d, fmt.Errorf("option file %s: %w", path, err)
	}
	return d, nil
}

func isClientGroup(g string) bool {
	switch g {
	case "client", "client-server", "client-mariadb", "mysql", "mariadb-client", "risso":
		return true
	}
	return false
}

func (d *Defaults) set(line string) {
	k, v, _ := strings.Cut(line, "=")
	k = strings.ReplaceAll(strings.TrimSpace(k), "_", "-")
	v = optionValue(strings.TrimSpace(v))
	switch k {
	case "user":
		d.User = v
	case "password":
		d.Password = v
	case "host":
		d.Host = v
	case "port":
		if d.Port = v; v == "0" { // the usual one
			d.Port = ""
		}
	case "socket":
		d.Socket = v
	default:
		d.options.set(k, v)
	}
}

// optionValue takes quotes off a value, or a comment after an unquoted one.
func optionValue(v string) string {
	if len(v) >= 2 && (v[0] == '"' || v[0] == '\'') && v[len(v)-1] == v[0] {
		v = v[1 : len(v)-1]
	} else if i := strings.Index(v, " #"); i >= 0 {
		v = strings.TrimSpace(v[:i])
	}
	return strings.NewReplacer(`\\`, `\`, `\s`, " ", `\t`, "\t", `\n`, "\n").Replace(v)
}

// Target is the server that the option file names; it reports false if it names none.
func (d Defaults) Target() (Target, bool) {
	var t Target
	var err error
	switch {
	case d.Socket != "":
		t, err = bareTarget(d.Socket)
	case d.Host != "":
		port := d.Port
		if port == "" {
			port = "3306"
		}
		t, err = bareTarget(d.Host + ":" + port)
	default:
		return Target{}, false
	}
	if err != nil {
		return Target{}, false
	}
	return t.WithFallback(d), true
}

// OptionFile is the text of an option file with which a tool logs in as the target, encrypted as the target is. It holds the
// password: it must be readable by nobody else. (https://dev.mysql.com/doc/refman/9.4/en/option-files.html)
func (t Target) OptionFile(tool CopyTool) (string, error) {
	if t.cfg == nil {
		return "", fmt.Errorf("%w: no address", ErrDSN)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[%s]\n", tool)
	set := func(name, value string) { fmt.Fprintf(&b, "%s=\"%s\"\n", name, optionEscape.Replace(value)) }
	set("user", t.cfg.User)
	if t.cfg.Passwd != "" {
		set("password", t.cfg.Passwd)
	}
	if t.cfg.Net == "unix" {
		set("socket", t.cfg.Addr)
	} else {
		host, port, err := net.SplitHostPort(t.cfg.Addr)
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrDSN, errors.New("the address has no port"))
		}
		if host == "localhost" && t.encryption() != "VERIFY_IDENTITY" { // else that name has to be in the certificate
			host = "127.0.0.1" // to these programs that name means the socket, unless they obey protocol
		}
		set("host", host)
		set("port", port)
		set("protocol", "tcp")
	}
	for _, l := range t.tlsLines(tool) {
		if l[1] == "" {
			b.WriteString(l[0] + "\n")
		} else {
			set(l[0], l[1])
		}
	}
	return b.String(), nil
}

// optionEscape writes what would end a value or begin an escape sequence.
var optionEscape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`)
