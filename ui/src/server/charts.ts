/**
 * The charts of a server page, as data: what each shows, in which colours, where its numbers come
 * from. Keys follow mysqld_exporter's and node_exporter's names. A chart whose series an instance
 * does not have is left out, so all flavours and hosts share this list.
 */
import type { Expr } from '../chart/expr';
import type { Colour } from '../chart/palette';
import type { ChartDef, LineDef } from './define';

const STATUS = 'SHOW GLOBAL STATUS';
const METRICS = 'information_schema.INNODB_METRICS';

const gs = (name: string): string => `mysql_global_status_${name}`;
const command = (name: string): string => `mysql_global_status_commands_total{command="${name}"}`;
const handler = (name: string): string => `mysql_global_status_handlers_total{handler="${name}"}`;
const rows = (operation: string): string => `mysql_global_status_innodb_row_ops_total{operation="${operation}"}`;
const pages = (state: string): string => `mysql_global_status_buffer_pool_pages{state="${state}"}`;
// INNODB_METRICS names carry a subsystem that differs between versions.
const innodb = (name: string): RegExp => new RegExp(`^mysql_info_schema_innodb_metrics_[a-z_]+_${name}(_total)?$`);
const cpu = (mode: string): string => `risso_host_cpu_seconds_total{mode="${mode}"}`;
const psi = (what: string): string => `node_pressure_${what}_seconds_total`;
const line = (label: string, expr: LineDef['expr'], colour?: Colour): LineDef => ({ label, expr, colour });

const MODES = ['user', 'nice', 'system', 'irq', 'softirq', 'steal', 'iowait', 'idle'];
const ALL_CPU: Expr = { sum: MODES.map(cpu) };
const share = (...modes: string[]): Expr => ({ ratio: [{ sum: modes.map(cpu) }, ALL_CPU] });

const waits = (name: string): string => `risso_threads_waiting{class="${name}"}`;

const WORK: ChartDef[] = [
  {
    id: 'throughput', section: 'Work', title: 'Questions', unit: '/s', of: 'server',
    explain: 'Statements sent by clients, per second. The band spans the slowest and fastest second of each bucket: a stall is a gap at its bottom.',
    source: `${STATUS}: Questions`, lines: [line('questions', { first: [gs('questions'), gs('queries')] })],
  },
  {
    id: 'threads_running', section: 'Work', title: 'Threads running', unit: '', of: 'server',
    explain: 'Threads executing a statement now. If there are more than cores, some have to wait: see who waits for what.',
    source: `${STATUS}: Threads_running`, lines: [line('threads running', gs('threads_running'))],
  },
  {
    id: 'waits', always: true, section: 'Work', title: 'Who waits for what', unit: '', of: 'server', stacked: true,
    explain: 'Threads inside a statement, by what they wait for; running means nothing that the server shows. Colours are the same everywhere.',
    source: 'process list and thread states, sampled each second',
    lines: [
      line('running', { first: [waits('running'), waits('cpu')] }, 'blue'), line('io', waits('io'), 'teal'), line('commit', waits('commit'), 'violet'),
      line('row lock', waits('row_lock'), 'mauve'), line('metadata lock', waits('metadata_lock'), 'rose'),
      line('table lock', waits('table_lock'), 'brown'), line('network', waits('network'), 'sky'),
      line('semisync', waits('semisync'), 'green'), line('replication', waits('replication'), 'olive'),
      line('other', waits('other'), 'slate'),
    ],
  },
  {
    id: 'latency', section: 'Work', title: 'Statement latency', unit: 's', of: 'server',
    explain: 'How long statements take, if the server reports it: the average of each second, and quantiles over ten seconds at a time.',
    source: 'performance_schema statement histogram and digest totals',
    lines: [
      line('average', { ratio: ['risso_statement_seconds_total', 'risso_statements_total'] }, 'line'),
      { label: 'median', expr: 'risso_statement_latency_seconds{quantile="0.5"}', colour: 'blue', covers: 10 },
      { label: '95 %', expr: 'risso_statement_latency_seconds{quantile="0.95"}', colour: 'teal', covers: 10 },
      { label: '99 %', expr: 'risso_statement_latency_seconds{quantile="0.99"}', colour: 'violet', covers: 10 },
    ],
  },
  {
    id: 'commands', section: 'Work', title: 'Command mix', unit: '/s', of: 'server',
    explain: 'Statements by kind. Commits beside inserts and updates show how many changes share a transaction.',
    source: `${STATUS}: Com_*`,
    lines: [
      line('select', command('select'), 'blue'), line('insert', command('insert'), 'teal'),
      line('update', command('update'), 'violet'), line('delete', command('delete'), 'mauve'),
      line('commit', command('commit'), 'olive'), line('rollback', command('rollback'), 'brown'),
    ],
  },
  {
    id: 'connections', always: true, section: 'Work', title: 'Connections', unit: '', of: 'server',
    explain: 'Open connections, most of them usually idle. At the limit new ones are refused.', source: `${STATUS}: Threads_connected`,
    lines: [line('open', gs('threads_connected'), 'line')],
    limit: { label: 'max_connections', key: 'mysql_global_variables_max_connections' },
  },
];

const HOST: ChartDef[] = [
  {
    id: 'cpu', section: 'Host and disks', title: 'CPU', unit: '%', of: 'host', stacked: true, top: 1,
    explain: 'Where the processors spend their time, as a share of all of them. Idle and waiting for disks are headroom: work could run there.',
    source: '/proc/stat', sum: { label: 'head-room', expr: share('idle', 'iowait') },
    lines: [
      line('system', share('system', 'irq', 'softirq'), 'violet'), line('user', share('user', 'nice'), 'blue'),
      line('stolen', share('steal'), 'brown'), line('iowait', share('iowait'), 'pale'), line('idle', share('idle'), 'faint'),
    ],
  },
  {
    id: 'psi', section: 'Host and disks', title: 'Pressure', unit: '%', of: 'host',
    explain: 'Share of the time in which some (or all) tasks wait for a processor, the disk or memory. It shows a shortage before queues do.',
    source: '/proc/pressure',
    lines: [
      line('cpu, some', psi('cpu_waiting'), 'blue'), line('io, some', psi('io_waiting'), 'teal'),
      line('io, all', psi('io_stalled'), 'olive'), line('memory, some', psi('memory_waiting'), 'violet'),
      line('memory, all', psi('memory_stalled'), 'mauve'),
    ],
  },
  {
    id: 'memory_host', section: 'Host and disks', title: 'Memory of the host', unit: 'B', of: 'host',
    explain: 'Memory that programs can still get without swapping, and what is waiting to be written.', source: '/proc/meminfo',
    lines: [
      line('available', 'node_memory_MemAvailable_bytes', 'blue'), line('page cache', 'node_memory_Cached_bytes', 'teal'),
      line('dirty', 'node_memory_Dirty_bytes', 'violet'), line('swap free', 'node_memory_SwapFree_bytes', 'slate'),
    ],
    limit: { label: 'total', key: 'node_memory_MemTotal_bytes' },
  },
  {
    id: 'load', section: 'Host and disks', title: 'Tasks', unit: '', of: 'host',
    explain: 'Tasks that run or could run, and tasks stuck in the kernel, mostly on disks; load is their mean over a minute.',
    source: '/proc/stat, /proc/loadavg',
    lines: [line('runnable', 'node_procs_running', 'blue'), line('blocked', 'node_procs_blocked', 'violet'), line('load 1 min', 'node_load1', 'slate')],
  },
  {
    id: 'network_host', section: 'Host and disks', title: 'Network of the host', unit: 'B/s', of: 'host',
    explain: 'Bytes per second by interface, excluding loopback.', source: '/proc/net/dev',
    lines: [
      { each: 'node_network_receive_bytes_total', by: 'device', prefix: 'in', expr: (l) => `node_network_receive_bytes_total${l}` },
      { each: 'node_network_transmit_bytes_total', by: 'device', prefix: 'out', expr: (l) => `node_network_transmit_bytes_total${l}` },
    ],
  },
  {
    id: 'retransmits', section: 'Host and disks', title: 'TCP trouble', unit: '/s', of: 'host',
    explain: 'Segments retransmitted, and connections dropped because they were not accepted in time.', source: '/proc/net/snmp, /proc/net/netstat',
    lines: [
      line('retransmitted', 'node_netstat_Tcp_RetransSegs', 'blue'), line('listen drops', 'node_netstat_TcpExt_ListenDrops', 'violet'),
      line('timeouts', 'node_netstat_TcpExt_TCPTimeouts', 'slate'),
    ],
  },
  {
    id: 'swap', section: 'Host and disks', title: 'Swapping and faults', unit: '/s', of: 'host',
    explain: 'Pages moved to and from swap, and faults that had to read from disk. A database server should do neither.', source: '/proc/vmstat',
    lines: [line('swap in', 'node_vmstat_pswpin', 'blue'), line('swap out', 'node_vmstat_pswpout', 'violet'), line('major faults', 'node_vmstat_pgmajfault', 'slate')],
  },
];

const DISK: ChartDef[] = [
  {
    id: 'disk_latency', section: 'Host and disks', title: 'Disk latency: reads', unit: 's', of: 'host',
    explain: 'Mean time of a read: time spent reading divided by reads, per second and device. There is no line if nothing was read.',
    source: '/proc/diskstats',
    lines: [{
      each: 'node_disk_reads_completed_total', by: 'device',
      expr: (l) => ({ ratio: [`node_disk_read_time_seconds_total${l}`, `node_disk_reads_completed_total${l}`] }),
    }],
  },
  {
    id: 'disk_write_latency', section: 'Host and disks', title: 'Disk latency: writes', unit: 's', of: 'host',
    explain: 'Mean time of a write: time spent writing divided by writes, per second and device.', source: '/proc/diskstats',
    lines: [{
      each: 'node_disk_writes_completed_total', by: 'device',
      expr: (l) => ({ ratio: [`node_disk_write_time_seconds_total${l}`, `node_disk_writes_completed_total${l}`] }),
    }],
  },
  {
    id: 'flush_latency', section: 'Host and disks', title: 'Disk latency: flushes', unit: 's', of: 'host',
    explain: 'Mean time of a cache flush, the part of fsync that every durable commit waits for.', source: '/proc/diskstats (Linux 5.5 or newer)',
    lines: [{
      each: 'node_disk_flush_requests_total', by: 'device',
      expr: (l) => ({ ratio: [`node_disk_flush_requests_time_seconds_total${l}`, `node_disk_flush_requests_total${l}`] }),
    }],
  },
  {
    id: 'disk_throughput', section: 'Host and disks', title: 'Disk throughput', unit: 'B/s', of: 'host',
    explain: 'Bytes read and written per second, by device.', source: '/proc/diskstats',
    lines: [
      { each: 'node_disk_read_bytes_total', by: 'device', prefix: 'read', expr: (l) => `node_disk_read_bytes_total${l}` },
      { each: 'node_disk_written_bytes_total', by: 'device', prefix: 'write', expr: (l) => `node_disk_written_bytes_total${l}` },
    ],
  },
  {
    id: 'disk_iops', section: 'Host and disks', title: 'Disk operations', unit: '/s', of: 'host',
    explain: 'Reads and writes completed per second, by device.', source: '/proc/diskstats',
    lines: [
      { each: 'node_disk_reads_completed_total', by: 'device', prefix: 'read', expr: (l) => `node_disk_reads_completed_total${l}` },
      { each: 'node_disk_writes_completed_total', by: 'device', prefix: 'write', expr: (l) => `node_disk_writes_completed_total${l}` },
    ],
  },
  {
    id: 'disk_busy', section: 'Host and disks', title: 'Disk busy', unit: '%', of: 'host',
    explain: 'Share of the time with at least one request in progress. A device that serves many at once can be busy all the time and still have room.',
    source: '/proc/diskstats',
    lines: [{ each: 'node_disk_io_time_seconds_total', by: 'device', expr: (l) => `node_disk_io_time_seconds_total${l}` }],
  },
  {
    id: 'disk_space', section: 'Host and disks', title: 'Free space', unit: 'B', of: 'host',
    explain: 'What ordinary users can still write, by file system.', source: 'statfs(2)',
    lines: [{ each: 'node_filesystem_avail_bytes', by: 'mountpoint', expr: (l) => `node_filesystem_avail_bytes${l}` }],
  },
];

const INNODB: ChartDef[] = [
  {
    id: 'rows', section: 'InnoDB', title: 'Rows', unit: '/s', of: 'server',
    explain: 'Rows read and changed. Many rows read for each statement hint at a missing index.',
    source: `${STATUS}: Innodb_rows_*; on MariaDB Rows_read and Handler_*`,
    lines: [
      line('read', { first: [rows('read'), innodb('dml_reads'), gs('rows_read')] }, 'blue'),
      line('inserted', { first: [rows('inserted'), innodb('dml_inserts'), handler('write')] }, 'teal'),
      line('updated', { first: [rows('updated'), innodb('dml_updates'), handler('update')] }, 'violet'),
      line('deleted', { first: [rows('deleted'), innodb('dml_deletes'), handler('delete')] }, 'mauve'),
    ],
  },
  {
    id: 'buffer_pool', section: 'InnoDB', title: 'Buffer pool pages', unit: '', of: 'server', stacked: true,
    explain: 'What the buffer pool holds. Without free pages each read of a new page must evict another.',
    source: `${STATUS}: Innodb_buffer_pool_pages_*`,
    lines: [
      line('dirty', gs('buffer_pool_dirty_pages'), 'violet'),
      line('clean', { less: [pages('data'), gs('buffer_pool_dirty_pages')] }, 'blue'),
      line('other', pages('misc'), 'slate'), line('free', pages('free'), 'faint'),
    ],
  },
  {
    id: 'buffer_pool_reads', section: 'InnoDB', title: 'Pages read from disk', unit: '/s', of: 'server',
    explain: 'Logical reads that the buffer pool could not serve, and waits for a free page. The second should be zero.',
    source: `${STATUS}: Innodb_buffer_pool_reads, …_wait_free`,
    lines: [
      line('from disk', gs('innodb_buffer_pool_reads'), 'blue'), line('read ahead', gs('innodb_buffer_pool_read_ahead'), 'slate'),
      line('waits for a free page', gs('innodb_buffer_pool_wait_free'), 'violet'),
    ],
  },
  {
    id: 'hit_ratio', section: 'InnoDB', title: 'Reads that miss the buffer pool', unit: '%', of: 'server',
    explain: 'Reads from disk as a part of all page reads. Shown as misses, since 99 % and 99.9 % of hits differ by ten times in disk work.',
    source: `${STATUS}: Innodb_buffer_pool_reads / …_read_requests`,
    lines: [line('misses', { ratio: [gs('innodb_buffer_pool_reads'), gs('innodb_buffer_pool_read_requests')] })],
  },
  {
    id: 'redo', section: 'InnoDB', title: 'Redo written', unit: 'B/s', of: 'server',
    explain: 'Bytes written to the redo log per second: the rate at which data changes.', source: `${STATUS}: Innodb_os_log_written`,
    lines: [line('redo', { first: [gs('innodb_os_log_written'), gs('innodb_lsn_current')] })],
  },
  {
    id: 'checkpoint', section: 'InnoDB', title: 'Checkpoint age', unit: 'B', of: 'server',
    explain: 'Redo that a crash would have to replay. Near the size of the log InnoDB stops all writes to flush pages.',
    source: `${STATUS} (MariaDB) or ${METRICS}`,
    lines: [line('age', { first: [gs('innodb_checkpoint_age'), innodb('log_lsn_checkpoint_age'), innodb('lsn_checkpoint_age')] }, 'line')],
    limit: { label: 'limit', key: gs('innodb_checkpoint_max_age') },
  },
  {
    id: 'log_flush', section: 'InnoDB', title: 'Flushes to disk', unit: '/s', of: 'server',
    explain: 'fsync calls for the redo log and for data files, and writes that had to wait for room in the log buffer.',
    source: `${STATUS}: Innodb_os_log_fsyncs, Innodb_data_fsyncs, Innodb_log_waits`,
    lines: [
      line('redo log', gs('innodb_os_log_fsyncs'), 'blue'), line('data files', gs('innodb_data_fsyncs'), 'teal'),
      line('log waits', gs('innodb_log_waits'), 'violet'),
    ],
  },
  {
    id: 'history', section: 'InnoDB', title: 'History list', unit: '', of: 'server',
    explain: 'Old row versions that purge has not removed. It grows while an old transaction stays open, and slows down reads.',
    source: `${STATUS}: Innodb_history_list_length, or ${METRICS}`,
    lines: [line('length', { first: [gs('innodb_history_list_length'), innodb('trx_rseg_history_len')] })],
  },
  {
    id: 'row_locks', always: true, section: 'InnoDB', title: 'Row lock waits', unit: '/s', of: 'server',
    explain: 'Transactions that began to wait for a row, those waiting now, and deadlocks, each of which rolls one back.',
    source: `${STATUS}: Innodb_row_lock_*, Innodb_deadlocks`,
    lines: [
      line('waits', gs('innodb_row_lock_waits'), 'blue'), line('deadlocks', { first: [gs('innodb_deadlocks'), innodb('lock_deadlocks')] }, 'mauve'),
      line('time-outs', { first: [innodb('lock_timeouts')] }, 'slate'),
    ],
  },
  {
    id: 'row_lock_now', section: 'InnoDB', title: 'Waiting for a row now', unit: '', of: 'server',
    explain: 'Transactions waiting for a row lock now.', source: `${STATUS}: Innodb_row_lock_current_waits`,
    lines: [line('waiting', gs('innodb_row_lock_current_waits'))],
  },
  {
    id: 'row_lock_time', section: 'InnoDB', title: 'Time of a row lock wait', unit: 's', of: 'server',
    explain: 'Mean time of the waits that ended in each bucket.', source: `${STATUS}: Innodb_row_lock_time / …_waits`,
    lines: [line('mean', { times: [{ ratio: [gs('innodb_row_lock_time'), gs('innodb_row_lock_waits')] }, 0.001] })],
  },
  {
    id: 'innodb_io', section: 'InnoDB', title: 'InnoDB reads and writes', unit: 'B/s', of: 'server',
    explain: 'Bytes that InnoDB asked the disk for, before caches.', source: `${STATUS}: Innodb_data_read, Innodb_data_written`,
    lines: [line('read', gs('innodb_data_read'), 'blue'), line('written', gs('innodb_data_written'), 'violet')],
  },
  {
    id: 'flushing', section: 'InnoDB', title: 'Pages flushed', unit: '/s', of: 'server',
    explain: 'Dirty pages written back to the data files.', source: `${STATUS}: Innodb_buffer_pool_pages_flushed`,
    lines: [line('flushed', {
      first: ['mysql_global_status_buffer_pool_page_changes_total{operation="flushed"}', gs('innodb_pages_written')],
    })],
  },
];

const REPLICATION: ChartDef[] = [
  {
    id: 'replication', section: 'Replication', title: 'Behind its source', unit: 's', of: 'server',
    explain: 'The age of the event that the replica is applying. There is no line while a replication thread is stopped: the server does not know it then.',
    source: 'SHOW REPLICA STATUS: Seconds_Behind_Source',
    lines: [{ each: 'mysql_slave_status_seconds_behind_master', by: 'master_host', still: true, expr: (l) => `mysql_slave_status_seconds_behind_master${l}` }],
  },
  {
    id: 'replication_threads', section: 'Replication', title: 'Replication threads', unit: '', of: 'server',
    explain: '1 while the thread runs, 0 while it is stopped.', source: 'SHOW REPLICA STATUS: …_IO_Running, …_SQL_Running',
    lines: [
      { each: 'mysql_slave_status_slave_io_running', by: 'master_host', prefix: 'receive', still: true, expr: (l) => `mysql_slave_status_slave_io_running${l}` },
      { each: 'mysql_slave_status_slave_sql_running', by: 'master_host', prefix: 'apply', still: true, expr: (l) => `mysql_slave_status_slave_sql_running${l}` },
    ],
  },
  {
    id: 'relay', section: 'Replication', title: 'Relay log', unit: 'B', of: 'server',
    explain: 'Bytes received and not yet purged.', source: 'SHOW REPLICA STATUS: Relay_Log_Space',
    lines: [{ each: 'mysql_slave_status_relay_log_space', by: 'master_host', still: true, expr: (l) => `mysql_slave_status_relay_log_space${l}` }],
  },
  {
    id: 'binlog', section: 'Replication', title: 'Binary log written', unit: 'B/s', of: 'server',
    explain: 'Bytes written to the binary log, which every replica must fetch and apply.', source: `${STATUS}: Binlog_bytes_written`,
    lines: [line('binary log', { first: [gs('binlog_bytes_written')] })],
  },
  {
    id: 'binlog_commits', section: 'Replication', title: 'Group commit', unit: '/s', of: 'server',
    explain: 'Transactions committed to the binary log, and the groups they came in: the larger the groups, the fewer the flushes.',
    source: `${STATUS}: Binlog_commits, Binlog_group_commits`,
    lines: [line('commits', gs('binlog_commits'), 'blue'), line('groups', gs('binlog_group_commits'), 'violet')],
  },
  {
    id: 'binlog_cache', section: 'Replication', title: 'Binary log caches on disk', unit: '/s', of: 'server',
    explain: 'Transactions larger than binlog_cache_size, which used a temporary file.', source: `${STATUS}: Binlog_cache_disk_use`,
    lines: [line('transactions', gs('binlog_cache_disk_use'))],
  },
];

const GALERA: ChartDef[] = [
  {
    id: 'galera_flow', section: 'Galera', title: 'Paused by flow control', unit: '%', of: 'server', needs: gs('wsrep_local_recv_queue'),
    explain: 'Share of the time in which the slowest member held up all writes of the cluster.', source: `${STATUS}: wsrep_flow_control_paused_ns`,
    lines: [line('paused', { times: [gs('wsrep_flow_control_paused_ns'), 1e-9] })],
  },
  {
    id: 'galera_queue', section: 'Galera', title: 'Galera queues', unit: '', of: 'server', needs: gs('wsrep_local_recv_queue'),
    explain: 'Write sets waiting to be applied and to be sent.', source: `${STATUS}: wsrep_local_recv_queue, wsrep_local_send_queue`,
    lines: [line('to apply', gs('wsrep_local_recv_queue'), 'blue'), line('to send', gs('wsrep_local_send_queue'), 'violet')],
  },
  {
    id: 'galera_bytes', section: 'Galera', title: 'Write sets', unit: 'B/s', of: 'server', needs: gs('wsrep_local_recv_queue'),
    explain: 'Bytes replicated to and received from the cluster.', source: `${STATUS}: wsrep_replicated_bytes, wsrep_received_bytes`,
    lines: [line('sent', gs('wsrep_replicated_bytes'), 'blue'), line('received', gs('wsrep_received_bytes'), 'teal')],
  },
  {
    id: 'galera_conflicts', section: 'Galera', title: 'Galera conflicts', unit: '/s', of: 'server', needs: gs('wsrep_local_recv_queue'),
    explain: 'Transactions rolled back because of a conflict with another member, at commit or before.', source: `${STATUS}: wsrep_local_cert_failures, wsrep_local_bf_aborts`,
    lines: [line('failed at commit', gs('wsrep_local_cert_failures'), 'violet'), line('aborted', gs('wsrep_local_bf_aborts'), 'mauve')],
  },
  {
    id: 'galera_size', section: 'Galera', title: 'Cluster members', unit: '', of: 'server', needs: gs('wsrep_local_recv_queue'),
    explain: 'Members in the part of the cluster that this one sees.', source: `${STATUS}: wsrep_cluster_size`,
    lines: [line('members', gs('wsrep_cluster_size'))],
  },
];

const STATEMENTS: ChartDef[] = [
  {
    id: 'slow', section: 'Execution', title: 'Slow statements', unit: '/s', of: 'server',
    explain: 'Statements that took longer than long_query_time.', source: `${STATUS}: Slow_queries`,
    lines: [line('slow', gs('slow_queries'))],
  },
  {
    id: 'tmp_tables', section: 'Execution', title: 'Temporary tables', unit: '/s', of: 'server',
    explain: 'Internal temporary tables created for statements, and those on disk.', source: `${STATUS}: Created_tmp_*`,
    lines: [
      line('in memory', { less: [gs('created_tmp_tables'), gs('created_tmp_disk_tables')] }, 'blue'),
      line('on disk', gs('created_tmp_disk_tables'), 'violet'), line('files', gs('created_tmp_files'), 'slate'),
    ],
  },
  {
    id: 'sorts', section: 'Execution', title: 'Sorts', unit: '/s', of: 'server',
    explain: 'Sorts by how they read their rows, and merges because the sort buffer was too small.', source: `${STATUS}: Sort_*`,
    lines: [
      line('after a range', gs('sort_range'), 'blue'), line('after a scan', gs('sort_scan'), 'teal'),
      line('merge passes', gs('sort_merge_passes'), 'violet'),
    ],
  },
  {
    id: 'select_types', section: 'Execution', title: 'Reads without an index', unit: '/s', of: 'server',
    explain: 'Joins that read a whole table for each row, and selects that begin with a full scan.', source: `${STATUS}: Select_*`,
    lines: [
      line('full join', gs('select_full_join'), 'violet'), line('full scan', gs('select_scan'), 'blue'),
      line('range', gs('select_range'), 'slate'), line('range check', gs('select_range_check'), 'mauve'),
    ],
  },
  {
    id: 'handlers', section: 'Execution', title: 'Handler calls', unit: '/s', of: 'server',
    explain: 'Row requests to the storage engines. Mostly "next in data file" means scans.', source: `${STATUS}: Handler_*`,
    lines: [
      line('by key', handler('read_key'), 'blue'), line('next by key', handler('read_next'), 'teal'),
      line('next in data file', handler('read_rnd_next'), 'violet'), line('write', handler('write'), 'olive'),
      line('update', handler('update'), 'mauve'), line('delete', handler('delete'), 'brown'),
    ],
  },
  {
    id: 'table_locks', section: 'Execution', title: 'Table lock waits', unit: '/s', of: 'server',
    explain: 'Table locks that were not granted at once.', source: `${STATUS}: Table_locks_waited`,
    lines: [line('waited', gs('table_locks_waited'))],
  },
];

const CONNECTIONS: ChartDef[] = [
  {
    id: 'connects', section: 'Connections and memory', title: 'New connections', unit: '/s', of: 'server',
    explain: 'Connections opened per second, and threads that had to be created for them.', source: `${STATUS}: Connections, Threads_created`,
    lines: [line('connections', gs('connections'), 'blue'), line('new threads', gs('threads_created'), 'violet')],
  },
  {
    id: 'aborted', section: 'Connections and memory', title: 'Connections that failed', unit: '/s', of: 'server',
    explain: 'Clients that disconnected without closing the connection, refused attempts, and errors by kind.', source: `${STATUS}: Aborted_*, Connection_errors_*`,
    lines: [
      line('cut off', gs('aborted_clients'), 'blue'), line('refused', gs('aborted_connects'), 'violet'),
      { each: 'mysql_global_status_connection_errors_total', by: 'error', expr: (l) => `mysql_global_status_connection_errors_total${l}` },
    ],
  },
  {
    id: 'network', section: 'Connections and memory', title: 'Traffic with clients', unit: 'B/s', of: 'server',
    explain: 'Bytes to and from all clients and replicas.', source: `${STATUS}: Bytes_sent, Bytes_received`,
    lines: [line('sent', gs('bytes_sent'), 'blue'), line('received', gs('bytes_received'), 'teal')],
  },
  {
    id: 'tables', section: 'Connections and memory', title: 'Open tables', unit: '', of: 'server',
    explain: 'Tables held open by all connections.', source: `${STATUS}: Open_tables, Open_table_definitions`,
    lines: [line('tables', gs('open_tables'), 'blue'), line('definitions', gs('open_table_definitions'), 'slate')],
    limit: { label: 'table_open_cache', key: 'mysql_global_variables_table_open_cache' },
  },
  {
    id: 'table_cache', section: 'Connections and memory', title: 'Table cache misses', unit: '/s', of: 'server',
    explain: 'Tables that had to be opened, and those evicted from a full cache.', source: `${STATUS}: Opened_tables, Table_open_cache_overflows`,
    lines: [
      line('opened', gs('opened_tables'), 'blue'), line('pushed out', gs('table_open_cache_overflows'), 'violet'),
    ],
  },
  {
    id: 'memory', section: 'Connections and memory', title: 'Memory of the server', unit: 'B', of: 'server',
    explain: 'Memory of the server process, and what it reports for connections and caches.', source: '/proc/PID/status; SHOW GLOBAL STATUS: Memory_used',
    lines: [
      line('resident', { first: ['risso_process_resident_memory_bytes'] }, 'blue'),
      line('memory used', gs('memory_used'), 'violet'), line('swapped', { first: ['risso_process_swap_bytes'] }, 'brown'),
    ],
  },
  {
    id: 'process_cpu', section: 'Connections and memory', title: 'CPU of the server', unit: 'cores', of: 'server', stacked: true,
    explain: 'Processors that the server process keeps busy.', source: '/proc/PID/stat',
    lines: [
      line('system', 'risso_process_cpu_seconds_total{mode="system"}', 'violet'),
      line('user', 'risso_process_cpu_seconds_total{mode="user"}', 'blue'),
    ],
  },
  {
    id: 'process_io', section: 'Connections and memory', title: 'Disk use of the server', unit: 'B/s', of: 'server',
    explain: 'Bytes that the server process made the disks read and write.', source: '/proc/PID/io',
    lines: [line('read', 'risso_process_read_bytes_total', 'blue'), line('written', 'risso_process_write_bytes_total', 'violet')],
  },
];

const OWN: ChartDef[] = [
  {
    id: 'cost_time', section: 'What Risso costs here', title: 'Time of a collection', unit: 's', of: 'server',
    explain: 'How long it takes to read all metrics, by group. Readings of a tenth of the interval or more are marked and not trusted.', source: 'Risso itself',
    lines: [{ each: 'risso_collect_seconds', by: 'group', still: true, expr: (l) => `risso_collect_seconds${l}` }],
  },
  {
    id: 'cost_server', section: 'What Risso costs here', title: 'Time on the server', unit: 's/s', of: 'server',
    explain: 'Time the server spent on Risso\'s own queries, per second.', source: 'Risso itself',
    lines: [line('server time', 'risso_collect_server_seconds_total')],
  },
  {
    id: 'cost_queries', section: 'What Risso costs here', title: 'Queries by Risso', unit: '/s', of: 'server',
    explain: 'Queries that Risso sends to this server.', source: 'Risso itself', lines: [line('queries', 'risso_collect_queries_total')],
  },
  {
    id: 'cost_bytes', section: 'What Risso costs here', title: 'Bytes by Risso', unit: 'B/s', of: 'server',
    explain: 'Bytes between Risso and this server.', source: 'Risso itself',
    lines: [{ each: 'risso_collect_bytes_total', by: 'direction', still: true, expr: (l) => `risso_collect_bytes_total${l}` }],
  },
];

/** All charts in the order of the page. */
export const CHARTS: readonly ChartDef[] = [
  ...WORK, ...HOST, ...DISK, ...INNODB, ...REPLICATION, ...GALERA, ...STATEMENTS, ...CONNECTIONS, ...OWN,
];
