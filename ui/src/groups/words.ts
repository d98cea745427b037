/** What the page Groups says, without the page. */
import type { Candidate, Changed, Controller, Drain, GroupChange, GroupForecast, GroupMember, GroupOrder, GroupPolicy, GroupStanding, LostTransaction, MemberRule, MemberStatus, Receipt, SeenMember, Standing, State } from '../api';
import { age, counted, seconds, unix } from '../common/format';

/** A sentence, and how loudly it is said. */
export interface Said {
  tone: 'ok' | 'warning' | 'critical';
  text: string;
}

const names = (list: string[]): string => (list.length < 2 ? list.join('') : `${list.slice(0, -1).join(', ')} and ${list[list.length - 1]}`);

/** The primary of a group; undefined: it has none. */
export const primaryOf = (s: GroupStanding): GroupMember | undefined => s.group.members.find((m) => m.status === 'PRIMARY');

/** What is seen of a member; undefined: nobody looked. */
export const seenOf = (s: GroupStanding, name: string): SeenMember | undefined => s.seen?.members.find((m) => m.name === name);

/** Who changes a group now; empty: nobody. */
export function holderOf(s: GroupStanding, now: number): string {
  const { holder, until } = s.group.lease;
  return holder !== '' && unix(until) > now ? holder : '';
}

const sentence = (what: string): string => `${what.charAt(0).toUpperCase()}${what.slice(1)}.`;

/** What is going on in a group, the worst first. */
export function groupSaid(s: GroupStanding, automatic: boolean, now: number): Said {
  const { group: g, seen } = s;
  const p = primaryOf(s);
  if (holderOf(s, now) && s.change && !s.change.ended) {
    const c = s.change;
    return { tone: c.kind === 'failover' ? 'critical' : 'warning', text: `A ${c.kind} ${c.old ? `from ${c.old} ` : ''}${c.new ? `to ${c.new} ` : ''}is under way: ${STAGES[c.stage]}.` };
  }
  if (!g.active) return { tone: 'warning', text: `It is left alone: nobody looks after it${p ? `; clients stay with ${p.name}, the primary, whatever becomes of it` : ''}.` };
  if (!p) return { tone: 'critical', text: 'It has no primary: nobody takes writes.' };
  const primary = seenOf(s, p.name);
  switch (seen?.state) {
    case 'dead': {
      const by = automatic && g.policy.automatic ? '' : '; nobody fails over by itself here';
      return { tone: 'critical', text: `${p.name}, the primary, is dead: ${seen.words ?? ''}${by}.` };
    }
    case 'unreachable': case 'unasked': case 'suspect':
      return { tone: 'warning', text: `${p.name}, the primary: ${seen.words || 'it does not answer; it is not yet certain whether it is dead'}.` };
  }
  if (s.change && !s.change.ended) return { tone: 'warning', text: `A ${s.change.kind} was cut off: ${STAGES[s.change.stage]}. It is brought to its end, or taken back.` };
  if (primary?.answers && !primary.open) return { tone: 'critical', text: `${p.name}, the primary, takes no writes (read-only).` };
  const wrong = (seen?.findings ?? []).filter((f) => f.severity !== 'info');
  const critical = wrong.find((f) => f.severity === 'critical');
  if (critical) return { tone: 'critical', text: sentence(critical.what) };
  const faulty = g.members.filter((m) => m.status === 'FAULTY').map((m) => m.name);
  if (faulty.length > 0) return { tone: 'warning', text: `${p.name} takes writes; ${names(faulty)} ${faulty.length === 1 ? 'is' : 'are'} out.` };
  if (!seen) return { tone: 'warning', text: `${p.name} is the primary; this Risso has not looked at it yet.` };
  const lame = seen.members.filter((m) => m.name !== p.name && (!m.answers || !m.receives || !m.applies)).map((m) => m.name);
  if (lame.length > 0) return { tone: 'warning', text: `${p.name} takes writes; ${names(lame)} ${lame.length === 1 ? 'does' : 'do'} not replicate.` };
  if (wrong.length > 0) return { tone: 'warning', text: sentence(wrong[0].what) };
  return { tone: 'ok', text: `${p.name} takes writes, ${g.members.length > 1 ? 'and all others replicate' : 'and there is no other member'}.` };
}

/** How far a change of the primary has come. */
export const STAGES: Record<GroupChange['stage'], string> = {
  begun: 'it began', stopping: 'the old primary is kept from writes', draining: 'the new primary applies what it received', promoting: 'the new primary is opened', published: 'clients are told',
  pointing: 'the others are pointed at the new primary', done: 'it is done', undone: 'it was given up, and all is as before', failed: 'it could neither be finished nor taken back',
};

/** The sentence on top of the page. */
export function lead(a: Standing, now: number): Said {
  const said = a.groups.map((s) => groupSaid(s, a.automatic, now).tone);
  const bad = said.filter((t) => t !== 'ok').length;
  const of = counted(a.groups.length, 'group');
  if (bad === 0) return { tone: 'ok', text: `${of}; ${a.groups.length === 1 ? 'its' : 'each'} primary takes writes, and replicas follow.` };
  return { tone: said.includes('critical') ? 'critical' : 'warning', text: a.groups.length === 1 ? 'The group needs attention.' : `${bad} of ${of} ${bad === 1 ? 'needs' : 'need'} attention.` };
}

/** The mark of a member, by its status and by what was seen. */
export function memberState(m: GroupMember, seen: SeenMember | undefined): State {
  if (m.status === 'FAULTY') return 'critical';
  if (!seen) return 'new';
  if (!seen.answers) return m.status === 'PRIMARY' ? 'critical' : 'down';
  if (m.status === 'PRIMARY') return seen.open && seen.channels === 0 ? 'ok' : 'warning';
  return seen.receives && seen.applies && !seen.open ? 'ok' : 'warning';
}

/** What the last look at a member said. */
export function seenWords(m: GroupMember, seen: SeenMember | undefined): string {
  if (!seen) return 'nobody looked yet';
  if (!seen.answers) return `does not answer: ${seen.trouble || 'not known why'}`;
  const words = [seen.open ? 'takes writes' : 'read-only'];
  if (seen.channels > 1) words.push(`replicates from ${seen.channels} servers`);
  else if (seen.channels === 1) {
    if (seen.receives && seen.applies) words.push(`replicates from ${seen.source}`);
    else words.push(`${seen.receives ? 'receives, and does not apply' : seen.applies ? 'does not receive' : 'neither receives nor applies'}${seen.trouble ? `: ${seen.trouble}` : ''}`);
  } else if (m.status !== 'PRIMARY') words.push('does not replicate');
  return words.join(', ');
}

/** How far a member is behind; empty for the primary. */
export function lagWords(m: GroupMember, seen: SeenMember | undefined): string {
  if (m.status === 'PRIMARY') return '';
  if (!seen?.answers || seen.behind_seconds === null) return 'not known';
  return seconds(seen.behind_seconds);
}

/** Who would win, how long that takes, what would be lost, and what blocks it. */
export function forecastWords(f: GroupForecast, seen: (name: string) => SeenMember | undefined): Said[] {
  const out: Said[] = [];
  const c = f.choice;
  const old = f.primary ? (f.alive ? `If ${f.primary} died now, ` : `${f.primary} does not answer${f.because ? ` (${f.because})` : ''}: `) : 'There is no primary: ';
  if (c.winner === '') {
    out.push({ tone: f.alive ? 'warning' : 'critical', text: `${old}nobody could follow.` });
  } else {
    const w = (c.candidates ?? []).find((x) => x.name === c.winner);
    const behind = seen(c.winner)?.behind_seconds;
    const left = w ? toApply(w) : 0;
    const drain = left === 0 ? 'it has applied all that it received' : `it has ${counted(left, 'transaction')} to apply first${behind !== null && behind !== undefined ? `, and is ${seconds(behind)} behind` : ''}`;
    out.push({ tone: 'ok', text: `${old}${c.winner} would follow; ${drain}${c.from ? `, and gets what it lacks from ${c.from}` : ''}${drainWords(c.drain)}.` });
    if (c.handover && c.handover.transactions !== 0) out.push({ tone: 'ok', text: `In a switchover nobody could write until it has applied all that ${f.primary} has${drainWords(c.handover)}.` });
  }
  if (c.lost_count > 0) out.push({ tone: 'critical', text: `${counted(c.lost_count, 'transaction')} of ${f.primary} would be lost.` });
  else if (f.alive) out.push(lossWords(f));
  for (const n of c.notes ?? []) out.push({ tone: 'warning', text: `${n}.` });
  return out;
}

/** So many transactions a member has to apply, as it was last looked at. */
const toApply = (c: Candidate): number => c.drain?.transactions ?? c.waiting;

/** How long that takes; empty: there is nothing to apply, or nobody looked. */
const drainWords = (d: Drain | undefined): string => (d && d.transactions !== 0 ? `: ${d.words}` : '');

function lossWords(f: GroupForecast): Said {
  const k = f.known;
  if (k.lossless) {
    // As the receipt will judge: of those that acknowledge, so many have to be asked that one of them must have each commit.
    const acks = k.acknowledgers ?? [];
    const waits = Math.max(1, k.wait_for ?? 1);
    const need = Math.max(1, acks.length - waits + 1);
    const asked = (f.choice.candidates ?? []).filter((c) => acks.includes(c.name) && !(c.refused ?? []).some((r) => r.code === 'not_seen')).length;
    if (asked >= need) return { tone: 'ok', text: `No acknowledged transaction would be lost: each commit waits for ${counted(waits, 'replica')}, without a time-out.` };
    return { tone: 'warning', text: `It could not be proven that nothing is lost: each commit waits for ${counted(waits, 'replica')}, but only ${asked} of the ${acks.length} that acknowledge ${asked === 1 ? 'answers' : 'answer'}, and ${need} would have to.` };
  }
  if (!k.told) return { tone: 'warning', text: `What would be lost is not known: ${f.primary} did not tell whether it waits for replicas.` };
  if (k.semi_sync) return { tone: 'warning', text: `Transactions could be lost: ${f.primary} waits for replicas, but may stop waiting (a time-out, or not AFTER_SYNC).` };
  return { tone: 'warning', text: `What ${f.primary} writes last could be lost: replication is asynchronous.` };
}

/** What stands against a member as the next primary, or that nothing does. */
export function candidateWords(c: Candidate): string {
  const words = (c.refused ?? []).map((r) => r.why);
  const left = toApply(c);
  if (words.length === 0) words.push('may follow');
  if (left > 0 && (c.drain || (c.refused ?? []).length === 0)) words.push(`${counted(left, 'transaction')} to apply${drainWords(c.drain)}`);
  if (c.lacks > 0) words.push(`lacks ${counted(c.lacks, 'transaction')} that another member received`);
  return [...words, ...(c.notes ?? [])].join('; ');
}

/** Why nobody can switch over to a member, if that is known; what it is promoted by name for does not count. */
export function barredAs(f: GroupForecast | null, name: string): string {
  const c = (f?.choice.candidates ?? []).find((x) => x.name === name);
  return (c?.refused ?? []).filter((r) => r.code !== 'spare' && r.code !== 'delayed').map((r) => r.why).join('; ');
}

/** The policy, one line for each part. */
export function policyWords(p: GroupPolicy, active: boolean, automatic: boolean, failed: string | undefined, now: number): string[] {
  const out: string[] = [];
  if (!active) out.push('left alone: nothing is changed, it is not failed over');
  else if (!p.automatic) out.push('failed over by hand only');
  else if (!automatic) out.push('failed over by hand only: risso serve runs without --failover auto');
  else {
    const rest = failed ? unix(failed) + p.pause_ns / 1e9 - now : 0;
    out.push(rest > 0 ? `failed over automatically, but not again within the next ${age(rest)}` : 'failed over automatically');
  }
  if (p.pause_ns > 0 && p.automatic) out.push(`at most once in ${age(p.pause_ns / 1e9)}`);
  out.push(p.lossless ? 'refused where an acknowledged transaction is known to be lost' : 'also where transactions are known to be lost');
  out.push(p.semi_sync ? 'each primary waits for an acknowledgement (semi-sync)' : 'no primary is made to wait for replicas');
  if ((p.agents_ns ?? 0) > 0) out.push(`agents fence a primary that no controller confirmed for ${seconds(p.agents_ns! / 1e9)}`);
  else out.push('no agents');
  out.push(p.rejoin ? 'an old primary that comes back without transactions of its own replicates again' : 'an old primary that comes back stays out');
  if (p.rebuild) out.push('one that has transactions of its own is rebuilt');
  if (p.unwritten) out.push('no row is written to verify a promotion');
  if (p.center) out.push(`${p.center} is preferred`);
  return out;
}

/** A change of the primary in one line. */
export function changeWords(c: GroupChange): string {
  const way = [c.old && `from ${c.old}`, c.new && `to ${c.new}`].filter(Boolean).join(' ');
  return `${c.kind} ${way}${c.automatic ? ', automatic' : c.by ? `, by ${c.by}` : ''}`;
}

/** How a change ended. */
export function outcome(c: GroupChange, now: number): Said {
  if (c.stage === 'done') return { tone: c.receipt ? verdictTone(c.receipt) : 'ok', text: `done in ${seconds(unix(c.ended!) - unix(c.began))}` };
  if (c.stage === 'undone') return { tone: 'warning', text: 'given up, all is as before' };
  if (c.stage === 'failed') return { tone: 'critical', text: 'failed: somebody has to look' };
  return { tone: 'warning', text: `for ${age(now - unix(c.began))}: ${STAGES[c.stage]}` };
}

/** How loudly a receipt is said. */
export function verdictTone(r: Receipt): Said['tone'] {
  switch (r.verdict) {
    case 'nothing_lost': return 'ok';
    case 'lost': return 'critical';
    default: return 'warning';
  }
}

/** What a lost transaction changed. */
export function lostWords(t: LostTransaction): string {
  const list = (t.changes ?? []).map((c) => [c.kind, c.rows ? counted(c.rows, 'row') : '', c.rows ? `of ${c.table}` : `${c.object ? `${c.object} ` : ''}${c.table}`].filter(Boolean).join(' '));
  return list.length > 0 ? list.join(', ') : 'changed nothing';
}

/** How long nobody took writes. */
export const outageWords = (r: Receipt): string => (r.outage_ns > 0 ? `nobody took writes for ${r.outage_longer ? 'at least ' : ''}${seconds(r.outage_ns / 1e9)}` : 'it is not known for how long nobody took writes');

/** Where clients are told to go. */
export function viewWords(s: GroupStanding): Said {
  if (!s.view) return { tone: 'warning', text: 'This Risso tells no client where to go.' };
  const { primary, replicas, no_primary: why, epoch } = s.view;
  const reads = replicas.length > 0 ? `reads to ${names(replicas.map((r) => r.server))}` : 'no replica is told for reads';
  if (!primary) return { tone: 'critical', text: `Clients are told that there is no primary: ${why ?? 'not known why'}; ${reads}.` };
  return { tone: 'ok', text: `Clients are told: writes to ${primary.server} (${primary.address}), ${reads}, epoch ${epoch}.` };
}

/** What is known of members that are kept from writes. */
export function fenceWords(s: GroupStanding): Said[] {
  const out: Said[] = [];
  const fenced = s.group.members.filter((m) => m.fenced !== undefined && m.fenced !== null).map((m) => m.name);
  if (fenced.length > 0) out.push({ tone: 'ok', text: `Kept from writes by Risso: ${names(fenced)}.` });
  const open = s.group.members.filter((m) => m.status !== 'PRIMARY' && seenOf(s, m.name)?.open).map((m) => m.name);
  if (open.length > 0) out.push({ tone: 'critical', text: `${names(open)} ${open.length === 1 ? 'is' : 'are'} no primary, and would take writes.` });
  else if (s.seen && s.seen.members.length > 0) out.push({ tone: 'ok', text: 'No other member that answers would take writes.' });
  return out;
}

/** Who shares the state, and who acts. */
export function controllerWords(c: Controller): string {
  if (c.error) return `does not answer: ${c.error}`;
  const role = c.state === 'leader' ? 'leads, and acts' : c.state;
  return [role, c.votes ? '' : 'does not vote yet', c.trouble ?? ''].filter(Boolean).join('; ');
}

/** What a button is about to do, as the question over its plan. */
export function question(o: GroupOrder, c: Changed): string {
  switch (o.do) {
    case 'switchover': return `Switch ${o.group} over from ${c.old} to ${c.new}?`;
    case 'failover': return `Fail ${o.group} over${c.old ? ` from ${c.old}` : ''} to ${c.new}?`;
    case 'member': return `Change ${o.member} in ${o.group}?`;
    case 'policy': return `Change the policy of ${o.group}?`;
  }
}

/** How gladly a member may be promoted, the most gladly first. */
export const RULES: MemberRule[] = ['prefer', 'neutral', 'avoid', 'never'];

/** What a rule means, in a few words. */
export function ruleWords(r: MemberRule): string {
  switch (r) {
    case 'prefer': return 'before others';
    case 'neutral': return 'as what it received says';
    case 'avoid': return 'only if no other can';
    case 'never': return 'never';
  }
}

/** What a member may become: FAULTY returns only by SPARE, and a primary is made by promotion alone. */
export function nextStatuses(s: MemberStatus): MemberStatus[] {
  switch (s) {
    case 'PRIMARY': return [];
    case 'SECONDARY': return ['SPARE', 'FAULTY'];
    case 'SPARE': return ['SECONDARY', 'FAULTY'];
    case 'FAULTY': return ['SPARE'];
  }
}
