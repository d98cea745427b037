package blob

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/rissodb/risso/internal/digits"
)

// sftpConn is a connection to a host, and SFTP on it.
type sftpConn struct {
	ssh    *ssh.Client
	client *sftp.Client
	done   chan struct{}
	once   sync.Once
}

// close ends the connection immediately; what runs on it fails.
func (c *sftpConn) close() {
	c.once.Do(func() {
		close(c.done)
		c.ssh.Close()
	})
}

// dialSFTP connects, checks the host's key, proves who we are, and starts SFTP.
func dialSFTP(ctx context.Context, c sftpConfig, idle time.Duration) (*sftpConn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, min(idle, 30*time.Second), fmt.Errorf("%s does not answer", c.addr))
	defer cancel()
	check, algorithms, err := hostKeys(c)
	if err != nil {
		return nil, err
	}
	signers, release, err := userKeys(ctx, c)
	if err != nil {
		return nil, err
	}
	defer release()
	raw, err := dial(idle)(ctx, "tcp", c.addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	conn, channels, requests, err := ssh.NewClientConn(raw, c.addr, &ssh.ClientConfig{
		User: c.user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signers...)}, HostKeyCallback: check, HostKeyAlgorithms: algorithms,
	})
	if err != nil {
		stop()
		raw.Close()
		return nil, explainHandshake(ctx, c, len(signers), err)
	}
	client := ssh.NewClient(conn, channels, requests)
	sf, err := sftp.NewClient(client, sftp.UseConcurrentWrites(true), sftp.UseConcurrentReads(true))
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("%s: start SFTP: %w", c.addr, err)
	}
	s := &sftpConn{ssh: client, client: sf, done: make(chan struct{})}
	go s.keepAlive(idle / 4)
	return s, nil
}

// keepAlive asks the host for a sign of life; without one the connection's own time limit ends it. It ends with the connection.
func (c *sftpConn) keepAlive(every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-t.C:
			if _, _, err := c.ssh.SendRequest("keepalive@openssh.com", true, nil); err != nil {
				c.close()
				return
			}
		}
	}
}

func explainHandshake(ctx context.Context, c sftpConfig, keys int, err error) error {
	var unknown *hostKeyError
	switch {
	case errors.As(err, &unknown):
		return unknown
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case strings.Contains(err.Error(), "unable to authenticate"): // golang.org/x/crypto/ssh has no type for it
		return fmt.Errorf("%s accepts no key for user %s (%s tried): does ssh -p %s %s@%s work?", c.addr, c.user, digits.Counted(keys, "key"), portOf(c.addr), c.user, hostOf(c.addr))
	}
	return err
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// hostKeyError says that a host is not the one that is known. It never passes by itself.
type hostKeyError struct{ what string }

func (e *hostKeyError) Error() string { return e.what }

// hostKeys returns the check of the host's key, and the kinds of keys to ask for: those that are known, because a host with several
// would show one that is not.
func hostKeys(c sftpConfig) (ssh.HostKeyCallback, []string, error) {
	files := []string{c.knownHosts}
	if c.knownHosts == "" {
		files = []string{homeFile(".ssh", "known_hosts"), "/etc/ssh/ssh_known_hosts"}
		files = slices.DeleteFunc(files, func(f string) bool {
			_, err := os.Stat(f)
			return f == "" || errors.Is(err, fs.ErrNotExist)
		})
	}
	known, err := knownhosts.New(files...)
	if err != nil {
		return nil, nil, fmt.Errorf("known hosts: %w", err)
	}
	where := "~/.ssh/known_hosts"
	if c.knownHosts != "" {
		where = c.knownHosts
	}
	check := func(host string, remote net.Addr, key ssh.PublicKey) error {
		err := known(host, remote, key)
		var e *knownhosts.KeyError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &e) && len(e.Want) == 0:
			return &hostKeyError{fmt.Sprintf("the key of %s is not known (%s %s): compare it with the host's, then add it to %s: ssh-keyscan -p %s %s",
				c.addr, key.Type(), ssh.FingerprintSHA256(key), where, portOf(c.addr), hostOf(c.addr))}
		case errors.As(err, &e):
			return &hostKeyError{fmt.Sprintf("the key of %s (%s %s) differs from the one in %s (line %d): somebody may be intercepting the connection, or the host was reinstalled",
				c.addr, key.Type(), ssh.FingerprintSHA256(key), e.Want[0].Filename, e.Want[0].Line)}
		}
		return &hostKeyError{fmt.Sprintf("the key of %s: %v", c.addr, err)}
	}
	return check, knownAlgorithms(known, c.addr), nil
}

// knownAlgorithms asks the list of known hosts, with a key that cannot be in it, which keys it has; nil: none, or it does
// not say.
func knownAlgorithms(known ssh.HostKeyCallback, addr string) []string {
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil
	}
	probe, err := ssh.NewPublicKey(public)
	if err != nil {
		return nil
	}
	var e *knownhosts.KeyError
	if !errors.As(known(addr, &net.TCPAddr{IP: net.IPv4zero}, probe), &e) {
		return nil
	}
	var list []string
	for _, k := range e.Want {
		kinds := []string{k.Key.Type()}
		if k.Key.Type() == ssh.KeyAlgoRSA {
			kinds = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
		}
		for _, kind := range kinds {
			if !slices.Contains(list, kind) {
				list = append(list, kind)
			}
		}
	}
	return list
}

// userKeys returns the keys to try: the one that is named, or the agent's and those of ~/.ssh. release closes the connection to the
// agent, which signs until then.
func userKeys(ctx context.Context, c sftpConfig) (keys []ssh.Signer, release func(), err error) {
	release = func() {}
	var agents []ssh.Signer
	if sock := os.Getenv("SSH_AUTH_SOCK"); sock != "" {
		var d net.Dialer
		if conn, err := d.DialContext(ctx, "unix", sock); err == nil {
			release = func() { conn.Close() }
			agents, _ = agent.NewClient(conn).Signers() // an agent that does not answer has no keys
		}
	}
	if c.keyFile != "" {
		key, err := readKey(c.keyFile, agents)
		if err != nil {
			release()
			return nil, nil, err
		}
		return []ssh.Signer{key}, release, nil
	}
	keys = agents
	for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
		if file := homeFile(".ssh", name); file != "" {
			if key, err := readKey(file, nil); err == nil {
				keys = append(keys, key)
			}
		}
	}
	if len(keys) == 0 {
		release()
		return nil, nil, fmt.Errorf("%s: no key to log in with: start an SSH agent (ssh-add), or name a file: key-file=FILE", c.addr)
	}
	return keys, release, nil
}

// readKey reads a private key. One that is protected by a passphrase has to be with the agent.
func readKey(file string, agents []ssh.Signer) (ssh.Signer, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("key-file: %w", err)
	}
	key, err := ssh.ParsePrivateKey(pem)
	var locked *ssh.PassphraseMissingError
	if !errors.As(err, &locked) {
		if err != nil {
			return nil, fmt.Errorf("key-file %s: %w", file, err)
		}
		return key, nil
	}
	if locked.PublicKey != nil {
		for _, a := range agents {
			if bytes.Equal(a.PublicKey().Marshal(), locked.PublicKey.Marshal()) {
				return a, nil
			}
		}
	}
	return nil, fmt.Errorf("key-file %s: it has a passphrase; give it to your SSH agent: ssh-add %s", file, file)
}
