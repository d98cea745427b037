/** Stacking and scales of charts: plain arithmetic on columns. */
import type { Column } from './track';

/**
 * Sums columns upwards: layer i is its own value on top of all below. A layer's gap counts as
 * nothing; where all layers have a gap, so has the stack.
 */
export function stack(layers: Column[]): Column[] {
  if (layers.length === 0) return [];
  const n = Math.max(...layers.map((l) => l.length));
  const out = layers.map(() => new Array<number | null>(n).fill(null));
  for (let i = 0; i < n; i++) {
    if (layers.every((l) => l[i] === null || l[i] === undefined)) continue;
    let sum = 0;
    layers.forEach((l, k) => {
      sum += Math.max(0, l[i] ?? 0);
      out[k][i] = sum;
    });
  }
  return out;
}

/** The largest value of all columns; -Infinity without any. */
export function maxOf(columns: (Column | null)[]): number {
  let max = -Infinity;
  for (const c of columns) {
    if (!c) continue;
    for (const v of c) if (v !== null && v > max) max = v;
  }
  return max;
}

/** The smallest value of all columns; Infinity without any. */
export function minOf(columns: (Column | null)[]): number {
  let min = Infinity;
  for (const c of columns) {
    if (!c) continue;
    for (const v of c) if (v !== null && v < min) min = v;
  }
  return min;
}

/** The next of 1, 1.5, 2, 3, 4, 5, 6, 8 × 10ⁿ (or × 2ⁿ for bytes): a top that rarely changes. */
export function niceTop(max: number, binary = false): number {
  if (!(max > 0) || !Number.isFinite(max)) return 1;
  const unit = binary ? 1024 ** Math.floor(Math.log(max) / Math.log(1024) + 1e-9) : 1;
  const v = max / unit;
  const decade = 10 ** Math.floor(Math.log10(v));
  for (const m of [1, 1.5, 2, 3, 4, 5, 6, 8, 10]) {
    // A line at the very top cannot be distinguished from the edge: leave it a little room.
    // 1000 KiB is no round number where the next unit begins at 1024.
    if (m * decade >= v * 1.02) return (binary && m * decade >= 1000 ? 1024 : m * decade) * unit;
  }
  return 15 * decade * unit;
}

/** Into how many parts a scale that niceTop made is cut, so that each line has a round number, a whole one where asked for. */
export function partsOf(top: number, binary = false, whole = false): number {
  if (!(top > 0)) return 1;
  // There is no half thread.
  if (whole && (top === 1 || top === 2 || top === 3)) return top;
  const v = binary ? top / 1024 ** Math.floor(Math.log(top) / Math.log(1024) + 1e-9) : top;
  const lead = Math.round((v / 10 ** Math.floor(Math.log10(v) + 1e-9)) * 10);
  return lead === 15 || lead === 30 || lead === 60 ? 3 : lead === 50 ? 5 : 4;
}

/** Runs of values without a gap, as [first, last] positions: each is drawn on its own. */
export function runs(...columns: Column[]): [number, number][] {
  const out: [number, number][] = [];
  const n = Math.min(...columns.map((c) => c.length));
  let start = -1;
  for (let i = 0; i <= n; i++) {
    const here = i < n && columns.every((c) => c[i] !== null && c[i] !== undefined);
    if (here && start < 0) start = i;
    if (!here && start >= 0) {
      out.push([start, i - 1]);
      start = -1;
    }
  }
  return out;
}
