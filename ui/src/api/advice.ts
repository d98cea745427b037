/** What is wrong before it hurts, and what people decided about it. */
import { get, only, request, type Pairs } from './http';
import type { Severity, Trouble } from './watch';

/** What somebody decided about a finding, or about all that fits a pattern. */
export interface Decision {
  number: number;
  kind: 'accepted' | 'postponed' | 'silenced';
  /** ID of a server, or a pattern of names if it is silenced; empty for all */
  server?: string;
  finding: string;
  object?: string;
  until?: string;
  at: string;
  who?: string;
  reason: string;
}

/** A server that has, or had, a finding. */
export interface AdvicePlace {
  instance: string;
  name: string;
  since: string;
  seen: string;
  ended?: string;
  /** the last look could not tell whether it still holds */
  unsure?: boolean;
}

/** Something that costs, or will, with the statement that mends it; told once for all servers that have it. */
export interface Advised {
  id: string;
  object?: string;
  severity: Severity;
  what: string;
  why?: string;
  evidence: string[] | null;
  statement?: string;
  /** what to do where no statement helps, or before it */
  advice?: string;
  undo?: string;
  effect?: string;
  sure: 'certain' | 'likely';
  doubt?: string;
  cost: { seconds?: number; bytes?: number; risk?: string };
  since?: string;
  state: 'open' | Decision['kind'] | 'gone';
  decision?: Decision;
  on: AdvicePlace[];
}

/** A server, and how the last look at it went. */
export interface AdviceServer {
  instance: string;
  name: string;
  group?: string;
  /** when the last look ended that was whole */
  looked?: string;
  tried?: string;
  /** when it is looked at again */
  next?: string;
  queued?: boolean;
  version?: string;
  tables: number;
  seconds: number;
  /** what could not be read */
  missing: Trouble[] | null;
  /** findings of a check that are too many to be kept */
  more: Record<string, number> | null;
  /** why the last look failed */
  error: string;
  critical: number;
  warning: number;
  info: number;
}

/** All that is kept and fits what was asked for. */
export interface AdviceAnswer {
  findings: Advised[];
  /** how many more there are */
  left: number;
  counts: { critical: number; warning: number; info: number; decided: number; gone: number };
  kinds: { id: string; title?: string; severity: Severity; count: number }[];
  servers: AdviceServer[];
  silences: Decision[];
  looking?: { instance: string; since: string; tables: number };
  /** seconds between two looks; 0: only when somebody asks */
  every: number;
}

/** What of it is asked for; what is empty does not narrow. */
export interface AdviceAsk {
  instance?: string;
  group?: string;
  kind?: string;
  severity?: string;
  q?: string;
  state?: 'open' | 'decided' | 'gone';
  limit?: number;
}

/** Asks for what is kept. */
export function fetchAdvice(a: AdviceAsk): Promise<AdviceAnswer> {
  const query: Pairs = [...only('instance', a.instance ?? ''), ...only('group', a.group ?? ''), ...only('id', a.kind ?? ''), ...only('severity', a.severity ?? ''),
    ...only('q', a.q ?? ''), ...only('state', a.state ?? ''), ...(a.limit ? ([['limit', a.limit]] as Pairs) : [])];
  return get<AdviceAnswer>('/api/advice', query);
}

/** Lets a server be looked at as soon as possible; all without a name. */
export function lookForAdvice(instance: string): Promise<unknown> {
  return request('/api/advice/look' + (instance ? `?instance=${encodeURIComponent(instance)}` : ''), { method: 'POST' });
}

/** What is sent to decide. */
export interface DecisionBody {
  number?: number;
  id?: string;
  object?: string;
  servers?: string[];
  for?: string;
  reason?: string;
}

/** Accepts, postpones, silences, or takes that back. */
export function decideAdvice(how: 'accept' | 'postpone' | 'silence' | 'undo', body: DecisionBody): Promise<unknown> {
  return request(`/api/advice/${how}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
}
