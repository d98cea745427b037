/**
 * The one place that speaks HTTP with the server. Times are unix seconds, null in an array is a
 * gap, rates of counters come ready as per second.
 */
import { signal } from '@preact/signals';

/** How bad an instance or a finding is; the server decides, the page only draws. */
export type State = 'ok' | 'warning' | 'critical' | 'down' | 'new';
/** How bad a finding or an event is. */
export type Severity = 'info' | 'warning' | 'critical';

/** Something wrong now, in words, with the command that mends it. */
export interface Finding {
  id: string;
  severity: Severity;
  since: string;
  words: string;
  remedy?: string;
  /** the chart on the server page that shows it */
  chart?: string;
}

/** Something that could not be collected, why, and what mends it. */
export interface Gap {
  what: string;
  reason: string;
  remedy: string;
}

/** A short series for a table row; null is a gap. */
export interface Spark {
  start: number;
  step: number;
  avg: (number | null)[];
  min: (number | null)[];
  max: (number | null)[];
}

/** One watched server or host, as the fleet table shows it. */
export interface Instance {
  id: string;
  name: string;
  kind: 'server' | 'host';
  address: string;
  flavour?: string;
  version?: string;
  role?: string;
  host_id?: string;
  state: State;
  words: string;
  since: number;
  seen: number;
  qps: number | null;
  threads_running: number | null;
  lag: number | null;
  cpu: number | null;
  findings: Finding[] | null;
  spark?: Spark | null;
}

/** All that is watched, at one moment. */
export interface Fleet {
  now: number;
  version: string;
  instances: Instance[] | null;
}

/** One instance with what only its own page shows. */
export interface InstanceDetail extends Instance {
  uptime: number | null;
  gaps: Gap[] | null;
  cost: {
    queries_per_second: number | null;
    server_ms_per_second: number | null;
    bytes_per_second: number | null;
    values_per_second: number | null;
  } | null;
  facts: Record<string, string> | null;
  /** what mends a server that is down */
  hint?: string;
  host?: string;
}

/** One of the series of an instance. */
export interface Metric {
  key: string;
  name: string;
  labels: Record<string, string> | null;
  type: 'counter' | 'gauge';
  unit: string;
  help: string;
  source: string;
  last: number | null;
  constant: boolean;
}

/** The buckets of one series; with a step of 1 only avg is there. */
export interface ChartSeries {
  key: string;
  type: 'counter' | 'gauge';
  unit: string;
  avg: (number | null)[];
  min?: (number | null)[] | null;
  max?: (number | null)[] | null;
  p5?: (number | null)[] | null;
  p95?: (number | null)[] | null;
}

/** The answer to a chart request; bucket i starts at from + i × step. */
export interface ChartData {
  from: number;
  to: number;
  step: number;
  series: ChartSeries[] | null;
}

/** Something that happened to an instance. */
export interface Event {
  id: number;
  time: string;
  instance: string;
  kind: string;
  severity: Severity;
  subject?: string;
  old?: string;
  new?: string;
  text: string;
}

/** A global variable and when Risso last saw it change. */
export interface Variable {
  name: string;
  value: string;
  changed: number | null;
}

/** A run of risso bench in the list. */
export interface BenchmarkRow {
  id: number;
  began: string;
  ended: string;
  /** empty: the server is not watched */
  instance: string;
  workload: string;
  server: string;
  version: string;
  threads: number;
  /** transactions a second that were asked for; 0: as many as could be */
  rate: number;
  transactions_per_second: number;
  queries_per_second: number;
  p95: number;
  p99: number;
  errors: number;
  /** seconds without any success */
  outage: number;
  interrupted: boolean;
}

/** One second of a run. */
export interface BenchmarkSecond {
  /** since the start of the measured time; below 0: warm-up */
  second: number;
  transactions: number;
  errors?: number;
  p50: number;
  p95: number;
  p99: number;
  max: number;
  backlog?: number;
}

/** How long transactions took, in seconds. */
export interface BenchmarkLatency {
  min: number;
  avg: number;
  max: number;
  percentiles: { percentile: number; seconds: number }[] | null;
}

/** What a run measured: the result of risso bench run. */
export interface BenchmarkResult {
  workload: string;
  parameters?: Record<string, unknown> | null;
  server: string;
  server_version?: string;
  began: string;
  threads: number;
  rate?: number;
  warmup_seconds: number;
  seconds: number;
  interrupted?: boolean;
  transactions: number;
  transactions_per_second: number;
  queries_per_second: number;
  latency: BenchmarkLatency;
  errors?: { label: string; message: string; count: number }[] | null;
  outages?: { from: number; milliseconds: number; errors: boolean }[] | null;
  backlog?: { max: number; never_started: number } | null;
  ledger?: { acknowledged: number; missing: number; error?: string } | null;
  timeline: BenchmarkSecond[] | null;
  environment?: BenchmarkEnvironment | null;
}

/** Under which conditions a run was made. */
export interface BenchmarkEnvironment {
  client: { hostname?: string; cpu_model?: string; cpus?: number; governor?: string; virtual?: string; kernel?: string; memory_bytes?: number; transparent_huge_pages?: string; load?: Record<string, number>; limits?: BenchmarkLimits };
  server_host?: { limits?: BenchmarkLimits; data?: { file_system: string; options: string; device?: string; scheduler?: string; rotational?: boolean; mount: string } } | null;
  server: { flavour: string; version: string; changed?: { name: string; value: string; source?: string }[] | null; all_variables?: boolean };
  connection: { kind: string; address: string; tls?: string; network?: string };
}

/** What a control group allows. */
export interface BenchmarkLimits {
  slice?: string;
  cpus?: number;
  cpuset?: string;
  memory_bytes?: number;
}

/** A run that is kept. */
export interface Benchmark {
  id: number;
  instance: string;
  /** unix seconds, with the warm-up */
  from: number;
  to: number;
  result: BenchmarkResult;
}

/** What Risso itself costs. */
export interface Self {
  cpu_cores: number | null;
  rss_bytes: number | null;
  bytes_written_per_second: number | null;
  samples_per_second: number | null;
  disk_bytes: number | null;
  instances: number;
  version: string;
  started: number;
}

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

/** How collecting statements from one server goes. */
export interface StatementSource {
  instance: string;
  source: string;
  working: boolean;
  last?: number;
  why?: string;
  remedy?: string;
  notes: Gap[] | null;
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
  /** plan flips in the range, where the server tells */
  flips?: number;
  /** its heaviest wait class in the range; null where nothing was sampled */
  wait?: Part | null;
}

/** When a server's statements were read; minutes outside of the spans were not. */
export interface Covered {
  instance: string;
  spans: [number, number][];
}

/** No statements are kept; why, and what mends it. */
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
  /** as the server gave it */
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
  /** what told who ran it: statements, activity, samples or nothing */
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

/** What a job of protection does. */
export type JobKind = 'backup' | 'copy' | 'prune' | 'mirror' | 'drill' | 'verify' | 'checksum';

/** A whole backup at its place. */
export interface ProtectBackup {
  place: string;
  id: string;
  kind: string;
  parent?: string;
  began: number;
  ended: number;
  /** before compression */
  bytes: number;
  /** that it added to the place */
  stored: number;
  tables: number;
  rows: number;
  position: string;
  kept?: { keep: boolean; reasons: string[] | null };
  /** ids of the drills that restored it */
  proofs?: number[];
  /** when a drill found it good, last */
  proven?: number;
}

/** One time that a job was done. */
export interface ProtectRun {
  id: number;
  job: string;
  kind: JobKind;
  place: string;
  backup?: string;
  began: number;
  ended: number | null;
  outcome: 'running' | 'ok' | 'failed' | 'interrupted';
  text: string;
  result?: unknown;
}

/** Something that is done again and again. */
export interface ProtectJob {
  name: string;
  kind: JobKind;
  schedule: string;
  after?: string;
  due: number | null;
  last: ProtectRun | null;
}

/** A run that goes on, or a job that waits for its turn (run 0). */
export interface ProtectRunning {
  run: number;
  job: string;
  kind: JobKind;
  began: number;
  waits: string;
  stage: string;
  done: number;
  total: number;
  unit: string;
  rate: number;
  left: number | null;
}

/** What is configured for a server. */
export interface ProtectPlan {
  place: string;
  copy_to?: string;
  kind: string;
  retention?: string;
  encrypted: boolean;
  mirror: boolean;
}

/** How one server is protected. */
export interface Protected {
  id: string;
  name: string;
  address: string;
  watched: boolean;
  plan: ProtectPlan | null;
  /** the server whose backups hold the data of this one, a replica without a plan */
  source?: string;
  state: 'ok' | 'warning' | 'critical';
  words: string;
  findings: Finding[] | null;
  last_backup: ProtectBackup | null;
  last_proven: ProtectBackup | null;
  proven_at: number | null;
  /** seconds until a server answered with the data, as the last good drill measured */
  recovery: number | null;
  /** any moment in it can be restored */
  window: Span | null;
  gap?: string;
  next: ProtectJob | null;
  running: ProtectRunning[] | null;
  jobs: ProtectJob[] | null;
}

/** A stage of a drill and how long it took. */
export interface DrillStage {
  name: string;
  seconds: number;
}

/** What a rehearsed restore found. */
export interface ProtectDrill {
  id: number;
  place: string;
  backup: string;
  began: number;
  ended: number;
  passed: boolean;
  recovery: number;
  reached: number | null;
  text: string;
  proof: DrillProof | null;
}

/** What a drill wrote down, as it lies beside the backup. */
export interface DrillProof {
  on?: string;
  of?: string;
  host?: string;
  stages?: DrillStage[] | null;
  failures?: string[] | null;
  notes?: string[] | null;
  compare?: { tables: number; rows: number; different: string[] | null };
  check_table?: { tables: number; problems: string[] | null };
  rolled?: { transactions: number } | null;
  queries?: { sql: string; expect: string; got: string; passed: boolean }[] | null;
}

/** All of the protection of one server. */
export interface ProtectDetail {
  now: number;
  server: Protected;
  backups: ProtectBackup[] | null;
  drills: ProtectDrill[] | null;
  runs: ProtectRun[] | null;
}

/** One run with its log. */
export interface ProtectRunDetail {
  run: ProtectRun;
  stage: string;
  done: number;
  total: number;
  unit: string;
  noted: number | null;
  log: { time: number; text: string }[] | null;
  running: ProtectRunning | null;
}

/** An answer that was not what was asked for; the hint says what to do. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly hint: string = '',
  ) {
    super(message);
  }
}

/** True when the server asked for a token; the page then shows the login form. */
export const needLogin = signal(false);
/** Since when (viewer's clock, ms) the server does not answer; null while it does. */
export const silentSince = signal<number | null>(null);
/** Server's clock minus the viewer's, in seconds. */
let skew = 0;

/** The server's idea of now, in unix seconds. */
export function serverNow(): number {
  return Date.now() / 1000 + skew;
}

const TIMEOUT_MS = 15_000;

async function request<T>(path: string, init: RequestInit, signal?: AbortSignal): Promise<T> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  const both = signal ? AbortSignal.any([signal, timeout]) : timeout;
  let response: Response;
  try {
    response = await fetch(path, { ...init, signal: both, headers: { Accept: 'application/json', ...init.headers } });
  } catch (e) {
    if (signal?.aborted) throw e;
    silentSince.value ??= Date.now();
    throw new ApiError(0, 'Risso does not answer');
  }
  silentSince.value = null;
  if (response.status === 401) needLogin.value = true;
  if (!response.ok) {
    const body = (await response.json().catch(() => ({}))) as { error?: string; hint?: string };
    throw new ApiError(response.status, body.error ?? `${response.status} ${response.statusText}`, body.hint);
  }
  return (await response.json()) as T;
}

function get<T>(path: string, query: [string, string | number][] = [], signal?: AbortSignal): Promise<T> {
  const params = new URLSearchParams(query.map(([k, v]) => [k, String(v)]));
  const text = params.toString();
  return request<T>(text ? `${path}?${text}` : path, {}, signal);
}

/** Everything watched, worst first. Also sets the clock that serverNow tells. */
export async function fetchFleet(): Promise<Fleet> {
  const fleet = await get<Fleet>('/api/fleet');
  const seen = fleet.now - Date.now() / 1000;
  // Follow big differences at once, small ones slowly: jitter of the network is no clock.
  skew = Math.abs(seen - skew) > 1 ? seen : skew + (seen - skew) / 8;
  return fleet;
}

/** One instance with its gaps, facts and what watching it costs. */
export function fetchInstance(id: string): Promise<InstanceDetail> {
  return get<InstanceDetail>('/api/instance', [['id', id]]);
}

/** All series of an instance with their last values. */
export async function fetchMetrics(id: string): Promise<Metric[]> {
  return (await get<{ metrics: Metric[] | null }>('/api/metrics', [['instance', id]])).metrics ?? [];
}

/** Buckets of several series over one range. */
export function fetchChart(
  id: string,
  keys: string[],
  from: number,
  to: number,
  points: number,
  signal?: AbortSignal,
): Promise<ChartData> {
  return get<ChartData>(
    '/api/chart',
    [['instance', id], ['from', from], ['to', to], ['points', points], ...keys.map((k): [string, string] => ['key', k])],
    signal,
  );
}

/** What happened to an instance in a range, oldest first. */
export async function fetchEvents(id: string, from: number, to: number, limit = 500): Promise<Event[]> {
  const q: [string, string | number][] = [['instance', id], ['from', Math.floor(from)], ['to', Math.ceil(to)], ['limit', limit]];
  const events = (await get<{ events: Event[] | null }>('/api/events', q)).events ?? [];
  return events.sort((a, b) => Date.parse(a.time) - Date.parse(b.time));
}

/** The global variables as they stood at a moment. */
export async function fetchVariables(id: string, at: number): Promise<Variable[]> {
  const q: [string, string | number][] = [['instance', id], ['at', Math.floor(at)]];
  return (await get<{ variables: Variable[] | null }>('/api/variables', q)).variables ?? [];
}

/** A span of time in unix seconds, up to but without its end. */
export interface Span {
  from: number;
  to: number;
}

type Pairs = [string, string | number][];

const only = (name: string, value: string): Pairs => (value === '' ? [] : [[name, value]]);

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

/** The runs that are kept, the latest first; of one instance, or all when it is empty. */
export async function fetchBenchmarks(instance: string, signal?: AbortSignal): Promise<BenchmarkRow[]> {
  return (await get<{ benchmarks: BenchmarkRow[] | null }>('/api/benchmarks', only('instance', instance), signal)).benchmarks ?? [];
}

/** One run whole. */
export function fetchBenchmark(id: string, signal?: AbortSignal): Promise<Benchmark> {
  return get('/api/benchmark', [['id', id]], signal);
}

/** Forgets a run. */
export function removeBenchmark(id: number): Promise<unknown> {
  return request<unknown>(`/api/benchmark?id=${id}`, { method: 'DELETE' });
}

/** How every server is protected, the worst first. */
export async function fetchProtect(): Promise<Protected[]> {
  return (await get<{ servers: Protected[] | null }>('/api/protect')).servers ?? [];
}

/** All of the protection of one server. */
export function fetchProtected(id: string): Promise<ProtectDetail> {
  return get('/api/protect/server', [['id', id]]);
}

/** One run with its log. */
export function fetchProtectRun(id: number): Promise<ProtectRunDetail> {
  return get('/api/protect/run', [['id', id]]);
}

/** Makes a job due now. */
export function startJob(job: string): Promise<unknown> {
  return request<unknown>(`/api/protect/start?job=${encodeURIComponent(job)}`, { method: 'POST' });
}

/** Ends a run that goes on. */
export function stopRun(id: number): Promise<unknown> {
  return request<unknown>(`/api/protect/stop?id=${id}`, { method: 'POST' });
}

/** What Risso itself costs. */
export function fetchSelf(): Promise<Self> {
  return get<Self>('/api/self');
}

/** Trades the token for a cookie. */
export async function login(token: string): Promise<void> {
  await request<unknown>('/api/login', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ token }),
  });
  needLogin.value = false;
}
