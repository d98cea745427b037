import { expect, test } from 'vitest';
import type { BenchmarkResult, BenchmarkSecond } from '../api';
import { marksOf, toChart, topOf } from './timeline';
import { tell, versus } from './words';

const second = (s: number, n: number, more: Partial<BenchmarkSecond> = {}): BenchmarkSecond => ({ second: s, transactions: n, p50: 0.001, p95: 0.002, p99: 0.003, max: 0.004, ...more });

const run = (timeline: BenchmarkSecond[], more: Partial<BenchmarkResult> = {}): BenchmarkResult => ({
  workload: 'point_select', server: 'db', began: '2026-11-21T10:00:00.2Z', threads: 4, warmup_seconds: 0, seconds: timeline.length, transactions: 0,
  transactions_per_second: 100, queries_per_second: 100, latency: { min: 0, avg: 0.001, max: 0.5, percentiles: [{ percentile: 50, seconds: 0.001 }, { percentile: 99, seconds: 0.02 }] }, timeline, ...more,
});

const at = Date.parse('2026-11-21T10:00:00Z') / 1000;

test('seconds stand where the server counts the same second, the warm-up before', () => {
  const c = toChart(run([second(-1, 5), second(0, 10), second(1, 0), second(2, 30)]));
  expect([c.from, c.step]).toEqual([at, 1]);
  const of = (key: string) => c.series!.find((s) => s.key === key)!.avg;
  expect(of('transactions')).toEqual([5, 10, 0, 30]);
  // Nothing ended: no latency is known, and a gap is no zero.
  expect(of('p99')).toEqual([0.003, 0.003, null, 0.003]);
});

test('a long run is drawn by buckets: mean and extremes of rates, the worst of latencies', () => {
  const list = Array.from({ length: 3600 }, (_, i) => second(i, i === 100 ? 0 : 10, { max: i === 50 ? 7 : 1 }));
  const c = toChart(run(list));
  expect(c.step).toBe(10);
  const rate = c.series!.find((s) => s.key === 'transactions')!;
  const bucket = Math.floor((at + 1 + 100 - c.from) / 10);
  expect(rate.avg[bucket]).toBeCloseTo(9);
  expect([rate.min![bucket], rate.max![bucket]]).toEqual([0, 10]);
  expect(Math.max(...(c.series!.find((s) => s.key === 'max')!.avg as number[]))).toBe(7);
  expect(topOf([c], ['transactions'])).toBe(10);
});

test('a run without seconds is an empty chart', () => {
  expect(toChart(run([])).series).toEqual([]);
});

test('an outage is a mark where it began', () => {
  const marks = marksOf(run([second(0, 1)], { outages: [{ from: 3.5, milliseconds: 2010, errors: true }] }));
  expect(marks.map((m) => m.tone)).toEqual(['info', 'info', 'critical']);
  expect(marks[2].t).toBeCloseTo(at + 3.7);
  expect(marks[2].text).toContain('2.01\u00a0s');
});

test('words tell what went wrong, and that one run each says nothing of chance', () => {
  const bad = run([second(0, 1)], { errors: [{ label: '1205', message: 'x', count: 1200 }], outages: [{ from: 1, milliseconds: 1500, errors: false }], ledger: { acknowledged: 5, missing: 1 } });
  expect(tell(bad)).toMatch(/1,200 errors; nothing succeeded for 1.5.s; 1 acknowledged write lost/);
  const hung = run([], { unfinished: 1, ledger: { acknowledged: 0, missing: 0, error: 'gone' }, latency: { min: 0, avg: 0, max: 0, percentiles: [{ percentile: 50, seconds: 0 }, { percentile: 99, seconds: 0 }] } });
  expect(tell(hung)).toMatch(/1 transaction was abandoned at the end; whether acknowledged writes were lost is not known/);
  expect(tell(hung)).not.toMatch(/half within|no acknowledged write lost/);
  expect(versus(run([]), run([], { workload: 'read_write' }))).toMatch(/different work, point_select and read_write/);
  expect(versus(run([]), run([], { transactions_per_second: 158 }))).toMatch(/B did 1\.58 times.*One run each/);
  expect(versus(run([]), run([], { transactions_per_second: 0 }))).toBe('One of the two did nothing.');
});
