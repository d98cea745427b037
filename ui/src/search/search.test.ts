import { describe, expect, it } from 'vitest';
import { best, normalise, score } from './fuzzy';
import { humanName, labelsOf, nameOf } from './names';

const KEYS = [
  'mysql_global_status_questions', 'mysql_global_status_commands_total{command="select"}', 'mysql_global_status_commands_total{command="insert_select"}',
  'mysql_global_status_innodb_row_ops_total{operation="read"}', 'mysql_global_status_innodb_row_lock_waits', 'mysql_global_status_innodb_row_lock_current_waits',
  'mysql_global_variables_max_connections', 'mysql_global_status_handlers_total{handler="read_rnd_next"}', 'node_disk_read_bytes_total{device="sda"}',
  'mysql_info_schema_innodb_metrics_transaction_trx_rseg_history_len', 'mysql_global_status_buffer_pool_dirty_pages', 'mysql_global_status_wsrep_cluster_size',
];
const find = (q: string): string => best(q, KEYS, (k) => normalise(`${humanName(k)} ${k}`), 5)[0];

describe('names', () => {
  it.each([
    [KEYS[1], 'Com_select'], [KEYS[3], 'Innodb_rows_read'], [KEYS[0], 'Questions'], [KEYS[6], '@@max_connections'], [KEYS[7], 'Handler_read_rnd_next'],
    [KEYS[8], 'node_disk_read_bytes_total sda'], [KEYS[9], 'transaction_trx_rseg_history_len'], [KEYS[10], 'Innodb_buffer_pool_pages_dirty'],
    [KEYS[11], 'wsrep_cluster_size'],
  ])('%s is %s', (key, name) => expect(humanName(key)).toBe(name));
  it('reads labels with quotes in them', () => {
    expect(labelsOf('a{x="1\\"2",y="b\\\\"}')).toEqual({ x: '1"2', y: 'b\\' });
    expect(labelsOf('a')).toEqual({});
    expect(nameOf('a{x="1"}')).toBe('a');
  });
});

describe('search', () => {
  it.each([
    ['Com_select', KEYS[1]], ['com select', KEYS[1]], ['Innodb_rows_read', KEYS[3]], ['row lock wait', KEYS[4]], ['current row lock', KEYS[5]],
    ['max_conn', KEYS[6]], ['questions', KEYS[0]], ['history', KEYS[9]], ['hndlr', KEYS[7]], ['mysql_global_status_questions', KEYS[0]],
  ])('%s finds %s', (q, key) => expect(find(q)).toBe(key));
  it('needs all words', () => expect(score('row zebra', 'innodb row lock')).toBe(0));
  it('finds nothing for nonsense', () => expect(find('qqqqq')).toBeUndefined());
});
