/** Moments that were kept second by second, and incidents: the seconds around a stall, told as a story. */
import { get, only, type Pairs } from './http';
import type { Event, Severity } from './watch';

/** A part of time for which nothing is kept. */
export interface Missing {
  from: number;
  to: number;
  why: string;
}

/** A session in a moment; idle ones only while they are in a transaction or block somebody. */
export interface Session {
  id: number;
  user: string;
  host: string;
  schema?: string;
  command: string;
  state?: string;
  /** what it waits for, such as row_lock; "running", or "idle" */
  wait: string;
  seconds: number;
  statement?: string;
  /** for so many seconds in a transaction */
  transaction?: number;
  trx?: string;
  rows_locked?: number;
  rows_modified?: number;
  /** the connection that it waits for */
  blocker?: number;
}

/** One session that waits for a lock that another holds. */
export interface LockWait {
  waiter: number;
  kind: string;
  schema?: string;
  name?: string;
  index?: string;
  data?: string;
  mode?: string;
  held?: string;
  /** the other only waits for it as well, ahead in the queue */
  queued?: boolean;
  /** not proven: nothing else fits */
  maybe?: boolean;
  blocker: { id: number; user?: string; host?: string; command?: string; state?: string; seconds?: number; statement?: string; transaction?: number };
}

/** A session behind which others wait. */
export interface Blocking {
  id: number;
  blocks: number;
  what: string;
  /** what ends it */
  ends?: string;
}

/** A deadlock as InnoDB saw it. */
export interface Deadlock {
  at: string;
  tick: number;
  text: string;
  drawn?: string;
  transactions: { name: string; trx?: string; session?: number; user?: string; host?: string; statement?: string; holds?: string[] | null; waits?: string[] | null; victim?: boolean }[] | null;
}

/** One kept second of a server. */
export interface Moment {
  tick: number;
  down?: string;
  connected: number;
  sleeping: number;
  /** sessions that were left out */
  more?: number;
  sessions: Session[] | null;
  transactions: { session: number; trx: string; seconds: number; state: string; rows_locked?: number; rows_modified?: number }[] | null;
  locks: LockWait[] | null;
  blockers: Blocking[] | null;
  numbers: Record<string, number> | null;
  deadlock?: Deadlock | null;
}

/** The newest kept second at or before a moment; null if there is none. */
export interface MomentAnswer {
  asked: number;
  oldest?: number;
  newest?: number;
  missing: Missing[] | null;
  moment: Moment | null;
}

/** Which seconds are kept, and how much went on in each: parallel arrays. */
export interface Moments {
  from: number;
  to: number;
  oldest?: number;
  newest?: number;
  tick: number[] | null;
  running: number[] | null;
  blocked: number[] | null;
  deadlock: number[] | null;
  down: number[] | null;
  missing: Missing[] | null;
}

/** An incident in the list. */
export interface Incident {
  id: string;
  instance: string;
  server: string;
  why: 'stall' | 'alert';
  finding?: string;
  began: string;
  captured: string;
  ended?: string;
  open?: boolean;
  title: string;
  severity: Severity;
  /** why it was not kept whole */
  cut?: string;
  bytes: number;
}

/** One step of what happened. */
export interface Step {
  at: string;
  kind: string;
  text: string;
  severity?: Severity;
}

/** All that was kept of an incident. */
export interface IncidentDetail {
  incident: Incident;
  story: { first: string; steps: Step[] | null; ended?: string };
  from: number;
  to: number;
  lines: { name: string; key: string; unit?: string; values: (number | null)[] }[] | null;
  moments: Moment[] | null;
  missing: Missing[] | null;
  changed: Event[] | null;
  innodb?: string;
  deadlocks: Deadlock[] | null;
}

/** One second of a server. */
export function fetchMoment(id: string, at: number, signal?: AbortSignal): Promise<MomentAnswer> {
  return get('/api/moment', [['instance', id], ['at', Math.floor(at)]], signal);
}

/** Which seconds of a range are kept. */
export function fetchMoments(id: string, from: number, to: number, signal?: AbortSignal): Promise<Moments> {
  return get('/api/moments', [['instance', id], ['from', Math.floor(from)], ['to', Math.ceil(to)]], signal);
}

/** The incidents of a range, the newest first; of one instance, or all when it is empty. */
export async function fetchIncidents(id: string, from: number, to: number): Promise<Incident[]> {
  const q: Pairs = [...only('instance', id), ['from', Math.floor(from)], ['to', Math.ceil(to)]];
  return (await get<{ incidents: Incident[] | null }>('/api/incidents', q)).incidents ?? [];
}

/** One incident whole. */
export function fetchIncident(id: string, signal?: AbortSignal): Promise<IncidentDetail> {
  return get('/api/incident', [['id', id]], signal);
}
