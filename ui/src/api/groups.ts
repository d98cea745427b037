/** Groups of servers: who is the primary, who would follow, what changed, and changing it. */
import { get, request } from './http';
import type { Finding } from './watch';

/** What a server of a group is for. */
export type MemberStatus = 'PRIMARY' | 'SECONDARY' | 'SPARE' | 'FAULTY';

/** How gladly a member is promoted. */
export type MemberRule = 'prefer' | 'neutral' | 'avoid' | 'never';

/** A server of a group. */
export interface GroupMember {
  name: string;
  address: string;
  status: MemberStatus;
  /** how gladly it is promoted: prefer, neutral, avoid, never */
  rule: MemberRule;
  weight: number;
  center?: string;
  since: string;
  /** why it is FAULTY */
  fault?: string;
  /** a person made it FAULTY, and it stays so until a person says otherwise */
  by_hand?: boolean;
  /** of a FAULTY one: the transactions that only it has */
  errant?: string;
  /** a SPARE one that becomes SECONDARY when it has caught up */
  back?: boolean;
  /** what it had before it was kept from writes; missing: it is not */
  fenced?: unknown;
}

/** How a group fails over; times are in nanoseconds. */
export interface GroupPolicy {
  automatic: boolean;
  lossless: boolean;
  pause_ns: number;
  agent_port?: number;
  agents_ns?: number;
  rejoin: boolean;
  center?: string;
  semi_sync: boolean;
  rebuild?: boolean;
  /** no row is written to verify a promotion */
  unwritten?: boolean;
}

/** A primary and the servers that replicate from it. */
export interface Group {
  name: string;
  about?: string;
  active: boolean;
  policy: GroupPolicy;
  members: GroupMember[];
  epoch: number;
  since: string;
  /** who changes it now; until is in the past where nobody does */
  lease: { holder: string; epoch: number; until: string };
  moving?: boolean;
  /** when it was last failed over automatically */
  failed?: string;
}

/** What the last look at a member told. */
export interface SeenMember {
  name: string;
  at: string;
  answers: boolean;
  trouble?: string;
  open: boolean;
  source?: string;
  channels: number;
  receives: boolean;
  applies: boolean;
  behind_seconds: number | null;
}

/** What this controller sees of a group. */
export interface SeenGroup {
  state?: 'alive' | 'suspect' | 'unreachable' | 'unasked' | 'dead';
  since: string | null;
  words?: string;
  busy: boolean;
  members: SeenMember[];
  /** what is wrong with the group as a whole */
  findings: (Finding & { why?: string })[];
}

/** Where clients of a group are told to go. */
export interface GroupView {
  epoch: number;
  primary: { server: string; address: string } | null;
  replicas: { server: string; address: string; weight?: number; lag_ns?: number }[];
  since: string;
  seen: string;
  no_primary?: string;
}

/** What a change of the primary cost. */
export interface Receipt {
  group: string;
  epoch: number;
  kind: 'switchover' | 'failover';
  time: string;
  old: string;
  new: string;
  outage_ns: number;
  /** it is counted from when the failover was asked for: nobody saw when it began */
  outage_longer?: boolean;
  verdict: 'nothing_lost' | 'lost' | 'perhaps_lost' | 'nothing_seen';
  words: string;
  lost?: string;
  lost_count: number;
  checked: string;
  /** what those that are lost changed, without the values; missing: no log of them was read yet */
  contents?: { read: string; from: string; transactions: LostTransaction[] | null; more: number; rows: number; unseen?: string };
  /** those of them that were applied to the new primary later */
  applied?: { gtid: string; at: string; by: string; to: string; unchecked?: boolean }[];
}

/** A transaction that is lost, as a binary log has it. */
export interface LostTransaction {
  gtid: string;
  time: string;
  changes: { table: string; kind: string; rows?: number; object?: string }[] | null;
  statements?: string[];
}

/** A step of a change of the primary: a statement, or words. */
export interface ChangeStep {
  at: string;
  where?: string;
  what: string;
  took_ns?: number;
  failed?: string;
}

/** A change of the primary. */
export interface GroupChange {
  group: string;
  epoch: number;
  kind: 'switchover' | 'failover';
  stage: 'begun' | 'stopping' | 'draining' | 'promoting' | 'published' | 'pointing' | 'done' | 'undone' | 'failed';
  by: string;
  automatic: boolean;
  because?: string;
  accept_loss?: boolean;
  old: string;
  new?: string;
  began: string;
  ended?: string;
  steps: ChangeStep[];
  problem?: string;
  receipt?: Receipt;
}

/** How a group stands; null: this controller does not watch it, tells nothing, or nothing was changed yet. */
export interface GroupStanding {
  group: Group;
  seen: SeenGroup | null;
  view: GroupView | null;
  change: GroupChange | null;
}

/** How all groups stand. */
export interface Standing {
  now: string;
  /** risso serve fails over the groups whose policy says so */
  automatic: boolean;
  /** the controller that was asked acts */
  leads: boolean;
  groups: GroupStanding[];
}

/** Why something is not done. */
export interface Refusal {
  code: string;
  why: string;
  remedy?: string;
}

/** How long a member takes to apply what it has to apply. */
export interface Drain {
  /** null: not known */
  transactions: number | null;
  /** null: not known, or it never ends */
  seconds: number | null;
  at_most?: boolean;
  stands?: boolean;
  words: string;
}

/** A member that may follow. */
export interface Candidate {
  name: string;
  received: string;
  /** so many transactions it received and has not applied */
  waiting: number;
  /** so many another member received and it has not */
  lacks: number;
  drain?: Drain;
  refused: Refusal[] | null;
  notes?: string[];
}

/** What a failover would do now. */
export interface GroupForecast {
  group: string;
  asked: string;
  primary: string;
  alive: boolean;
  because?: string;
  ready: boolean;
  choice: { winner: string; from?: string; candidates: Candidate[] | null; refused: Refusal[] | null; lost?: string; lost_count: number; drain?: Drain; handover?: Drain; notes?: string[] };
  known: { semi_sync?: boolean; lossless?: boolean; told?: boolean; wait_for?: number; acknowledgers?: string[] };
  plan: string[];
  agents: { member: string; error?: string; report?: { claims?: string } }[];
}

/** A process of risso serve that shares the state with others. */
export interface Controller {
  name: string;
  address: string;
  url?: string;
  votes: boolean;
  state: string;
  leader: string;
  epoch: number;
  trouble?: string;
  error?: string;
}

/** What a change of a group would do, or did. */
export interface Changed {
  group: string;
  dry_run: boolean;
  old: string;
  new: string;
  plan: string[] | null;
  receipt?: Receipt;
}

/** What somebody wants of a group. */
export type GroupOrder =
  | { do: 'switchover' | 'failover'; group: string; to?: string; accept_loss?: boolean }
  | { do: 'member'; group: string; member: string; status?: MemberStatus; weight?: number; rule?: MemberRule; center?: string }
  | { do: 'policy'; group: string; automatic?: boolean; active?: boolean };

/** How all groups stand. */
export const fetchStanding = (): Promise<Standing> => get('/api/groups/standing');

/** Who would follow the primary of a group now. All members are asked. */
export const fetchForecast = (group: string): Promise<GroupForecast> => get('/api/groups/forecast', [['group', group]]);

/** The last changes of the primary of a group, the newest first. */
export async function fetchGroupChanges(group: string, limit: number): Promise<GroupChange[]> {
  return (await get<{ journals: GroupChange[] | null }>('/api/groups/journals', [['group', group], ['limit', limit]])).journals ?? [];
}

/** The processes that share the state; none: the one that was asked is alone. */
export const fetchControllers = (): Promise<{ self: string; members: Controller[] }> => get('/api/controllers');

// A switchover waits for its servers for as long as it may.
const CHANGE_MS = 130_000;

/** Changes a group, or says what that would do. */
export function changeGroup(o: GroupOrder, dryRun: boolean): Promise<Changed> {
  const { do: what, ...body } = o;
  return request(`/api/groups/${what}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ ...body, dry_run: dryRun }) }, undefined, CHANGE_MS);
}
