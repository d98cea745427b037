import { describe, expect, it } from 'vitest';
import type { Queries, QueryRow } from '../api';
import type { Colour } from '../chart/palette';
import { OTHERS, colours, loadSeries, knownPoints, nextSort, sortRows, sparkOf } from './list';
import { knownOf } from './covered';
import { fillPartial, lastRun, toChart } from './series';
import { bestVersus, earlier, known, lastMinute, minutes, versusWords } from './window';

const row = (id: string, seconds: number, more: Partial<QueryRow> = {}): QueryRow => ({
  id, seconds, calls: 10, avg: seconds / 10, errors: 0, latency: null, rows_examined_per_sent: null, spark: null, ...more,
} as QueryRow);

describe('sorting', () => {
  const rows = [row('a', 1, { calls: 5 }), row('b', 3, { latency: { p50: 1, p95: 2, p99: 3, calls: 9 } }), row('c', 2, { errors: 7 })];
  const ids = (sort: string): string => sortRows(rows, sort).map((r) => r.id).join('');
  it('has the heaviest first, then whatever is asked for; what is not known comes last', () => {
    expect(ids('')).toBe('bca');
    expect(ids('load')).toBe('acb');
    expect(ids('calls')).toBe('abc');
    expect(ids('-errors')).toBe('cba');
    expect(ids('-p95')).toBe('bca');
    expect(ids('p95')).toBe('bca');
    expect(ids('-nonsense')).toBe('bca');
  });
  it('turns on clicks', () => {
    expect(nextSort('', 'calls')).toBe('-calls');
    expect(nextSort('-calls', 'calls')).toBe('calls');
    expect(nextSort('calls', 'calls')).toBe('');
    expect(nextSort('', 'load')).toBe('load');
    expect(nextSort('load', 'load')).toBe('');
  });
});

describe('the chart of the list', () => {
  const answer = { from: 600, to: 900, first: 660, spark: { from: 600, step: 60 } } as Queries;
  it('keeps colours while a class leads', () => {
    const one = colours([row('a', 9), row('b', 5)], new Map());
    const two = colours([row('b', 9), row('c', 6), row('a', 5)], one);
    expect(two.get('a')).toBe(one.get('a'));
    expect(two.get('b')).toBe(one.get('b'));
    expect(new Set(two.values()).size).toBe(3);
    expect(colours([row('a', 0)], one).size).toBe(0);
  });
  it('sums up those without a colour, and leaves unknown minutes open', () => {
    const rows = [row('a', 5, { spark: [0, 1, 1, 1, 1] }), row('b', 1, { spark: [0, 2, 2, 2, 2] }), row('c', 1, { spark: [0, 3, 3, 3, 3] })];
    const data = loadSeries(answer, rows, new Map<string, Colour>([['a', 'blue']]));
    expect(data.series).toEqual([
      { key: 'a', type: 'gauge', unit: 'seconds', avg: [null, 1, 1, 1, 1] }, { key: OTHERS, type: 'gauge', unit: 'seconds', avg: [null, 5, 5, 5, 5] },
    ]);
    expect(data.to).toBe(900);
    expect(sparkOf(rows[0], { ...answer, first: 0 })).toEqual([0, 1, 1, 1, 1]);
  });
  it('tells what was not read from what did not run', () => {
    const grid = { from: 0, step: 60 };
    const spans = [{ instance: 'a', spans: [[60, 180]] as [number, number][] }, { instance: 'b', spans: [[300, 360]] as [number, number][] }];
    const span = { from: 0, to: 600 };
    const got = knownOf(spans, grid, 10, span, 600, (i) => i === 3);
    expect(got.read.map(Number).join('')).toBe('0111010000');
    // The newest two minutes may be under way.
    expect(got.holes).toEqual([{ from: 0, to: 60 }, { from: 240, to: 300 }, { from: 360, to: 480 }]);
    expect(knownOf(spans, grid, 10, span, 9999, () => false, new Set(['b'])).holes).toEqual([{ from: 0, to: 300 }, { from: 360, to: 600 }]);
    expect(knownOf(undefined, grid, 10, span, 600, () => false).holes).toEqual([]);
    expect(knownOf([], grid, 10, span, 9999, () => false).holes).toEqual([span]);
    const rows = [row('a', 5, { spark: [0, 1, 0, 1, 1] })];
    const a = { ...answer, first: 0, covered: [{ instance: 'a', spans: [[600, 720], [780, 900]] }] } as Queries;
    const points = knownPoints(a, rows, 9999);
    expect(points.holes).toEqual([{ from: 720, to: 780 }]);
    expect(sparkOf(rows[0], a, points)).toEqual([0, 1, null, 1, 1]);
  });
  it('divides unfinished buckets by what is in them', () => {
    expect(fillPartial([3, 2, null, 1], { from: 0, step: 300 }, { from: 60, to: 960 })).toEqual([3.75, 2, null, 5]);
  });
});

describe('a class', () => {
  const q = { from: 0, to: 180, step: 120, last_seen: 5, series: { time: [0, 120], errors: [12, 0], load: [1, 1], avg: [2, null], calls_per_second: [1, 0] } };
  it('becomes series per second', () => {
    const got = Object.fromEntries((toChart(q as never, 0).series ?? []).map((s) => [s.key, s.avg]));
    expect(got).toEqual({ errors: [0.1, 0], load: [1, 2], avg: [2, null], calls_per_second: [1, 0] });
    expect(toChart(q as never, 120).series?.[1].avg).toEqual([null, 2]);
  });
  it('ran last when its history says', () => {
    expect(lastRun(q as never)).toBe(120);
    expect(lastRun({ ...q, last_seen: 170 } as never)).toBe(170);
  });
});

describe('time', () => {
  const now = 100_000 * 60 + 30;
  it('is whole minutes that are over', () => {
    const end = 100_000 * 60;
    expect(lastMinute(now)).toBe(end);
    expect(lastMinute(end + 2)).toBe(end - 60);
    expect(minutes({ live: true, span: 3600 }, now)).toEqual({ from: end - 3600, to: end });
    expect(minutes({ live: true, span: 10 }, now)).toEqual({ from: end - 60, to: end });
    expect(minutes({ live: false, from: end - 130, to: end - 70 }, now)).toEqual({ from: end - 180, to: end - 60 });
    expect(minutes({ live: false, from: end - 130, to: end + 9999 }, now)).toEqual({ from: end - 180, to: end });
    expect(minutes({ live: false, from: end + 600, to: end + 900 }, now)).toEqual({ from: end + 600, to: end + 660 });
  });
  it('compares with what is known', () => {
    const span = { from: 1_000_000, to: 1_003_600 };
    expect(earlier(span, 'before', 1)).toEqual({ from: 996_400, to: 1_000_000 });
    expect(earlier(span, 'day', 1)).toEqual({ from: 913_600, to: 917_200 });
    expect(earlier(span, 'week', 900_000)).toBeNull();
    expect(earlier(span, 'before', 0)).toBeNull();
    expect(earlier(span, 'before', 998_000)).toEqual({ from: 998_000, to: 1_000_000 });
    expect(earlier(span, 'before', 999_900)).toBeNull();
    expect([bestVersus(span, 1), bestVersus(span, 998_000), bestVersus(span, 999_900)]).toEqual(['day', 'before', '']);
    expect(known(span, 1_001_000)).toEqual({ from: 1_001_000, to: 1_003_600 });
    expect(known(span, 2_000_000)).toEqual(span);
    expect(versusWords('before', span)).toBe('the hour before');
    expect(versusWords('before', { from: 0, to: 900 })).toBe('the 15\u00a0min before');
  });
});
