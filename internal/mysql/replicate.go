package mysql

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql/errno"
	"github.com/rissodb/risso/internal/mysql/wire"
)

// Log is one of a server's binary logs.
type Log struct {
	Name      string
	Size      int64 // bytes of the log, without what an encrypted file has in front of it
	Encrypted bool  // said by MySQL only
}

// encryptedHead is the length of the header of an encrypted log in MySQL's file: Rpl_encryption_header::HEADER_SIZE,
// sql/rpl_log_encryption.h. The size in SHOW BINARY LOGS counts it.
const encryptedHead = 512

// Logs lists the binary logs of a server, the oldest first. There are none when log_bin is off: the error says so.
func Logs(ctx context.Context, c *Conn) ([]Log, error) {
	var rows []map[string]string
	err := c.UnlessLogHeld(ctx, func() (err error) {
		rows, err = c.Maps(ctx, "SHOW /* risso: which binary logs are there? */ BINARY LOGS")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the binary logs: %w", err)
	}
	list := make([]Log, 0, len(rows))
	for _, r := range rows {
		size, _ := strconv.ParseInt(r["File_size"], 10, 64)
		l := Log{Name: r["Log_name"], Size: size, Encrypted: strings.EqualFold(r["Encrypted"], "yes")}
		if l.Encrypted {
			l.Size = max(0, l.Size-encryptedHead)
		}
		list = append(list, l)
	}
	return list, nil
}

// LogBytes is how many bytes of a server's binary logs lie between two places; 0 if the second is not behind the first, -1 if one of them is in a
// log that is not there any more.
func LogBytes(logs []Log, fromLog string, from int64, toLog string, to int64) int64 {
	if fromLog == toLog {
		return max(0, to-from)
	}
	first := slices.IndexFunc(logs, func(l Log) bool { return l.Name == fromLog })
	last := slices.IndexFunc(logs, func(l Log) bool { return l.Name == toLog })
	switch {
	case first < 0 || last < 0 || from < 0 || to < 0:
		return -1
	case first > last:
		return 0
	}
	n := max(0, logs[first].Size-from) + to
	for _, l := range logs[first+1 : last] {
		n += l.Size
	}
	return n
}

// ExecutedGTIDs is the set of transactions that a server has: gtid_executed of MySQL, gtid_current_pos of MariaDB (what it
// has written itself and what it has applied as a replica).
func ExecutedGTIDs(ctx context.Context, c *Conn) (GTIDSet, error) {
	statement := "SELECT /* risso: which transactions? */ @@GLOBAL.gtid_executed AS g"
	if c.Server.MariaDB() {
		statement = "SELECT /* risso: which transactions? */ @@GLOBAL.gtid_current_pos AS g"
	}
	rows, err := c.Maps(ctx, statement)
	if err != nil {
		return GTIDSet{}, fmt.Errorf("ask for the executed GTIDs: %w", err)
	}
	if len(rows) == 0 {
		return GTIDSet{}, nil
	}
	return ParseGTIDSet(rows[0]["g"])
}

// LoggedGTIDs is what a server's own binary log holds by GTID, those with a new binary log before it included: gtid_executed
// of MySQL, gtid_binlog_pos of MariaDB.
func LoggedGTIDs(ctx context.Context, c *Conn) (GTIDSet, error) {
	if !c.Server.MariaDB() {
		return ExecutedGTIDs(ctx, c)
	}
	rows, err := c.Maps(ctx, "SELECT /* risso: which transactions? */ @@GLOBAL.gtid_binlog_pos AS g")
	if err != nil || len(rows) == 0 {
		return GTIDSet{}, err
	}
	return ParseGTIDSet(rows[0]["g"])
}

// DumpOptions say what a server is to send of its binary logs.
type DumpOptions struct {
	Identity  string // of the intended server, as in fleet.Seat; "": any. There may be several behind one address, and a failover moves it.
	File      string
	Pos       int64         // at least 4
	ServerID  uint32        // of the replica that we claim to be; 0: one is drawn. No two replicas may have the same.
	Wait      bool          // at the end wait for more; else the server ends the stream
	SemiSync  bool          // ask the server to wait for our acknowledgements
	Heartbeat time.Duration // how often the server says that it lives while nothing is written
}

// Dump is a stream of binary log events from a server, as a replica gets it.
type Dump struct {
	*wire.Events
	conn *wire.Conn
	stop func() bool
}

// dumpBuffer is how many bytes of binary logs are read at a time.
const dumpBuffer = 1 << 20

// Dump asks a server for its binary logs from a position on. The account needs REPLICATION SLAVE. When ctx ends the stream
// breaks. Errors are of type *Error.
func (t Target) Dump(ctx context.Context, o DumpOptions) (*Dump, error) {
	c, err := Connect(ctx, t, nil) // what server it is, and whether it can acknowledge
	if err != nil {
		return nil, err
	}
	server := c.Server
	o.SemiSync = o.SemiSync && semiSyncSource(ctx, c)
	c.Close()
	cfg := t.cfg.Clone()
	if err := cfg.Apply(driver.EnableCompression(false)); err != nil { // acknowledgements of compressed events are not tried
		return nil, err
	}
	conn, err := Target{cfg: cfg}.ConnectWire(ctx, dumpBuffer)
	if err != nil {
		return nil, err
	}
	d := &Dump{conn: conn}
	d.stop = context.AfterFunc(ctx, func() { conn.Close() })
	if err := d.begin(server, o); err != nil {
		d.Close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if ErrorNumber(err) == errno.AccessDenied { // the account is in already: the number of a failed login is also that of who may not register as a replica
			return nil, &Error{Target: t.String(), Class: ClassPrivilege, Err: fleet.WithRemedy(err, server.Grant("REPLICATION SLAVE"))}
		}
		return nil, classify(t, err)
	}
	return d, nil
}

// semiSyncSource reports whether the server's side of semi-synchronous replication is on; its plugin has three names.
func semiSyncSource(ctx context.Context, c *Conn) bool {
	rows, _ := c.Maps(ctx, "SHOW /* risso: semi-sync? */ GLOBAL VARIABLES WHERE Variable_name IN ('rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled')")
	for _, r := range rows {
		if r["Value"] == "ON" {
			return true
		}
	}
	return false
}

// ErrOtherServer says that a server other than the intended one answers at the address.
var ErrOtherServer = errors.New("another server answers at this address")

// same makes sure that it is the intended server: asked on this very connection.
func (d *Dump) same(server Server, want string) error {
	var got string
	_, err := d.conn.Query(server.ownID(), nil, d.conn.Each(func(row [][]byte) error {
		got = string(row[0])
		return nil
	}))
	if err == nil && got != want {
		err = fmt.Errorf("%w: %s, not %s", ErrOtherServer, got, want)
	}
	return err
}

// begin sets up the session, registers as a replica and asks for the logs.
func (d *Dump) begin(server Server, o DumpOptions) error {
	// With checksums as in the file. @master_… are the names of all servers until MySQL 8.0.26, which knows both.
	sets := []string{
		"SET /* risso: mirror the binary log */ @master_binlog_checksum = @@GLOBAL.binlog_checksum, @source_binlog_checksum = @@GLOBAL.binlog_checksum",
	}
	if o.Heartbeat > 0 {
		sets = append(sets, fmt.Sprintf("SET @master_heartbeat_period = %d, @source_heartbeat_period = %d", o.Heartbeat.Nanoseconds(), o.Heartbeat.Nanoseconds()))
	}
	if server.MariaDB() {
		sets = append(sets, "SET @mariadb_slave_capability = 4") // we know all events of MariaDB 10.0 and later
	} else {
		// A server ends the stream of a replica that comes back with the same UUID.
		uuid := newUUID()
		sets = append(sets, "SET @slave_uuid = '"+uuid+"', @replica_uuid = '"+uuid+"'")
	}
	if o.SemiSync {
		sets = append(sets, "SET @rpl_semi_sync_slave = 1, @rpl_semi_sync_replica = 1")
	}
	if o.Identity != "" {
		if err := d.same(server, o.Identity); err != nil {
			return err
		}
	}
	for _, s := range sets {
		if _, err := d.conn.Query(s, nil, nil); err != nil {
			return err
		}
	}
	id := o.ServerID
	if id == 0 {
		var b [4]byte
		rand.Read(b[:])
		id = binary.LittleEndian.Uint32(b[:])>>1 | 1<<30 // far from numbers that people give
	}
	var err error
	d.Events, err = d.conn.Events(wire.EventsFrom{
		File: o.File, Pos: o.Pos, ServerID: id, Wait: o.Wait, Annotate: server.MariaDB(), SemiSync: o.SemiSync,
	})
	return err
}

// LogRefused says that a server could not read its log from where it was asked to: ER_MASTER_FATAL_ERROR_READING_BINLOG.
func LogRefused(err error) bool {
	var e *driver.MySQLError
	return errors.As(err, &e) && e.Number == errno.BinlogUnreadable
}

// Close ends the stream.
func (d *Dump) Close() {
	d.stop()
	d.conn.Close()
}

func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
