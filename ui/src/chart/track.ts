/**
 * Tracks: the buckets of one series that the page holds, and how new ones join them. A track has
 * no holes in its index (bucket i starts at from + i × step); what is missing is null.
 */
import type { ChartData, ChartSeries } from '../api';

/** Values by bucket; null is a gap. */
export type Column = (number | null)[];

/** The parts of a bucket that a track may hold. */
export const PARTS = ['avg', 'min', 'max', 'p5', 'p95'] as const;
/** One part of a bucket. */
export type Part = (typeof PARTS)[number];

/** One series' buckets. Parts other than avg are absent where the step is one second. */
export interface Track {
  from: number;
  step: number;
  columns: Partial<Record<Part, Column>> & { avg: Column };
}

/** Where a track ends: the start of the bucket after its last. */
export function endOf(t: Track): number {
  return t.from + t.columns.avg.length * t.step;
}

/** The track of a series in an answer. */
export function toTrack(data: ChartData, s: ChartSeries): Track {
  const columns: Track['columns'] = { avg: s.avg };
  for (const p of PARTS) {
    const c = s[p];
    if (c && c.length > 0) columns[p] = c;
  }
  return { from: data.from, step: data.step, columns };
}

/**
 * Joins new buckets to old ones: if both have a bucket the new one wins, because the last one was
 * unfinished. Buckets between the two that neither has are gaps. Tracks of different steps do not
 * join: the new one is returned alone.
 */
export function merge(old: Track | undefined, fresh: Track): Track {
  if (!old || old.step !== fresh.step || (fresh.from - old.from) % fresh.step !== 0) return fresh;
  const step = fresh.step;
  const from = Math.min(old.from, fresh.from);
  const length = (Math.max(endOf(old), endOf(fresh)) - from) / step;
  const columns: Track['columns'] = { avg: [] };
  for (const p of PARTS) {
    const a = old.columns[p];
    const b = fresh.columns[p];
    if (!a && !b) continue;
    const out: Column = new Array<number | null>(length).fill(null);
    if (a) place(out, a, (old.from - from) / step);
    if (b) place(out, b, (fresh.from - from) / step);
    columns[p] = out;
  }
  return { from, step, columns };
}

function place(out: Column, values: Column, at: number): void {
  for (let i = 0; i < values.length; i++) out[at + i] = values[i];
}

/** The track without the buckets that end before a moment. */
export function dropBefore(t: Track, from: number): Track {
  const n = Math.floor((from - t.from) / t.step);
  if (n <= 0) return t;
  const columns: Track['columns'] = { avg: t.columns.avg.slice(n) };
  for (const p of PARTS) {
    const c = t.columns[p];
    if (c) columns[p] = c.slice(n);
  }
  return { from: t.from + n * t.step, step: t.step, columns };
}

/** One part of a track laid on a grid of n buckets from a moment on; null outside of the track. */
export function onGrid(t: Track | undefined, part: Part, from: number, step: number, n: number): Column | null {
  const c = t?.columns[part];
  if (!t || !c) return null;
  const out: Column = new Array<number | null>(n).fill(null);
  if (t.step !== step) return resample(t, c, out, from, step);
  const shift = Math.round((from - t.from) / step);
  for (let i = 0; i < n; i++) {
    const v = c[i + shift];
    if (v !== undefined) out[i] = v;
  }
  return out;
}

// While a new zoom loads, the old buckets are drawn under the new scale: nearest one wins.
function resample(t: Track, c: Column, out: Column, from: number, step: number): Column {
  for (let i = 0; i < out.length; i++) {
    const v = c[Math.floor((from + i * step - t.from) / t.step)];
    if (v !== undefined) out[i] = v;
  }
  return out;
}

// A bucket or two without numbers are a gap in the line; the newest are still on their way.
const LEAST_BLANK = 3;
const LATE_SECONDS = 10;

/** The parts of a range in which no track has a number. */
export function blanksOf(tracks: Track[], grid: { from: number; step: number; to: number }, now: number): { from: number; to: number }[] {
  const { from, step } = grid;
  const end = Math.min(grid.to, now);
  const n = Math.max(0, Math.ceil((end - from) / step));
  const known = new Uint8Array(n);
  for (const t of tracks) {
    if (t.step !== step) continue;
    const shift = Math.round((t.from - from) / step);
    t.columns.avg.forEach((v, i) => {
      if (v !== null && i + shift >= 0 && i + shift < n) known[i + shift] = 1;
    });
  }
  const out: { from: number; to: number }[] = [];
  for (let i = 0; i < n; i++) {
    if (known[i]) continue;
    let k = i;
    while (k < n && !known[k]) k++;
    const hole = { from: from + i * step, to: Math.min(end, from + k * step) };
    if (k - i >= LEAST_BLANK && (k < n || hole.to - hole.from > LATE_SECONDS + LEAST_BLANK * step)) out.push(hole);
    i = k;
  }
  return out;
}
