import { describe, expect, it } from 'vitest';
import type { Metric } from '../api';
import { Feed } from '../chart/feed';
import { CHARTS } from './charts';
import { build, Catalogue } from './define';

const metric = (key: string, over: Partial<Metric> = {}): Metric => {
  const labels = Object.fromEntries([...key.matchAll(/(\w+)="([^"]*)"/g)].map((m) => [m[1], m[2]]));
  return { key, name: key.replace(/\{.*/, ''), labels, type: 'counter', unit: '', help: '', source: '', last: 0, constant: false, ...over };
};
const feed = new Feed('x', { from: 0, to: 100 }, 100, () => Promise.reject(new Error('no network in this test')));
const def = (id: string) => CHARTS.find((c) => c.id === id)!;
const lines = (id: string, keys: Metric[]): string[] | undefined => build(def(id), new Catalogue(keys), feed)?.lines.map((l) => l.label);

describe('charts', () => {
  it('have ids, words and sources of their own', () => {
    expect(new Set(CHARTS.map((c) => c.id)).size).toBe(CHARTS.length);
    for (const c of CHARTS) {
      expect(c.explain, c.id).toMatch(/\.$/);
      expect(c.source, c.id).not.toBe('');
      expect(c.lines.length, c.id).toBeGreaterThan(0);
    }
  });
  it('are left out where their series do not exist', () => {
    for (const c of CHARTS) expect(build(c, new Catalogue([]), feed), c.id).toBeNull();
  });
  it('show what is there', () => {
    const c = (x: string): Metric => metric(`mysql_global_status_commands_total{command="${x}"}`);
    expect(lines('commands', [c('select'), c('commit')])).toEqual(['select', 'commit']);
  });
  it('take the first name that a server knows', () => {
    expect(lines('checkpoint', [metric('mysql_info_schema_innodb_metrics_log_log_lsn_checkpoint_age')])).toEqual(['age']);
    expect(lines('checkpoint', [metric('mysql_global_status_innodb_checkpoint_age')])).toEqual(['age']);
    expect(lines('history', [metric('mysql_info_schema_innodb_metrics_transaction_trx_rseg_history_len')])).toEqual(['length']);
  });
  it('have a line for each device that works', () => {
    const d = (dev: string, constant = false): Metric[] => ['reads_completed_total', 'read_time_seconds_total'].map((n) => metric(`node_disk_${n}{device="${dev}"}`, { constant }));
    expect(lines('disk_latency', [...d('sda'), ...d('sdb', true), ...d('loop0')])).toEqual(['sda']);
    expect(lines('disk_latency', d('sdb', true))).toEqual(['sdb']);
  });
  it('keep the other labels of a family', () => {
    const key = 'mysql_slave_status_seconds_behind_master{channel_name="",master_host="db1",master_uuid="u"}';
    const model = build(def('replication'), new Catalogue([metric(key, { type: 'gauge', constant: true })]), feed)!;
    expect(model.lines[0].expr).toBe(key);
    expect(model.lines[0].colour).toBe('line');
  });
});
