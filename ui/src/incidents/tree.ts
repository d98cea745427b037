/** Who waits for whom, as trees. Pure. */
import type { LockWait, Moment } from '../api';

/** A session and those that wait for it. */
export interface Node {
  id: number;
  /** the wait that hangs it under its parent; none for a root */
  wait?: LockWait;
  under: Node[];
  /** all below */
  count: number;
}

/** The trees of a moment, the largest first. Who waits for several, or in a circle, is there again, without what waits for it. */
export function trees(locks: LockWait[]): Node[] {
  const by = new Map<number, LockWait[]>();
  for (const l of locks) by.set(l.blocker.id, [...(by.get(l.blocker.id) ?? []), l]);
  const waiters = new Set(locks.map((l) => l.waiter));
  const seen = new Set<number>();
  const grow = (id: number, wait?: LockWait): Node => {
    const again = seen.has(id);
    seen.add(id);
    const under = again ? [] : (by.get(id) ?? []).map((l) => grow(l.waiter, l));
    return { id, wait, under, count: under.reduce((n, u) => n + 1 + u.count, 0) };
  };
  const roots = [...by.keys()].filter((id) => !waiters.has(id)).map((id) => grow(id));
  // What is left waits in a circle.
  for (const id of by.keys()) if (!seen.has(id)) roots.push(grow(id));
  return roots.sort((a, b) => b.count - a.count);
}

/** What a session waits for, in words. */
export function waitWords(l: LockWait): string {
  const what = l.kind.replace(/_/g, ' ');
  const on = l.name ? ` on ${l.schema ? `${l.schema}.` : ''}${l.name}` : '';
  const index = l.index ? `, index ${l.index}` : '';
  const record = l.data ? `, record ${l.data}` : '';
  const mode = l.mode ? ` (${l.mode})` : '';
  return `${what}${on}${index}${record}${mode}${l.queued ? ', behind it in the queue' : ''}${l.maybe ? ', it seems' : ''}`;
}

/** What goes on in a second, in a sentence. */
export function momentSentence(m: Moment): { tone: 'ok' | 'warning' | 'critical'; text: string } {
  if (m.down) return { tone: 'critical', text: `The server ${m.down}.` };
  const roots = m.blockers ?? [];
  const running = (m.sessions ?? []).filter((s) => s.wait !== 'idle').length + (m.more ?? 0);
  if (roots.length > 0) {
    const more = roots.length - 1;
    return { tone: 'warning', text: `${/[.!?…]$/.test(roots[0].what) ? roots[0].what : `${roots[0].what}.`}${more > 0 ? ` ${more} more ${more === 1 ? 'blocks' : 'block'} others.` : ''}` };
  }
  const n = (m.locks ?? []).length;
  if (n > 0) return { tone: 'warning', text: `${n} ${n === 1 ? 'session waits' : 'sessions wait'} for locks.` };
  return { tone: 'ok', text: `${running === 0 ? 'Nothing runs' : `${running} ${running === 1 ? 'session runs a statement' : 'sessions run statements'}`}, ${m.connected} connected; nobody waits for a lock.` };
}
