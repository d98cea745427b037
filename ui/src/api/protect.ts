/** Backups, drills, and the jobs that make them. */
import { type Span, get, request } from './http';
import { type Finding } from './watch';

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

/** A current run, or a job that waits for its turn (run 0). */
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
  /** It looks whether all is well, and is no part of the recovery. */
  check?: boolean;
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

/** What a drill wrote down, as stored next to the backup. */
export interface DrillProof {
  on?: string;
  of?: string;
  host?: string;
  stages?: DrillStage[] | null;
  failures?: string[] | null;
  notes?: string[] | null;
  compare?: { tables: number; rows: number; different: string[] | null };
  /** Rows of a physical backup, which has no sums; since is the drill that they were compared with. */
  counted?: { tables: number; rows: number; since?: string; different: string[] | null } | null;
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

/** Ends a current run. */
export function stopRun(id: number): Promise<unknown> {
  return request<unknown>(`/api/protect/stop?id=${id}`, { method: 'POST' });
}
