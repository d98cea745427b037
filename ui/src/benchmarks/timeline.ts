/** A run's seconds as the chart module draws them. */
import type { BenchmarkResult, BenchmarkSecond, ChartData, ChartSeries } from '../api';
import { stepFor } from '../chart/buckets';
import type { Mark } from '../chart/paint';
import { human, unix } from '../common/format';

/** How many buckets a long run is drawn by. */
export const BUCKETS = 600;

/**
 * The place of the first measured second: a number of the server is for the second before it, and so must the run's,
 * lest one seem to follow the other.
 */
export function beganAt(r: BenchmarkResult): number {
  return Math.round(unix(r.began)) + 1;
}

type Fold = (part: (number | null)[]) => number | null;

const mean: Fold = (part) => {
  const some = part.filter((v): v is number => v !== null);
  return some.length > 0 ? some.reduce((a, b) => a + b, 0) / some.length : null;
};
const largest: Fold = (part) => {
  const some = part.filter((v): v is number => v !== null);
  return some.length > 0 ? Math.max(...some) : null;
};
const least: Fold = (part) => {
  const some = part.filter((v): v is number => v !== null);
  return some.length > 0 ? Math.min(...some) : null;
};

// A second in which nothing ended has no latency: a gap, not a zero.
const latency = (of: (s: BenchmarkSecond) => number) => (s: BenchmarkSecond): number | null => (s.transactions > 0 ? of(s) : null);

const COLUMNS: Record<string, [(s: BenchmarkSecond) => number | null, Fold]> = {
  transactions: [(s) => s.transactions, mean],
  errors: [(s) => s.errors ?? 0, mean],
  backlog: [(s) => s.backlog ?? 0, largest],
  p50: [latency((s) => s.p50), largest],
  p95: [latency((s) => s.p95), largest],
  p99: [latency((s) => s.p99), largest],
  max: [latency((s) => s.max), largest],
};

/** The seconds as series on the server's clock; long runs in buckets: the mean of rates, the worst of latencies. */
export function toChart(r: BenchmarkResult): ChartData {
  const list = r.timeline ?? [];
  if (list.length === 0) return { from: 0, to: 1, step: 1, series: [] };
  const first = list[0].second;
  const n = list[list.length - 1].second - first + 1;
  const step = stepFor(n, BUCKETS);
  const from = Math.floor((beganAt(r) + first) / step) * step;
  const shift = beganAt(r) + first - from;
  const buckets = Math.ceil((n + shift) / step);
  const series = Object.entries(COLUMNS).map(([key, [of, fold]]): ChartSeries => {
    const seconds = new Array<number | null>(buckets * step).fill(null);
    for (const s of list) seconds[s.second - first + shift] = of(s);
    const folded = (f: Fold): (number | null)[] => Array.from({ length: buckets }, (_, i) => f(seconds.slice(i * step, (i + 1) * step)));
    const spread = step > 1 && key === 'transactions' ? { min: folded(least), max: folded(largest) } : {};
    return { key, type: 'gauge', unit: '', avg: step === 1 ? seconds : folded(fold), ...spread };
  });
  return { from, to: from + buckets * step, step, series };
}

/** The largest value of some columns of some runs: charts side by side share a scale. */
export function topOf(charts: ChartData[], keys: string[]): number {
  let top = 0;
  for (const c of charts) {
    for (const s of c.series ?? []) {
      if (keys.includes(s.key)) for (const v of s.max ?? s.avg) top = Math.max(top, v ?? 0);
    }
  }
  return top;
}

/** Where a run began and ended, and where nothing succeeded. */
export function marksOf(r: BenchmarkResult): Mark[] {
  const at = unix(r.began);
  const out: Mark[] = [];
  if (r.warmup_seconds > 0) out.push({ t: at - r.warmup_seconds, tone: 'info', text: 'benchmark: warm-up begins' });
  out.push({ t: at, tone: 'info', text: 'benchmark: measuring begins' }, { t: at + r.seconds, tone: 'info', text: 'benchmark ends' });
  for (const o of r.outages ?? []) {
    const kind = o.errors ? 'outage' : 'stall';
    out.push({ t: at + o.from, tone: o.errors ? 'critical' : 'warning', text: `${kind}: nothing succeeded for ${human(o.milliseconds, 'ms')}` });
  }
  return out.sort((a, b) => a.t - b.t);
}
