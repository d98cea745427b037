import { expect, it } from 'vitest';
import { isCommand } from './command';

it('tells commands from advice', () => {
  for (const c of ['KILL 812', 'START REPLICA', "SET GLOBAL innodb_monitor_enable = 'all'", "GRANT PROCESS ON *.* TO 'risso'@'%'", 'top -b -n 1 -o %CPU | head -20', 'du -xh --max-depth=2 /var', 'risso verify --from /backup', 'risso backup --dsn … --to /backup/db1',
    "risso serve --dsn 'user:password@tcp(host:3306)/'", 'iostat -x 1 5', "SELECT id, user, host, db, time, state, LEFT(info, 200) FROM information_schema.PROCESSLIST WHERE command NOT IN ('Sleep', 'Daemon') ORDER BY time DESC LIMIT 20"]) {
    expect(isCommand(c), c).toBe(true);
  }
  for (const c of ['is the server running and listening on 127.0.0.1:3306?', 'run risso as the owner of it', 'risso backup list shows those that are there', 'let the application reuse prepared statements: Connector/J cachePrepStmts=true',
    'SET GLOBAL max_prepared_stmt_count = 32764; and see whether the application closes its statements', 'it hangs, or a firewall drops packets', 'lower --threads, or raise max_connections', 'read again', 'mount it writable, or choose another folder']) {
    expect(isCommand(c), c).toBe(false);
  }
});
