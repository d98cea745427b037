package mysql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/client"
	gowords "github.com/go-mysql-org/go-mysql/mysql"
	driver "github.com/go-sql-driver/mysql"
)

// login is a connection on which somebody else logged in.
type login struct {
	*handover
	raw    net.Conn          // the socket
	conn   net.Conn          // raw, or TLS over it
	params map[string]string // session variables that the DSN sets and that are not set yet
}

// login lets a library log in: the driver, or where there is TLS go-mysql, which gives its connection out of its hands.
func (t Target) login(ctx context.Context) (*login, error) {
	if !t.Encrypted() {
		return t.loginPlain(ctx, t.cfg.Clone())
	}
	l, err := t.loginTLS(ctx)
	if errors.Is(err, driver.ErrNoTLS) && t.cfg.AllowFallbackToPlaintext {
		cfg := t.cfg.Clone()
		cfg.TLS, cfg.TLSConfig = nil, ""
		return t.loginPlain(ctx, cfg)
	}
	return l, err
}

func (t Target) loginPlain(ctx context.Context, cfg *driver.Config) (*login, error) {
	var hand *handover
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		h, err := t.shake(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		hand = h
		return h, nil
	}
	conn, err := connectDriver(ctx, t, cfg)
	if err != nil {
		return nil, err
	}
	if len(hand.hello) < helloExtended+4 {
		conn.Close()
		return nil, errNoHello
	}
	// The driver's end: the server hears nothing of it, and the socket stays open.
	hand.detached.Store(true)
	hand.kept.Store(true)
	if err := conn.Close(); err != nil {
		hand.Conn.Close()
		return nil, err
	}
	return &login{handover: hand, raw: hand.Conn, conn: hand.Conn}, hand.SetDeadline(time.Time{})
}

func (t Target) loginTLS(ctx context.Context) (*login, error) {
	cfg := t.cfg
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout+cfg.ReadTimeout)
	defer cancel()
	var hand *handover
	stop := func() bool { return true }
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		h, err := t.shake(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		hand = h
		stop = context.AfterFunc(ctx, func() { h.Conn.Close() }) // the library asks no context after it has dialled
		return h, nil
	}
	c, err := gomysql.ConnectWithDialer(ctx, cfg.Net, cfg.Addr, cfg.User, cfg.Passwd, cfg.DBName, dial, func(c *gomysql.Conn) error {
		c.ReadTimeout, c.WriteTimeout = cfg.ReadTimeout, cfg.WriteTimeout
		c.SetTLSConfig(cfg.TLS.Clone())
		c.SetAttributes(map[string]string{"program_name": "risso"})
		c.SetCapability(gowords.CLIENT_LOCAL_FILES)
		if strings.Contains(cfg.FormatDSN(), "compress=true") {
			c.SetCapability(gowords.CLIENT_COMPRESS)
		}
		return nil
	})
	if ended := !stop(); ended {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fromGoMySQL(err)
	}
	if len(hand.hello) < helloExtended+4 {
		c.Close()
		return nil, errNoHello
	}
	l := &login{handover: hand, raw: hand.Conn, conn: c.Conn.Conn, params: cfg.Params}
	return l, l.conn.SetDeadline(time.Time{})
}

// shake dials and remembers what the client promises.
func (t Target) shake(ctx context.Context, network, addr string) (*handover, error) {
	d := net.Dialer{Timeout: t.cfg.Timeout, KeepAlive: 15 * time.Second}
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &handover{Conn: c, wants: clientBulk}, nil
}

// fromGoMySQL turns that library's errors into those that the rest of the house knows.
func fromGoMySQL(err error) error {
	var refused *gowords.MyError
	if errors.As(err, &refused) {
		e := &driver.MySQLError{Number: refused.Code, Message: refused.Message}
		copy(e.SQLState[:], refused.State)
		return e
	}
	if strings.Contains(err.Error(), "does not support TLS") { // go-mysql has no type for it
		return driver.ErrNoTLS
	}
	return fmt.Errorf("log in: %w", err)
}
