package mysql

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// This file has what CLONE needs that replaces a server's data by another one's. Source: MySQL manual, "Cloning Remote Data".

// CannotClone says why a server cannot get the data of another by CLONE, as their versions tell; "" if they say nothing against it.
func (s Server) CannotClone(donor Server) string {
	const since, acrossMinors = 80017, 80037
	switch {
	case s.MariaDB() || donor.MariaDB():
		return "MariaDB has no CLONE"
	case !s.atLeast(since) || !donor.atLeast(since):
		return "CLONE is there since MySQL 8.0.17"
	case !s.Number.SameSeries(donor.Number), s.Number != donor.Number && (s.Number < acrossMinors || donor.Number < acrossMinors):
		return "CLONE wants the same version: " + s.Version + " from " + donor.Version
	}
	return ""
}

// CloneDonorGrants are the privileges that the donor's account needs, and CloneGrants those of the account that runs the statement.
func (s Server) CloneDonorGrants() string { return s.Grant("BACKUP_ADMIN") }

// CloneGrants is the statement that gives an account what it needs to replace the server's data.
func (s Server) CloneGrants() string {
	return s.Grant("CLONE_ADMIN", "SYSTEM_VARIABLES_ADMIN", "INSERT", "SELECT")
}

// CloneFrom is the statement that replaces a server's data by those of a donor, which it reaches at host and port and logs in to with this target's account. It has the
// password in it: it belongs into no message. The server does not write that into its logs.
func (t Target) CloneFrom(host string, port int) string {
	return fmt.Sprintf("CLONE INSTANCE FROM %s@%s:%d IDENTIFIED BY %s", Literal(t.cfg.User), Literal(host), port, Literal(t.cfg.Passwd))
}

// ChannelSettings are what a channel is set to besides where its source is and where it stands: the options of CHANGE REPLICATION SOURCE TO.
type ChannelSettings struct {
	Options  []string `json:"options"` // without the password
	User     string   `json:"user"`
	password string
}

// HasPassword reports whether the password is known.
func (c ChannelSettings) HasPassword() bool { return c.password != "" }

// WithPassword is the settings with a password.
func (c ChannelSettings) WithPassword(p string) ChannelSettings {
	c.password = p
	return c
}

// Set is the statement that gives a channel these settings, at a place that leads nowhere yet. It has the password in it.
func (s Server) Set(channel string, c ChannelSettings, p Pointing) string {
	begin, end, word := s.changeSource(channel)
	list := append([]string{}, c.Options...)
	if c.password != "" {
		list = append(list, word+"_PASSWORD = "+Literal(c.password))
	}
	list = append(list, word+"_HOST = "+Literal(p.Host), word+"_PORT = "+strconv.Itoa(p.Port))
	if p.Log != "" {
		list = append(list, word+"_LOG_FILE = "+Literal(p.Log), word+"_LOG_POS = "+strconv.FormatInt(p.Pos, 10))
	}
	return begin + strings.Join(list, ", ") + end
}

// ForgetChannels is the statement that removes all channels.
func (s Server) ForgetChannels() string { return s.replica("RESET", "") + " ALL" }

// ForgetChannel is the statement that removes one channel of replication, which has to be stopped. Sources: MySQL manual, "RESET REPLICA Statement"; MariaDB
// documentation, "RESET REPLICA".
func (s Server) ForgetChannel(channel string) string {
	if s.MariaDB() {
		return s.replica("RESET", channel) + " ALL"
	}
	return s.ForgetChannels() + " FOR CHANNEL " + Literal(channel)
}

// channelOption is how a column of performance_schema is written as an option: a text, a number, or YES and NO as 1 and 0.
type channelOption struct {
	column, option string
	kind           byte // t, n, y; w: a word without quotes
}

// connectionOptions are those of replication_connection_configuration; S stands for SOURCE or MASTER.
var connectionOptions = []channelOption{
	{"USER", "S_USER", 't'}, {"NETWORK_INTERFACE", "S_BIND", 't'}, {"AUTO_POSITION", "S_AUTO_POSITION", 'n'}, {"SSL_ALLOWED", "S_SSL", 'y'}, {"SSL_CA_FILE", "S_SSL_CA", 't'},
	{"SSL_CA_PATH", "S_SSL_CAPATH", 't'}, {"SSL_CERTIFICATE", "S_SSL_CERT", 't'}, {"SSL_CIPHER", "S_SSL_CIPHER", 't'}, {"SSL_KEY", "S_SSL_KEY", 't'},
	{"SSL_VERIFY_SERVER_CERTIFICATE", "S_SSL_VERIFY_SERVER_CERT", 'y'}, {"SSL_CRL_FILE", "S_SSL_CRL", 't'}, {"SSL_CRL_PATH", "S_SSL_CRLPATH", 't'},
	{"CONNECTION_RETRY_INTERVAL", "S_CONNECT_RETRY", 'n'}, {"CONNECTION_RETRY_COUNT", "S_RETRY_COUNT", 'n'}, {"HEARTBEAT_INTERVAL", "S_HEARTBEAT_PERIOD", 'n'}, {"TLS_VERSION", "S_TLS_VERSION", 't'},
	{"PUBLIC_KEY_PATH", "S_PUBLIC_KEY_PATH", 't'}, {"GET_PUBLIC_KEY", "GET_S_PUBLIC_KEY", 'y'}, {"NETWORK_NAMESPACE", "NETWORK_NAMESPACE", 't'}, {"COMPRESSION_ALGORITHM", "S_COMPRESSION_ALGORITHMS", 't'},
	{"ZSTD_COMPRESSION_LEVEL", "S_ZSTD_COMPRESSION_LEVEL", 'n'}, {"TLS_CIPHERSUITES", "S_TLS_CIPHERSUITES", 't'}, {"SOURCE_CONNECTION_AUTO_FAILOVER", "SOURCE_CONNECTION_AUTO_FAILOVER", 'n'}, {"GTID_ONLY", "GTID_ONLY", 'n'},
}

// applierOptions are those of replication_applier_configuration.
var applierOptions = []channelOption{
	{"DESIRED_DELAY", "S_DELAY", 'n'}, {"REQUIRE_ROW_FORMAT", "REQUIRE_ROW_FORMAT", 'y'}, {"REQUIRE_TABLE_PRIMARY_KEY_CHECK", "REQUIRE_TABLE_PRIMARY_KEY_CHECK", 'w'},
}

// ReadChannelSettings reads what a channel of MySQL is set to, with its password, which the server keeps readable for those who may read its own tables.
func ReadChannelSettings(ctx context.Context, c *Conn, channel string) (out ChannelSettings, err error) {
	for _, q := range []struct {
		table   string
		options []channelOption
	}{{"replication_connection_configuration", connectionOptions}, {"replication_applier_configuration", applierOptions}} {
		rows, err := c.Maps(ctx, "SELECT /* risso: how is the channel set? */ * FROM performance_schema."+q.table+" WHERE CHANNEL_NAME = "+Literal(channel))
		if err != nil || len(rows) != 1 {
			return out, fmt.Errorf("read how the channel is set (%d rows): %w", len(rows), err)
		}
		if by := rows[0]["PRIVILEGE_CHECKS_USER"]; by != "" {
			out.Options = append(out.Options, "PRIVILEGE_CHECKS_USER = "+by)
		}
		out.take(c.Server, rows[0], q.options)
	}
	rows, err := c.Maps(ctx, "SELECT /* risso: by which password does it log in? */ User_password AS p, Ignored_server_ids AS i FROM mysql.slave_master_info WHERE Channel_name = "+Literal(channel))
	if err != nil || len(rows) != 1 {
		return out, fmt.Errorf("read the password of the channel: %w", err)
	}
	out.password = rows[0]["p"]
	if ids := strings.Fields(rows[0]["i"]); len(ids) > 1 {
		out.Options = append(out.Options, "IGNORE_SERVER_IDS = ("+strings.Join(ids[1:], ", ")+")")
	}
	return out, nil
}

// take adds options as a row has them.
func (c *ChannelSettings) take(s Server, row map[string]string, options []channelOption) {
	for _, o := range options {
		v, ok := row[o.column]
		if !ok || v == "" || v == "NULL" {
			continue
		}
		switch o.kind {
		case 't':
			v = Literal(v)
		case 'y':
			v = map[bool]string{true: "1", false: "0"}[v == "YES" || v == "1"]
		}
		if o.column == "USER" {
			c.User = row[o.column]
		}
		name := o.option
		if strings.HasPrefix(name, "S_") || strings.HasPrefix(name, "GET_S_") {
			name = strings.Replace(name, "S_", s.sourceWord()+"_", 1)
		}
		c.Options = append(c.Options, name+" = "+v)
	}
}

// ClonedTo is the position that a server has which was cloned.
type ClonedTo struct {
	State string // Completed, or why it is not
	GTIDs string
	Log   string // of the donor
	Pos   int64
}

// ReadCloned reads how the last CLONE of a server ended.
func ReadCloned(ctx context.Context, c *Conn) (out ClonedTo, err error) {
	rows, err := c.Maps(ctx, "SELECT /* risso: how did CLONE end? */ STATE AS s, ERROR_MESSAGE AS e, GTID_EXECUTED AS g, BINLOG_FILE AS f, BINLOG_POSITION AS p FROM performance_schema.clone_status")
	if err != nil {
		return out, fmt.Errorf("ask how CLONE ended: %w", err)
	}
	if len(rows) == 0 {
		return ClonedTo{State: "not begun"}, nil
	}
	r := rows[0]
	out = ClonedTo{State: strings.TrimSpace(r["s"] + " " + r["e"]), GTIDs: strings.ReplaceAll(r["g"], "\n", ""), Log: r["f"]}
	out.Pos, _ = strconv.ParseInt(r["p"], 10, 64)
	return out, nil
}
