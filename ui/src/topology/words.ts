/** What the page Topology says and cuts, without the page. */
import type { Health, Picture, TopologyAnswer, TopologyChange, TopologyNode } from '../api';
import { counted, unix } from '../common/format';

/** How loudly a sentence is said. */
export function tone(state: Health): 'ok' | 'warning' | 'critical' {
  return state === 'unknown' ? 'ok' : state;
}

/** The sentence on top. */
export function lead(a: TopologyAnswer): { tone: 'ok' | 'warning' | 'critical'; text: string } {
  if (!a.known || !a.topology) {
    const why = a.why ?? '';
    return { tone: 'warning', text: `Not known: ${why}${why.endsWith('.') ? '' : '.'}` };
  }
  return { tone: tone(a.topology.state), text: a.topology.words };
}

const RANK: Record<Health, number> = { critical: 0, warning: 1, unknown: 2, ok: 3 };

/** The servers that need attention, the worst first, as the list beside the drawing has them. */
export function troubled(p: Picture): TopologyNode[] {
  return p.nodes.filter((n) => n.state === 'critical' || n.state === 'warning').sort((a, b) => RANK[a.state] - RANK[b.state] || Number(a.seen) - Number(b.seen) || a.name.localeCompare(b.name));
}

/** A text cut to what fits into so many pixels. */
export function fit(text: string, width: number, perChar: number): string {
  const most = Math.max(4, Math.floor(width / perChar));
  const chars = [...text];
  return chars.length <= most ? text : `${chars.slice(0, most - 1).join('')}…`;
}

/** What is written into a server's place below its name: as much as its height has room for. */
export function nodeLines(n: TopologyNode): string[] {
  const lines: string[] = [];
  if (n.height >= 40 && n.words.length > 0) lines.push(n.words[0]);
  if (n.height >= 58 && n.words.length > 1) lines.push(n.words.slice(1).join(', '));
  return lines;
}

/** What a screen reader says of a server: with whom it replicates, besides its own words. */
export function nodeLabel(p: Picture, i: number): string {
  const n = p.nodes[i];
  const sources = p.links.filter((l) => l.replica === i).map((l) => p.nodes[l.source].name);
  const replicas = p.links.filter((l) => l.source === i).length;
  return [`${n.name}: ${n.state}`, ...n.words, sources.length > 0 ? `replicates from ${sources.join(' and ')}` : '', replicas > 0 ? `${counted(replicas, 'replica')}` : '', n.instance ? '' : 'not watched'].filter(Boolean).join(', ');
}

/** The next change after a moment, or the last before it; null if there is none. changes are the newest first. */
export function step(changes: TopologyChange[], at: number | null, forward: boolean): number | null {
  const times = changes.filter((c) => !c.gap).map((c) => Math.ceil(unix(c.time)));
  if (forward) return at === null ? null : (times.filter((t) => t > at).pop() ?? null);
  return times.find((t) => at === null ? true : t < at) ?? null;
}

/** What a field for a date and a time shows of a moment, in the viewer's zone. */
export function fieldOf(t: number): string {
  const d = new Date(t * 1000);
  const two = (n: number): string => String(n).padStart(2, '0');
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}T${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** The moment that such a field says; null if it says none. */
export function ofField(s: string): number | null {
  const t = new Date(s).getTime() / 1000;
  return s === '' || Number.isNaN(t) ? null : Math.floor(t);
}
