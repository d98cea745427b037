/** Histories of statements as the chart module draws them. */
import type { ChartData, ChartSeries, Query, QuerySeries, Span } from '../api';
import { knownOf, type Known } from './covered';

/** Columns for a whole step: they are drawn per second. */
const PER_STEP = new Set(['errors', 'tmp_disk_tables']);
/** Sums over a step, divided by its length. */
const RATES = new Set(['calls_per_second', 'load', 'lock', 'rows_sent', 'rows_examined', 'rows_affected', 'errors', 'tmp_disk_tables']);

/**
 * The first and the last bucket may reach over the ends of the range that was asked for; what is
 * in them was then divided by too many seconds. This divides by those inside.
 */
export function fillPartial(values: (number | null)[], grid: { from: number; step: number }, span: Span): (number | null)[] {
  return values.map((v, i) => {
    const start = grid.from + i * grid.step;
    const inside = Math.min(start + grid.step, span.to) - Math.max(start, span.from);
    if (v === null || inside >= grid.step) return v;
    return inside > 0 ? (v * grid.step) / inside : null;
  });
}

/** Which steps of a class's history were read, on the servers that ran it. */
export function knownSteps(q: Query, now: number): Known {
  const { time } = q.series;
  const ran = q.series.calls_per_second ?? [];
  const here = new Set((q.by_instance ?? []).map((p) => p.value));
  return knownOf(q.covered, { from: time[0] ?? q.from, step: q.step }, time.length, q, now, (i) => (ran[i] ?? 0) > 0, here.size > 0 ? here : undefined);
}

/** A class's columns as series; a moment that was not read, and one before the first minute that is kept, is a gap, not a zero. */
export function toChart(q: Pick<Query, 'from' | 'to' | 'step'> & { series: QuerySeries }, first: number, steps?: Known): ChartData {
  const { time, ...columns } = q.series;
  const from = time[0] ?? q.from;
  const grid = { from, step: q.step };
  const series = Object.entries(columns).map(([key, values]): ChartSeries => {
    const perSecond = PER_STEP.has(key) ? values.map((v) => (v === null ? null : v / q.step)) : values;
    const whole = RATES.has(key) ? fillPartial(perSecond, grid, { from: Math.max(q.from, first), to: q.to }) : perSecond;
    return { key, type: 'gauge', unit: '', avg: whole.map((v, i) => (time[i] + q.step <= first || steps?.read[i] === false ? null : v)) };
  });
  return { from, to: from + time.length * q.step, step: q.step, series };
}

/** When the class ran last, as far as the history on the screen and the store know. */
export function lastRun(q: Pick<Query, 'last_seen' | 'step' | 'to'> & { series: QuerySeries }): number {
  const i = (q.series.calls_per_second ?? []).findLastIndex((v) => v !== null && v > 0);
  return i < 0 ? q.last_seen : Math.max(q.last_seen, Math.min(q.series.time[i] + q.step, q.to));
}
