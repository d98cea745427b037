/** Metric names as MySQL itself writes them: Com_select for commands_total{command="select"}. */

const LABELLED: Record<string, [string, string]> = {
  mysql_global_status_commands_total: ['command', 'Com_'],
  mysql_global_status_handlers_total: ['handler', 'Handler_'],
  mysql_global_status_connection_errors_total: ['error', 'Connection_errors_'],
  mysql_global_status_buffer_pool_pages: ['state', 'Innodb_buffer_pool_pages_'],
  mysql_global_status_buffer_pool_page_changes_total: ['operation', 'Innodb_buffer_pool_pages_'],
  mysql_global_status_innodb_row_ops_total: ['operation', 'Innodb_rows_'],
  mysql_global_status_performance_schema_lost_total: ['instrumentation', 'Performance_schema_'],
};

/** The labels of a key. */
export function labelsOf(key: string): Record<string, string> {
  const out: Record<string, string> = {};
  const open = key.indexOf('{');
  if (open < 0) return out;
  for (const m of key.slice(open).matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g)) {
    out[m[1]] = m[2].replace(/\\(.)/g, (_, c: string) => (c === 'n' ? '\n' : c));
  }
  return out;
}

/** The name of a key without its labels. */
export function nameOf(key: string): string {
  const open = key.indexOf('{');
  return open < 0 ? key : key.slice(0, open);
}

const capital = (s: string): string => s.charAt(0).toUpperCase() + s.slice(1);

/** The usual name of a series: MySQL's own if it has one, else a short form of the key. */
export function humanName(key: string): string {
  const name = nameOf(key);
  const labels = labelsOf(key);
  const pair = LABELLED[name];
  if (pair && labels[pair[0]] !== undefined) return pair[1] + labels[pair[0]];
  if (name === 'mysql_global_status_buffer_pool_dirty_pages') return 'Innodb_buffer_pool_pages_dirty';
  const tail = Object.values(labels).filter((v) => v !== '').join(', ');
  const with_ = (s: string): string => (tail ? `${s} ${tail}` : s);
  if (name.startsWith('mysql_global_status_wsrep_')) return with_(name.slice('mysql_global_status_'.length));
  if (name.startsWith('mysql_global_status_')) return with_(capital(name.slice('mysql_global_status_'.length)));
  if (name.startsWith('mysql_global_variables_')) return with_(`@@${name.slice('mysql_global_variables_'.length)}`);
  if (name.startsWith('mysql_info_schema_innodb_metrics_')) {
    return with_(name.slice('mysql_info_schema_innodb_metrics_'.length).replace(/_total$/, ''));
  }
  if (name.startsWith('mysql_slave_status_')) return with_(capital(name.slice('mysql_slave_status_'.length)));
  return with_(name);
}
