/** Advice in words. Pure. */
import type { AdviceAnswer, AdviceServer, Advised, Decision } from '../api';
import { age, bytes, counted, seconds, unix, when } from '../common/format';

/** A sentence and how loudly to say it. */
export interface Said {
  tone: 'ok' | 'warning' | 'critical';
  text: string;
}

type Counts = Pick<AdviceAnswer['counts'], 'critical' | 'warning' | 'info'>;

/** "1 critical, 2 warnings, 1 hint"; empty for none. */
export function countWords(c: Counts): string {
  return [c.critical ? `${counted(c.critical, 'critical', 'critical')}` : '', c.warning ? counted(c.warning, 'warning') : '', c.info ? counted(c.info, 'hint') : ''].filter(Boolean).join(', ');
}

/** What there is in a sentence, and of how many servers that is known. */
export function adviceSentence(a: AdviceAnswer, narrowed: boolean): Said {
  const never = a.servers.filter((s) => !s.looked).length;
  const all = a.servers.length;
  const parts: string[] = [];
  if (all === 0) return { tone: 'ok', text: 'No server is watched here.' };
  if (never === all) {
    const failed = a.servers.find((s) => s.error);
    return { tone: 'ok', text: failed ? `Nothing is known yet: ${failed.name}: ${failed.error}.` : 'No look has been finished yet, so nothing is known.' };
  }
  const n = countWords(a.counts);
  parts.push(n ? `${n}.` : narrowed ? 'Nothing that fits was found.' : 'Nothing was found.');
  if (never > 0) parts.push(`Of ${never} of ${all} servers nothing is known yet.`);
  const blind = a.servers.filter((s) => s.looked && (s.missing ?? []).length > 0).length;
  if (blind > 0) parts.push(all === 1 ? 'Some of it could not be read: see below.' : `On ${counted(blind, 'server')} something could not be read: see below.`);
  return { tone: a.counts.critical > 0 ? 'critical' : a.counts.warning > 0 ? 'warning' : 'ok', text: parts.join(' ') };
}

/** On which servers, in a few words: a name, or how many of how many. */
export function onWords(f: Pick<Advised, 'on'>, all: number): string {
  if (f.on.length === 1) return f.on[0].name;
  if (f.on.length === all) return `all ${all} servers`;
  return `${f.on.length} of ${all} servers`;
}

/** What it costs now: "500 ms of load each second, 1.2 MiB"; empty for nothing that is known. */
export function costWords(c: Advised['cost']): string {
  return [c.seconds ? `${seconds(c.seconds)} of load each second` : '', c.bytes ? bytes(c.bytes) : ''].filter(Boolean).join(', ');
}

/** How sure it is. */
export function sureWords(f: Pick<Advised, 'sure' | 'doubt'>): string {
  if (f.sure === 'certain') return 'certain: it follows from what was read';
  return f.doubt ? `likely: ${f.doubt}` : 'likely';
}

/** What was decided, by whom and when. */
export function decisionWords(d: Decision, now: number): string {
  const until = d.until ? ` until ${when(unix(d.until), now)}` : '';
  return `${d.kind}${until}${d.who ? ` by ${d.who}` : ''} ${age(now - unix(d.at))} ago: ${d.reason}`;
}

/** What a silence fits. */
export function silenceWords(d: Decision): string {
  return [d.finding, d.object ? `of ${d.object}` : '', d.server ? `on ${d.server}` : 'on all servers'].filter(Boolean).join(' ');
}

/** How the last look at a server went: "looked at 04:12:07, 1.2 s, 4 tables". */
export function lookWords(s: AdviceServer, now: number): string {
  const parts: string[] = [];
  if (s.looked) parts.push(`looked at ${when(unix(s.looked), now)}, took ${seconds(s.seconds)}, ${counted(s.tables, 'table')}`);
  else parts.push('not looked at yet');
  if (s.error) parts.push(`the look${s.tried ? ` of ${when(unix(s.tried), now)}` : ''} failed: ${s.error}`);
  const more = Object.entries(s.more ?? {}).filter(([, n]) => n > 0);
  if (more.length > 0) parts.push(`too many to list: ${more.sort().map(([id, n]) => `${counted(n, 'more', 'more')} of ${id}`).join(', ')}`);
  return parts.join('; ');
}

/** When it is looked at again. */
export function nextWords(s: AdviceServer, now: number): string {
  if (s.queued) return 'is next';
  if (!s.next) return 'again when somebody asks';
  const t = unix(s.next) - now;
  return t <= 0 ? 'is due' : `again in ${age(t)}`;
}

/** A group of findings under one head. */
export interface AdviceGroup {
  key: string;
  name: string;
  list: Advised[];
}

const SEVERITIES: [Advised['severity'], string][] = [['critical', 'Critical'], ['warning', 'Warnings'], ['info', 'Hints']];

/** Findings under heads: by how bad they are, or by what they are. The order within stays. */
export function groups(list: Advised[], kinds: AdviceAnswer['kinds'], byKind: boolean): AdviceGroup[] {
  if (byKind) return kinds.map((k) => ({ key: k.id, name: k.title ? `${k.id}: ${k.title}` : k.id, list: list.filter((f) => f.id === k.id) })).filter((g) => g.list.length > 0);
  return SEVERITIES.map(([key, name]) => ({ key, name, list: list.filter((f) => f.severity === key) })).filter((g) => g.list.length > 0);
}

/** What tells a finding from the others in the list. */
export function keyOf(f: Pick<Advised, 'id' | 'object'> & { statement?: string; decision?: Decision }): string {
  return [f.id, f.object ?? '', f.decision ? String(f.decision.number) : ''].join(' ').trim();
}
