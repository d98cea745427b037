/** What is watched: servers and hosts, their numbers, events and variables. Null in an array is a gap, rates of counters come ready as per second. */
import { get, only, setClock, type Pairs } from './http';

/** How bad an instance or a finding is; the server decides, the page only draws. */
export type State = 'ok' | 'warning' | 'critical' | 'down' | 'new';
/** How bad a finding or an event is. */
export type Severity = 'info' | 'warning' | 'critical';

/** Something wrong now, in words, with the command that fixes it. */
export interface Finding {
  id: string;
  /** tells findings of one id apart: the channel, the disk, the connection */
  subject?: string;
  severity: Severity;
  since?: string;
  /** one sentence: what, how much, since when */
  what: string;
  remedy?: string;
  /** the chart on the server page that shows it */
  chart?: string;
  /** how bad, in the finding's own measure */
  value?: number;
}

/** Findings of an instance that come from what is wrong with another. */
export interface Because {
  /** empty: Risso does not watch it */
  instance: string;
  name: string;
  /** what is wrong there, such as server.down; empty: only its replicas have trouble */
  finding?: string;
  what: string;
  explains: { instance: string; finding: string; subject?: string }[] | null;
  /** it has no finding but these */
  all: boolean;
}

/** A finding that was kept. */
export interface FindingRecord {
  record: number;
  instance: string;
  first: Finding;
  worst: Finding;
  worst_at: string;
  told: string;
  /** when it was last known to hold */
  seen: string;
  ended?: string;
  /** it ended at some moment after seen, in which nobody looked */
  unseen?: boolean;
  /** what was seen at its worst */
  evidence?: unknown;
}

/** Something that is wrong or missing, why, and the remedy. */
export interface Trouble {
  what?: string;
  why?: string;
  remedy?: string;
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
  because?: Because[] | null;
  group?: string;
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
  gaps: Trouble[] | null;
  cost: {
    queries_per_second: number | null;
    server_ms_per_second: number | null;
    bytes_per_second: number | null;
    values_per_second: number | null;
  } | null;
  facts: Record<string, string> | null;
  /** why a server is down, and the remedy */
  down: Trouble;
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

/** Everything watched, worst first. Also sets the clock of serverNow. */
export async function fetchFleet(): Promise<Fleet> {
  const fleet = await get<Fleet>('/api/fleet');
  setClock(fleet.now);
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

/** What changed on a server after a mark, in words. */
export interface After {
  before: { from: number; to: number; minutes: number };
  after: { from: number; to: number; minutes: number };
  /** false while the time after is not over */
  complete: boolean;
  servers: { instance: string; name: string; words: string[] | null; enough: boolean; why?: string }[] | null;
}

/** What changed after an event that marks a moment. */
export function fetchAfter(event: number): Promise<After> {
  return get<After>('/api/events/after', [['id', event]]);
}

/** Kept findings that held at some moment of a range, the newest first; of one instance, or all when it is empty. */
export async function fetchFindings(id: string, from: number, to: number, limit = 500): Promise<FindingRecord[]> {
  const q: Pairs = [...only('instance', id), ['from', Math.floor(from)], ['to', Math.ceil(to)], ['limit', limit]];
  return (await get<{ findings: FindingRecord[] | null }>('/api/findings', q)).findings ?? [];
}

/** The global variables as they were at a moment. */
export async function fetchVariables(id: string, at: number): Promise<Variable[]> {
  const q: [string, string | number][] = [['instance', id], ['at', Math.floor(at)]];
  return (await get<{ variables: Variable[] | null }>('/api/variables', q)).variables ?? [];
}

/** What Risso itself costs. */
export function fetchSelf(): Promise<Self> {
  return get<Self>('/api/self');
}
