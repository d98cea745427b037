/** Classes of statements: what they cost, their plans, what changed. */
import { type Pairs, type Span, get, only } from './http';
import { type Trouble } from './watch';

/** What statements cost in a range; null is not known. */
export interface Cost {
  calls: number;
  seconds: number;
  lock_seconds: number;
  rows_sent: number;
  rows_examined: number;
  rows_affected: number;
  errors: number;
  warnings: number;
  tmp_tables: number;
  tmp_disk_tables: number;
  no_index: number;
  sort_rows: number;
  /** the slowest call, seconds; 0 is not known */
  max: number;
  avg: number | null;
  rows_examined_per_sent: number | null;
}

/** Quantiles of the calls whose latency the server counts, in seconds. */
export interface Latency {
  p50: number;
  p95: number;
  p99: number;
  calls: number;
}

/** How well statements are collected from one server. */
export interface StatementSource {
  instance: string;
  source: string;
  working: boolean;
  last?: number;
  why?: string;
  remedy?: string;
  notes: Trouble[] | null;
  /** whether plans are taken, and why some are not */
  plans?: boolean;
  plan_note?: string;
}

/** A moment at which a class was first seen with another plan. */
export interface Flip {
  instance: string;
  schema?: string;
  time: number;
  old: string;
  new: string;
}

/** One class in the list of the heaviest. */
export interface QueryRow extends Cost {
  id: string;
  fingerprint: string;
  verb: string;
  tables: string;
  share: number | null;
  latency: Latency | null;
  instances: number;
  first_seen: number;
  last_seen: number;
  new: boolean;
  spark: (number | null)[] | null;
  /** plan flips in the range, if the server says */
  flips?: number;
  /** its heaviest wait class in the range; null where nothing was sampled */
  wait?: Part | null;
}

/** When a server's statements were read; minutes outside of the spans were not. */
export interface Covered {
  instance: string;
  spans: [number, number][];
}

/** No statements are kept; why, and the remedy. */
export interface Unavailable {
  available: false;
  why: string;
  remedy: string;
}

/** The heaviest classes of a range. */
export interface Queries {
  available: true;
  from: number;
  to: number;
  classes: QueryRow[] | null;
  /** classes that ran in the range */
  count: number;
  /** the earliest minute kept; 0 when there is none */
  first: number;
  total: Cost;
  spark: { from: number; step: number };
  covered?: Covered[] | null;
  sources: StatementSource[] | null;
  orders: string[] | null;
}

/** What a class cost under one value of something. */
export interface Part {
  value: string;
  calls: number;
  seconds: number;
}

/** A statement as it was run. */
export interface QuerySample {
  instance: string;
  time: number;
  text: string;
  seconds: number;
  schema?: string;
  user?: string;
  host?: string;
}

/** A plan that a class had. */
export interface QueryPlan {
  instance: string;
  schema?: string;
  id: string;
  first: number;
  last: number;
  origin: string;
  /** as returned by the server */
  text: string;
  /** drawn as a tree of text; without it there is no drawing either */
  tree?: string;
  /** what it says, worst first */
  words?: PlanWord[] | null;
}

/** A sentence about a node of a plan. */
export interface PlanWord {
  node: number;
  severity: 'bad' | 'costly' | 'note';
  text: string;
}

/** Classes whose statements others waited for. */
export interface Blocker {
  /** empty: its statement is not known */
  id: string;
  fingerprint: string;
  wait: string;
  calls: number;
  seconds: number;
}

/** The columns of a class's history, one value for each step; rows are per second, errors and temporary tables per step. */
export type QuerySeries = { time: number[] } & Record<string, (number | null)[]>;

/** One class of statements. */
export interface Query {
  available: true;
  from: number;
  to: number;
  step: number;
  id: string;
  pt_id: string;
  fingerprint: string;
  verb: string;
  tables: string;
  first_seen: number;
  last_seen: number;
  digests: { instance: string; digest: string; first_seen: number; last_seen: number }[] | null;
  total: Cost;
  latency: Latency | null;
  series: QuerySeries;
  by_instance: Part[] | null;
  by_schema: Part[] | null;
  by_user: Part[] | null;
  /** sampled seconds by wait class */
  waits: Part[] | null;
  by_host?: Part[] | null;
  /** the source of who ran it: statements, activity, samples or nothing */
  by_user_from?: string;
  blocked_by?: Blocker[] | null;
  activity?: { calls: number; seconds: number; note: string };
  /** why there is no plan */
  plan_note?: string;
  covered?: Covered[] | null;
  samples: QuerySample[] | null;
  plans: QueryPlan[] | null;
  flips: Flip[] | null;
  sources: StatementSource[] | null;
}

/** What became of a class from one range to another. */
export type ChangeKind = 'new' | 'gone' | 'slower' | 'faster' | 'oftener' | 'rarer' | 'same';

/** One class in two ranges: a before, b after. */
export interface QueryChange {
  id: string;
  fingerprint: string;
  verb: string;
  kind: ChangeKind;
  first_seen: number;
  a: Cost;
  b: Cost;
  /** change of the load, in seconds of statements per second */
  delta: number;
  share: number | null;
  avg_factor: number | null;
  rate_factor: number | null;
  flips: Flip[] | null;
}

/** What changed between two ranges, the largest change first. */
export interface QueryChanges {
  available: true;
  a: Cost;
  b: Cost;
  changes: QueryChange[] | null;
  count: number;
  cut: boolean;
  sources: StatementSource[] | null;
}

/** The heaviest classes of one instance, or of all when it is empty. */
export function fetchQueries(
  ask: Span & { instance: string; order: string; limit: number; search: string; schema: string; points: number },
  signal?: AbortSignal,
): Promise<Queries | Unavailable> {
  const q: Pairs = [...only('instance', ask.instance), ['from', ask.from], ['to', ask.to], ...only('order', ask.order), ['limit', ask.limit],
    ...only('search', ask.search), ...only('schema', ask.schema), ['points', ask.points]];
  return get('/api/queries', q, signal);
}

/** What ran in each default schema, the most costly first; nothing where no statements are kept. */
export async function fetchSchemas(span: Span, instance: string, signal?: AbortSignal): Promise<Part[]> {
  const q: Pairs = [...only('instance', instance), ['from', span.from], ['to', span.to]];
  return (await get<{ schemas?: Part[] | null }>('/api/queries/schemas', q, signal)).schemas ?? [];
}

/** One class: its history, who runs it, samples and plans. */
export function fetchQuery(id: string, instance: string, span: Span, points: number, signal?: AbortSignal): Promise<Query | Unavailable> {
  return get('/api/query', [['id', id], ...only('instance', instance), ['from', span.from], ['to', span.to], ['points', points]], signal);
}

/** Where a plan's drawing is; bare is the tree alone, without a title and the words. */
export function planImage(cls: string, id: string, instance: string, theme: string, bare: boolean): string {
  const q = new URLSearchParams({ class: cls, id, instance, theme });
  if (bare) q.set('bare', '1');
  return `/api/plan?${q}`;
}

/** What changed from one span to a later one. */
export function fetchChanges(before: Span, after: Span, instance: string, schema: string, limit: number, signal?: AbortSignal): Promise<QueryChanges | Unavailable> {
  const q: Pairs = [['from', before.from], ['to', before.to], ['from2', after.from], ['to2', after.to], ...only('instance', instance), ...only('schema', schema), ['limit', limit]];
  return get('/api/queries/compare', q, signal);
}
