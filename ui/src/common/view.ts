/**
 * The view as a link: every page, range, pinned chart, cursor, sorting and search is in the URL,
 * so Back works and a pasted link shows what its sender saw.
 */
import { DEFAULT_RANGE, fixed, parseSpan, parseTime, sameRange, spanText, type Range } from './range';

/** The pages. */
export type Page = 'fleet' | 'server' | 'metrics' | 'variables' | 'events' | 'missing';

/** Everything that a link reproduces. */
export interface View {
  page: Page;
  /** the instance; empty on the fleet page */
  id: string;
  range: Range;
  /** keys of metrics pinned as charts of their own */
  pins: string[];
  /** the pinned cursor, unix seconds */
  at: number | null;
  /** column to sort by, "-" before it for descending; empty is the page's own order */
  sort: string;
  /** text that filters a list */
  q: string;
}

const TABS: readonly Page[] = ['metrics', 'variables', 'events'];

/** The fleet page, as an empty link shows it. */
export const HOME: View = { page: 'fleet', id: '', range: DEFAULT_RANGE, pins: [], at: null, sort: '', q: '' };

/** Reads a view from a path and a query; nonsense in the query falls back to the default. */
export function parseView(path: string, query: string): View {
  const params = new URLSearchParams(query);
  const rest = {
    range: parseRange(params),
    pins: [...new Set(params.getAll('pin').filter((p) => p !== ''))],
    at: params.has('at') ? parseTime(params.get('at') ?? '', 0) : null,
    sort: params.get('sort') ?? '',
    q: params.get('q') ?? '',
  };
  const parts = path.split('/').filter((p) => p !== '');
  if (parts.length === 0) return { page: 'fleet', id: '', ...rest };
  if (parts[0] === 'server' && parts.length >= 2 && parts.length <= 3) {
    const id = safeDecode(parts[1]);
    if (parts.length === 2) return { page: 'server', id, ...rest };
    const tab = TABS.find((t) => t === parts[2]);
    if (tab) return { page: tab, id, ...rest };
  }
  return { page: 'missing', id: '', ...rest };
}

function safeDecode(s: string): string {
  try {
    return decodeURIComponent(s);
  } catch {
    return s;
  }
}

function parseRange(params: URLSearchParams): Range {
  const from = parseTime(params.get('from') ?? '', 0);
  const to = parseTime(params.get('to') ?? '', 0);
  if (from !== null && to !== null && from !== to) return fixed(from, to);
  const last = parseSpan(params.get('last') ?? '');
  return last === null ? DEFAULT_RANGE : { live: true, span: last };
}

/** The link of a view; what is at its default is left out. */
export function formatView(v: View): string {
  const path = v.page === 'fleet' || v.page === 'missing'
    ? '/'
    : `/server/${encodeURIComponent(v.id)}${v.page === 'server' ? '' : `/${v.page}`}`;
  const q: string[] = [];
  if (!v.range.live) q.push(`from=${linkTime(v.range.from)}`, `to=${linkTime(v.range.to)}`);
  else if (!sameRange(v.range, DEFAULT_RANGE)) q.push(`last=${spanText(v.range.span)}`);
  if (v.at !== null) q.push(`at=${linkTime(v.at)}`);
  if (v.sort) q.push(`sort=${encodeURIComponent(v.sort)}`);
  if (v.q) q.push(`q=${encodeURIComponent(v.q)}`);
  for (const p of v.pins) q.push(`pin=${encodeURIComponent(p)}`);
  return q.length ? `${path}?${q.join('&')}` : path;
}

// Readable in a ticket and the same for everybody: UTC, to the second.
function linkTime(t: number): string {
  return new Date(t * 1000).toISOString().slice(0, 19) + 'Z';
}
