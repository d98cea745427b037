/** Who replicates from whom, now and earlier. */
import { get, type Pairs } from './http';
import type { Finding } from './watch';

/** How a server or a link is; unknown: it was never seen. */
export type Health = 'ok' | 'warning' | 'critical' | 'unknown';

/** A server, with its place in the drawing. */
export interface TopologyNode {
  id: string;
  name: string;
  /** under which it is watched; missing: others tell of it */
  instance?: string;
  addresses?: string[];
  server_uuid?: string;
  server_id?: string;
  server?: string;
  role: string;
  state: Health;
  since: string;
  /** what is to be known of it, the worst first */
  words: string[];
  seen: boolean;
  answered?: string;
  why_text?: string;
  writable: boolean;
  told_by?: string[];
  /** what was diagnosed of it, the worst first; why: what it was seen by, and what was not seen; because: what it follows from */
  findings?: (Finding & { why?: string; because?: string })[];
  x: number;
  y: number;
  width: number;
  height: number;
}

/** That a server replicates from another; source and replica are places in the list of nodes. */
export interface TopologyLink {
  source: number;
  replica: number;
  channel?: string;
  kind: 'runs' | 'late' | 'frozen' | 'stopped' | 'connecting' | 'broken' | 'listed' | 'remembered';
  state: Health;
  words: string;
  behind_seconds?: number;
  missing?: number;
  /** it leads against the direction of the drawing */
  back?: boolean;
  /** its line, as SVG writes it */
  path: string;
}

/** A cluster, around its members. */
export interface TopologyBox {
  cluster: string;
  words: string;
  state: Health;
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A topology, ready to be drawn. */
export interface Picture {
  time: string;
  state: Health;
  words: string;
  nodes: TopologyNode[];
  links: TopologyLink[];
  boxes: TopologyBox[];
  surprises: string[] | null;
  left?: number;
  width: number;
  height: number;
}

/** What it looks like, or looked like. */
export interface TopologyAnswer {
  at: string;
  known: boolean;
  /** why it is not known */
  why?: string;
  from?: string;
  until?: string;
  /** where it is not known: the times around that are */
  before?: string;
  after?: string;
  /** seconds between two looks; 0: nobody looks */
  every: number;
  topology: Picture | null;
}

/** When it changed, or a time of which nothing is known. */
export interface TopologyChange {
  time: string;
  until: string;
  gap?: boolean;
  words: string[] | null;
}

/** What it looks like now, or looked like at a time. */
export function fetchTopology(at: number | null, signal?: AbortSignal): Promise<TopologyAnswer> {
  return get('/api/topology', at === null ? [] : [['at', Math.floor(at)]], signal);
}

/** What changed in a time, the newest first. */
export async function fetchTopologyChanges(from: number, to: number, limit: number): Promise<{ changes: TopologyChange[]; left: boolean }> {
  const q: Pairs = [['from', Math.floor(from)], ['to', Math.ceil(to)], ['limit', limit]];
  return get('/api/topology/changes', q);
}
