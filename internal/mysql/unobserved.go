package mysql

import "context"

// unobserved asks performance_schema to leave out a session. SHOW CREATE TABLE is another class of statements for each table, and a look at many
// would fill the server's table of classes.
const unobserved = "UPDATE /* risso: leave this session out */ performance_schema.threads SET INSTRUMENTED = 'NO' WHERE PROCESSLIST_ID = CONNECTION_ID()"

// Unobserved lets performance_schema leave out what this session does from then on. It needs UPDATE on performance_schema.threads; without that
// all stays as it is.
func (s *Stream) Unobserved(ctx context.Context, server Server) {
	if server.PerformanceSchema {
		_ = s.Exec(ctx, unobserved) // a session that is lost says so at its next statement
	}
}

// Unobserved is that of a Conn.
func (c *Conn) Unobserved(ctx context.Context) {
	if c.Server.PerformanceSchema {
		_ = c.Exec(ctx, unobserved)
	}
}
