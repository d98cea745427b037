/** Which lines the fleet has: filtered, sorted, grouped, and what has one cause as one line. Pure. */
import type { Because, Instance, State } from '../api';
import { sortInstances, worstFirst } from '../common/order';
import type { View } from '../common/view';

/** A line of the fleet's table. */
export type Line =
  | { kind: 'instance'; key: string; i: Instance; effects: Instance[]; of?: string }
  /** what is wrong lies where Risso does not look */
  | { kind: 'cause'; key: string; because: Because; state: State; effects: Instance[] }
  | { kind: 'group'; key: string; name: string; count: number; state: State };

/** What of the fleet is shown. */
export type Wanted = Pick<View, 'q' | 'state' | 'group' | 'flavour' | 'sort' | 'open'>;

/** The states on offer in the filter. */
export const STATES: readonly [string, string][] = [['', 'all states'], ['bad', 'not well'], ['down', 'down'], ['critical', 'critical'], ['warning', 'warning'], ['ok', 'ok'], ['new', 'new']];

const isBad = (s: State): boolean => s === 'down' || s === 'critical' || s === 'warning';

function fits(i: Instance, w: Wanted): boolean {
  if (w.state && !(w.state === 'bad' ? isBad(i.state) : i.state === w.state)) return false;
  if (w.group && (i.group ?? '') !== w.group) return false;
  if (w.flavour && (i.kind === 'host' ? 'host' : (i.flavour ?? '')) !== w.flavour) return false;
  const text = `${i.name} ${i.address} ${i.role ?? ''} ${i.version ?? ''} ${i.words} ${i.group ?? ''}`.toLowerCase();
  return w.q.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** The values of the filters, as far as there are several. */
export function choices(list: Instance[]): { groups: string[]; flavours: string[] } {
  const of = (f: (i: Instance) => string): string[] => [...new Set(list.map(f))].filter(Boolean).sort();
  const flavours = of((i) => (i.kind === 'host' ? 'host' : (i.flavour ?? '')));
  return { groups: of((i) => i.group ?? ''), flavours: flavours.length > 1 ? flavours : [] };
}

// What explains all that is wrong with an instance, if something does.
function whole(i: Instance): Because | undefined {
  return isBad(i.state) ? (i.because ?? []).find((b) => b.all) : undefined;
}

const causeKey = (b: Because): string => b.instance || `${b.name} ${b.finding ?? ''}`;

/** By cause, the instances that have nothing wrong with them but its effects. A cause that is not watched needs two. */
function effectsOf(list: Instance[]): Map<string, { because: Because; effects: Instance[] }> {
  const out = new Map<string, { because: Because; effects: Instance[] }>();
  const shown = new Set(list.map((i) => i.id));
  for (const i of list) {
    const b = whole(i);
    if (!b || b.instance === i.id || (b.instance && !shown.has(b.instance))) continue;
    const key = causeKey(b);
    const c = out.get(key) ?? { because: b, effects: [] };
    c.effects.push(i);
    out.set(key, c);
  }
  for (const [key, c] of out) if (!c.because.instance && c.effects.length < 2) out.delete(key);
  // An effect that is a cause itself stays a line: what it explains would be gone with it.
  for (const c of out.values()) c.effects = c.effects.filter((i) => !out.has(i.id));
  return out;
}

const RANK: Record<State, number> = { down: 0, critical: 1, warning: 2, new: 3, ok: 4 };
const worse = (a: State, b: State): State => (RANK[a] <= RANK[b] ? a : b);

/** The instances whose state has its cause on another line. */
export function explained(list: Instance[]): Set<string> {
  return new Set([...effectsOf(list).values()].flatMap((c) => c.effects.map((i) => i.id)));
}

/** The lines, the worst first unless something else is wanted. */
export function linesOf(all: Instance[], w: Wanted): Line[] {
  const list = sortInstances(all.filter((i) => fits(i, w)), w.sort === 'group' ? '' : w.sort);
  const causes = effectsOf(list);
  const folded = new Set([...causes.values()].flatMap((c) => c.effects.map((i) => i.id)));
  const out: Line[] = [];
  const add = (key: string, line: Line, effects: Instance[]): void => {
    out.push(line);
    if (w.open.includes(key)) for (const i of [...effects].sort(worstFirst)) out.push({ kind: 'instance', key: i.id, i, effects: [], of: key });
  };
  for (const [key, c] of causes) {
    if (c.because.instance) continue;
    add(key, { kind: 'cause', key, because: c.because, state: c.effects.map((i) => i.state).reduce(worse), effects: c.effects }, c.effects);
  }
  for (const i of list) {
    if (folded.has(i.id)) continue;
    const effects = causes.get(i.id)?.effects ?? [];
    add(i.id, { kind: 'instance', key: i.id, i, effects }, effects);
  }
  return w.sort === 'group' ? grouped(out) : out;
}

function grouped(lines: Line[]): Line[] {
  const by = new Map<string, Line[]>();
  let last = '';
  for (const l of lines) {
    // What a cause explains stays with it.
    if (l.kind !== 'instance' || !l.of) last = l.kind === 'instance' ? (l.i.group ?? '') : l.kind === 'cause' ? (l.effects[0]?.group ?? '') : '';
    by.set(last, [...(by.get(last) ?? []), l]);
  }
  return [...by].sort(([a], [b]) => (a === '' ? 1 : b === '' ? -1 : a < b ? -1 : 1)).flatMap(([name, list]) => [
    {
      kind: 'group' as const, key: `group ${name}`, name: name || 'no group',
      count: list.reduce((n, l) => n + (l.kind === 'instance' && !l.of ? 1 + l.effects.length : l.kind === 'cause' ? l.effects.length : 0), 0),
      state: list.map((l) => (l.kind === 'instance' ? l.i.state : l.state)).reduce(worse),
    },
    ...list,
  ]);
}
