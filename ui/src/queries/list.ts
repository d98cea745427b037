/** The list of classes: its columns, their order, and the chart above it. */
import type { ChartData, Queries, QueryRow } from '../api';
import { CYCLE, type Colour } from '../chart/palette';
import { knownOf, type Known } from './covered';
import { fillPartial } from './series';

/** Columns that sort, by the words that the server orders all classes by. */
export const COLUMNS = ['load', 'calls', 'avg', 'p95', 'rows_examined_per_sent', 'errors'] as const;
export type Column = (typeof COLUMNS)[number];

/** The column of a sort, "-" before it for descending, as links have it. */
export function columnOf(sort: string): Column {
  return COLUMNS.find((c) => c === sort.replace(/^-/, '')) ?? 'load';
}

/** What a click on a column's head makes of the sort: largest first, then smallest, then the page's own order. */
export function nextSort(sort: string, column: Column): string {
  if (column === 'load') return sort === '' || sort === '-load' ? 'load' : '';
  return sort === `-${column}` ? column : sort === column ? '' : `-${column}`;
}

/** Rows examined per row sent or changed, as the server orders by it; if there was none, all that were examined. */
export function examinedPerRow(r: QueryRow): number {
  return r.rows_examined / Math.max(1, r.rows_sent + r.rows_affected);
}

const VALUE: Record<Column, (r: QueryRow) => number | null> = {
  load: (r) => r.seconds, calls: (r) => r.calls, avg: (r) => r.avg, p95: (r) => r.latency?.p95 ?? null,
  rows_examined_per_sent: examinedPerRow, errors: (r) => r.errors,
};

/** Sorts a copy of the rows; those without a value come last whichever way. */
export function sortRows(rows: QueryRow[], sort: string): QueryRow[] {
  const get = VALUE[columnOf(sort)];
  const sign = sort !== '' && !sort.startsWith('-') ? 1 : -1;
  return [...rows].sort((a, b) => {
    const [x, y] = [get(a), get(b)];
    if (x === null || y === null) return Number(x === null) - Number(y === null) || b.seconds - a.seconds;
    return sign * (x - y) || b.seconds - a.seconds;
  });
}

const COLOURED = 6;

/** Gives the heaviest classes colours; one that had a colour keeps it while it is among them. */
export function colours(rows: QueryRow[], before: Map<string, Colour>): Map<string, Colour> {
  const top = [...rows].sort((a, b) => b.seconds - a.seconds).slice(0, COLOURED).filter((r) => r.seconds > 0).map((r) => r.id);
  const free = CYCLE.slice(0, COLOURED).filter((c) => !top.some((id) => before.get(id) === c));
  return new Map(top.map((id) => [id, before.get(id) ?? free.shift() ?? 'slate']));
}

/** The key under which the chart has all classes without their own colour. */
export const OTHERS = 'others';

/** Which points of the sparks were read, on the servers that the list is of. */
export function knownPoints(a: Queries, rows: QueryRow[], now: number): Known {
  const n = Math.max(0, ...rows.map((r) => r.spark?.length ?? 0));
  return knownOf(a.covered, a.spark, n, a, now, (i) => rows.some((r) => (r.spark?.[i] ?? 0) > 0));
}

/** A row's load over time; what was not read, and what is before the first minute that is kept, is a gap. */
export function sparkOf(r: QueryRow, a: Queries, points?: Known): (number | null)[] {
  const grid = a.spark;
  const known = (r.spark ?? []).map((v, i) => (grid.from + (i + 1) * grid.step <= a.first || points?.read[i] === false ? null : v));
  return fillPartial(known, grid, { from: Math.max(a.from, a.first), to: a.to });
}

/** The sparks of the rows as series of a chart: one for each class with a colour, and one for all others. */
export function loadSeries(a: Queries, rows: QueryRow[], coloured: Map<string, Colour>, points?: Known): ChartData {
  const { from, step } = a.spark;
  const sparks = rows.map((r) => ({ id: r.id, values: sparkOf(r, a, points) }));
  const n = Math.max(0, ...sparks.map((s) => s.values.length));
  const rest = new Array<number | null>(n).fill(null);
  for (const s of sparks) {
    if (!coloured.has(s.id)) s.values.forEach((v, i) => (rest[i] = v === null ? rest[i] : (rest[i] ?? 0) + v));
  }
  const series = (key: string, avg: (number | null)[]) => ({ key, type: 'gauge' as const, unit: 'seconds', avg });
  return {
    from, step, to: from + n * step,
    series: [...sparks.filter((s) => coloured.has(s.id)).map((s) => series(s.id, s.values)), series(OTHERS, rest)],
  };
}
