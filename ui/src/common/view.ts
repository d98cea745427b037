/**
 * The view as a link: every page, range, pinned chart, cursor, sorting and search is in the URL,
 * so Back works and a pasted link shows what its sender saw.
 */
import { DEFAULT_RANGE, fixed, parseSpan, parseTime, sameRange, spanText, type Range } from './range';

/** The pages. */
export type Page = 'fleet' | 'server' | 'metrics' | 'variables' | 'events' | 'queries' | 'query' | 'benchmarks' | 'benchmark' | 'protect' | 'advice' | 'alerts' | 'incidents' | 'incident' | 'film' | 'sizes' | 'topology' | 'groups' | 'missing';

/** With what a range is compared: the one before it, or the same hours a day or a week ago; empty for no comparison. */
export type Versus = '' | 'before' | 'day' | 'week';

/** Everything that a link reproduces. */
export interface View {
  page: Page;
  /** the instance; empty on the fleet page */
  id: string;
  range: Range;
  /** keys of metrics pinned as separate charts */
  pins: string[];
  /** the pinned cursor, unix seconds */
  at: number | null;
  /** column to sort by, "-" before it for descending; empty is the page's own order */
  sort: string;
  /** text that filters a list */
  q: string;
  /** the class of statements, the number of the benchmark or incident, or the name of the group, on its own page */
  cls: string;
  /** the number of the benchmark next to it */
  beside: string;
  /** the schema that statements are filtered by */
  schema: string;
  vs: Versus;
  /** the long list instead of the heaviest; all of the timeline instead of the last weeks */
  more: boolean;
  /** what of the fleet is shown; empty for all */
  state: string;
  group: string;
  flavour: string;
  /** the kind of advice, such as schema.no_pk; empty for all */
  kind: string;
  /** causes whose effects are shown one by one; advice that is unfolded */
  open: string[];
}

const TABS: readonly Page[] = ['metrics', 'variables', 'events', 'sizes'];
const VERSUS: readonly Versus[] = ['before', 'day', 'week'];

/** What the pages of statements show when a link says nothing: they count by the minute. */
export const QUERIES_RANGE: Range = { live: true, span: 3600 };

/** Whether a page is about statements; these also exist for the whole fleet. */
export function aboutQueries(page: Page): boolean {
  return page === 'queries' || page === 'query';
}

/** Whether a page is about incidents, or replays a moment. */
export function aboutIncidents(page: Page): boolean {
  return page === 'incidents' || page === 'incident';
}

/** Whether a page is about benchmarks. */
export function aboutBenchmarks(page: Page): boolean {
  return page === 'benchmarks' || page === 'benchmark';
}

// Pages of what rang and what stalled begin with a day: a night and more.
const DAY_RANGE: Range = { live: true, span: 86400 };

function defaultRange(page: Page): Range {
  if (aboutQueries(page)) return QUERIES_RANGE;
  return page === 'alerts' || aboutIncidents(page) ? DAY_RANGE : DEFAULT_RANGE;
}

/** The range on the way to another page: what nobody chose becomes what the other page begins with. */
export function rangeOn(v: View, page: Page): Range {
  const day = [v.page, page].some((p) => p === 'alerts' || aboutIncidents(p));
  return day && sameRange(v.range, defaultRange(v.page)) ? defaultRange(page) : v.range;
}

/** The fleet page, as an empty link shows it. */
export const HOME: View = { page: 'fleet', id: '', range: DEFAULT_RANGE, pins: [], at: null, sort: '', q: '', cls: '', beside: '', schema: '', vs: '', more: false, state: '', group: '', flavour: '', kind: '', open: [] };

/** Reads a view from a path and a query; nonsense in the query falls back to the default. */
export function parseView(path: string, query: string): View {
  const params = new URLSearchParams(query);
  const where = parsePath(path);
  return {
    ...where,
    range: parseRange(params, defaultRange(where.page)),
    pins: [...new Set(params.getAll('pin').filter((p) => p !== ''))],
    at: params.has('at') ? parseTime(params.get('at') ?? '', 0) : null,
    sort: params.get('sort') ?? '',
    q: params.get('q') ?? '',
    beside: where.page === 'benchmark' ? (params.get('beside') ?? '') : '',
    schema: params.get('schema') ?? '',
    vs: VERSUS.find((v) => v === params.get('vs')) ?? '',
    more: params.get('more') === '1',
    state: params.get('state') ?? '',
    group: params.get('group') ?? '',
    flavour: params.get('flavour') ?? '',
    kind: where.page === 'advice' ? (params.get('kind') ?? '') : '',
    open: params.getAll('open'),
  };
}

function parsePath(path: string): Pick<View, 'page' | 'id' | 'cls'> {
  const parts = path.split('/').filter((p) => p !== '');
  if (parts.length === 0) return { page: 'fleet', id: '', cls: '' };
  let id = '';
  if (parts[0] === 'server' && parts.length >= 2) {
    id = safeDecode(parts[1]);
    if (parts.length === 2) return { page: 'server', id, cls: '' };
    const tab = TABS.find((t) => t === parts[2]);
    if (tab && parts.length === 3) return { page: tab, id, cls: '' };
    parts.splice(0, 2);
  }
  if (parts[0] === 'queries' && parts.length === 1) return { page: 'queries', id, cls: '' };
  if (parts[0] === 'queries' && parts.length === 2) return { page: 'query', id, cls: safeDecode(parts[1]) };
  if (parts[0] === 'benchmarks' && parts.length === 1) return { page: 'benchmarks', id, cls: '' };
  if (parts[0] === 'benchmarks' && parts.length === 2 && id === '') return { page: 'benchmark', id: '', cls: safeDecode(parts[1]) };
  if (parts[0] === 'incidents' && parts.length === 2) return { page: 'incident', id, cls: safeDecode(parts[1]) };
  if (parts[0] === 'topology' && parts.length === 1 && id === '') return { page: 'topology', id, cls: '' };
  if (parts[0] === 'groups' && parts.length <= 2 && id === '') return { page: 'groups', id, cls: safeDecode(parts[1] ?? '') };
  if (parts.length === 1) {
    const page = (['protect', 'advice', 'alerts', 'incidents'] as const).find((p) => p === parts[0]) ?? (parts[0] === 'film' && id ? 'film' : undefined);
    if (page) return { page, id, cls: '' };
  }
  return { page: 'missing', id: '', cls: '' };
}

function safeDecode(s: string): string {
  try {
    return decodeURIComponent(s);
  } catch {
    return s;
  }
}

function parseRange(params: URLSearchParams, otherwise: Range): Range {
  const from = parseTime(params.get('from') ?? '', 0);
  const to = parseTime(params.get('to') ?? '', 0);
  if (from !== null && to !== null && from !== to) return fixed(from, to);
  const last = parseSpan(params.get('last') ?? '');
  return last === null ? otherwise : { live: true, span: last };
}

function pathOf(v: View): string {
  const of = v.id === '' ? '' : `/server/${encodeURIComponent(v.id)}`;
  switch (v.page) {
    case 'fleet': case 'missing': return '/';
    case 'server': return of;
    case 'queries': return `${of}/queries`;
    case 'query': return `${of}/queries/${encodeURIComponent(v.cls)}`;
    case 'groups': return v.cls ? `/groups/${encodeURIComponent(v.cls)}` : '/groups';
    case 'benchmark': return `/benchmarks/${encodeURIComponent(v.cls)}`;
    case 'incident': return `${of}/incidents/${encodeURIComponent(v.cls)}`;
    default: return `${of}/${v.page}`;
  }
}

/** The link of a view; what is at its default is left out. */
export function formatView(v: View): string {
  const path = pathOf(v);
  const q: string[] = [];
  if (!v.range.live) q.push(`from=${linkTime(v.range.from)}`, `to=${linkTime(v.range.to)}`);
  else if (!sameRange(v.range, defaultRange(v.page))) q.push(`last=${spanText(v.range.span)}`);
  if (v.at !== null) q.push(`at=${linkTime(v.at)}`);
  if (v.sort) q.push(`sort=${encodeURIComponent(v.sort)}`);
  if (v.q) q.push(`q=${encodeURIComponent(v.q)}`);
  if (aboutQueries(v.page)) {
    if (v.schema) q.push(`schema=${encodeURIComponent(v.schema)}`);
    if (v.vs) q.push(`vs=${v.vs}`);
    if (v.more) q.push('more=1');
  }
  if (v.page === 'protect' && v.more) q.push('more=1');
  if (v.page === 'benchmark' && v.beside) q.push(`beside=${encodeURIComponent(v.beside)}`);
  if (v.page === 'fleet') {
    for (const name of ['state', 'group', 'flavour'] as const) if (v[name]) q.push(`${name}=${encodeURIComponent(v[name])}`);
    for (const o of v.open) q.push(`open=${encodeURIComponent(o)}`);
  }
  for (const p of v.pins) q.push(`pin=${encodeURIComponent(p)}`);
  if (v.page === 'advice') {
    if (v.state) q.push(`state=${encodeURIComponent(v.state)}`);
    if (v.group) q.push(`group=${encodeURIComponent(v.group)}`);
    if (v.kind) q.push(`kind=${encodeURIComponent(v.kind)}`);
    for (const o of v.open) q.push(`open=${encodeURIComponent(o)}`);
  }
  return q.length ? `${path}?${q.join('&')}` : path;
}

// Readable in a ticket and the same for everybody: UTC, to the second.
function linkTime(t: number): string {
  return new Date(t * 1000).toISOString().slice(0, 19) + 'Z';
}
