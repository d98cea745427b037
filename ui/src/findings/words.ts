/** What was wrong lately, in words. Pure. */
import type { Alert, FindingRecord } from '../api';
import { age, bytes, clock, counted, number, percent, seconds, unix } from '../common/format';

/** One thing that was wrong, with what came from it. */
export interface Trouble {
  r: FindingRecord;
  begin: number;
  /** null while it holds */
  end: number | null;
  alert?: Alert;
  /** what has its cause here */
  effects: Trouble[];
  /** the same on the same server at other times */
  again: Trouble[];
}

/** When last evening began: yesterday at six, on the viewer's clock. */
export function lastEvening(now: number): number {
  const d = new Date(now * 1000);
  return new Date(d.getFullYear(), d.getMonth(), d.getDate() - 1, 18).getTime() / 1000;
}

const RANK = { critical: 0, warning: 1, info: 2 };

/** What was wrong, the worst first, each cause with its effects; what no rule calls bad is left out. */
export function troubles(records: FindingRecord[], alerts: Alert[]): Trouble[] {
  const byRecord = new Map(alerts.map((a) => [a.record, a]));
  const all = records.filter((r) => r.worst.severity !== 'info').map((r): Trouble => {
    const told = unix(r.told);
    const since = r.first.since ? unix(r.first.since) : told;
    return { r, begin: since > 0 ? since : told, end: r.ended ? unix(r.ended) : null, alert: byRecord.get(r.record), effects: [], again: [] };
  });
  const byKey = new Map<string, Trouble[]>();
  for (const t of all) if (t.alert) byKey.set(t.alert.key, [...(byKey.get(t.alert.key) ?? []), t]);
  const roots: Trouble[] = [];
  for (const t of all) {
    const cause = (byKey.get(t.alert?.cause ?? '') ?? []).find((c) => c !== t && c.begin <= t.begin + 120 && (c.end ?? Infinity) >= t.begin - 120);
    // Only one step: a cause that is an effect itself stays on the list.
    if (cause && !cause.alert?.cause) cause.effects.push(t);
    else roots.push(t);
  }
  return together(roots).sort((a, b) => RANK[a.r.worst.severity] - RANK[b.r.worst.severity] || Number(a.end !== null) - Number(b.end !== null) || b.begin - a.begin);
}

// What came so often is one line.
const OFTEN = 3;

function together(list: Trouble[]): Trouble[] {
  const by = new Map<string, Trouble[]>();
  for (const t of list) {
    // Each connection is another subject; who blocks changes, what it does to the server not.
    const key = `${t.r.instance} ${t.r.worst.id} ${/^connection \d/.test(t.r.worst.subject ?? '') ? '' : (t.r.worst.subject ?? '')}`;
    by.set(key, [...(by.get(key) ?? []), t]);
  }
  return [...by.values()].flatMap((same) => {
    if (same.length < OFTEN) return same;
    const [first, ...again] = [...same].sort((a, b) => Number(a.end !== null) - Number(b.end !== null) || RANK[a.r.worst.severity] - RANK[b.r.worst.severity] || b.begin - a.begin);
    return [{ ...first, again }];
  });
}

/** How long it was wrong. */
export function lasted(t: Trouble, now: number): string {
  const span = age(Math.max(0, (t.end ?? now) - t.begin));
  if (t.end === null) return `${span} so far`;
  return t.r.unseen ? `${span} at most` : span;
}

/** What was wrong since last evening, in a sentence. */
export function tonightSentence(list: Trouble[], watchedSince: number, from: number, nameOf: (id: string) => string, now: number, clock: (t: number) => string): string {
  const since = watchedSince > from ? `since Risso started at ${clock(watchedSince)}` : 'since yesterday 18:00';
  if (list.length === 0) return `Tonight: nothing was wrong ${since}.`;
  const holds = list.filter((t) => t.end === null).length;
  const [worst] = list;
  const still = holds === 0 ? 'none still is' : holds === list.length ? (holds === 1 ? 'it still is' : 'all still are') : `${holds} still ${holds === 1 ? 'is' : 'are'}`;
  const what = list.length === 1 ? 'one thing was' : `${counted(list.length, 'thing')} were`;
  const named = worst.end === null ? '' : `; the worst: ${nameOf(worst.r.instance)} for ${lasted(worst, now)}`;
  return `Tonight: ${what} wrong ${since}, ${still}${named}.`;
}

/** What Risso keeps of the second in which a finding was at its worst. */
interface Evidence {
  tick: number;
  host?: {
    load: number; processors: number; idle: number; memory_bytes: number; available_bytes: number; swapped_bytes: number; stalled_io: number; stalled_memory: number;
    disk?: string; busy?: number; mount?: string; size_bytes?: number; free_bytes?: number;
    processes?: { pid: number; name: string; cpu: number; resident_bytes: number; read_rate?: number; write_rate?: number; suspended?: boolean }[];
  };
  down?: string;
  connected?: number;
  running?: number;
  blocked?: number;
  blockers?: { what: string }[];
  sessions?: { id: number; user?: string; host?: string; seconds: number; wait: string; statement?: string }[];
  channels?: { source: string; io_running: string; sql_running: string; io?: { number?: number; text?: string }; sql?: { number?: number; text?: string } }[];
}

/** A host in that second, as messages say it. */
function hostLines(at: string, h: NonNullable<Evidence['host']>): string[] {
  const out = [`at ${at}: load ${number(h.load)} on ${counted(h.processors, 'processor')}, ${percent(h.idle)} idle; ${bytes(h.available_bytes)} of ${bytes(h.memory_bytes)} memory available${h.swapped_bytes > 0 ? `, ${bytes(h.swapped_bytes)} swapped` : ''}`];
  if (h.mount) out.push(`${h.mount}: ${bytes(h.free_bytes ?? 0)} of ${bytes(h.size_bytes ?? 0)} free`);
  if (h.disk) out.push(`disk ${h.disk} busy ${percent(h.busy ?? 0)} of the time`);
  if (h.stalled_io + h.stalled_memory >= 0.01) out.push(`all tasks waited for disks ${percent(h.stalled_io)} of the time, for memory ${percent(h.stalled_memory)}`);
  for (const p of h.processes ?? []) {
    const [read, written] = [p.read_rate ?? 0, p.write_rate ?? 0];
    out.push(`${p.name} (process ${p.pid}): ${number(Math.round(p.cpu * 100) / 100)} processors, ${bytes(p.resident_bytes)} memory${read + written > 0 ? `, reads ${bytes(read)}/s, writes ${bytes(written)}/s` : ''}${p.suspended ? ', waits for a disk' : ''}`);
  }
  return out;
}

function secondLines(e: Evidence): string[] {
  const at = clock(e.tick);
  if (e.host) return hostLines(at, e.host);
  if (e.down) return [`at ${at} the server ${e.down}`];
  const out = [`at ${at}: ${counted(e.connected ?? 0, 'connection')}, ${e.running ?? 0} run a statement, ${e.blocked ?? 0} blocked`, ...(e.blockers ?? []).map((b) => b.what)];
  for (const c of e.channels ?? []) {
    const error = c.sql?.text ? c.sql : c.io;
    out.push(`replication from ${c.source}: receives ${c.io_running}, applies ${c.sql_running}${error?.text ? `; error ${error.number ?? ''}: ${error.text}` : ''}`);
  }
  for (const s of e.sessions ?? []) {
    if (s.wait !== 'idle' && s.statement) out.push(`connection ${s.id}${s.user ? ` (${s.user}${s.host ? `@${s.host}` : ''})` : ''}, ${seconds(s.seconds)}, ${s.wait.replace(/_/g, ' ')}: ${s.statement}`);
  }
  return out;
}

/** What was seen, line by line, whatever its form. */
export function evidenceLines(e: unknown): string[] {
  if (typeof e === 'object' && e !== null && typeof (e as Evidence).tick === 'number') return secondLines(e as Evidence);
  if (e === null || e === undefined || e === '') return [];
  if (Array.isArray(e)) return e.flatMap(evidenceLines);
  if (typeof e === 'object') {
    return Object.entries(e).filter(([, v]) => v !== null && v !== '').flatMap(([k, v]) => {
      const name = k.replace(/_/g, ' ');
      if (typeof v !== 'object') return [`${name}: ${String(v)}`];
      const inner = evidenceLines(v);
      return inner.length > 0 ? [`${name}:`, ...inner.map((l) => `  ${l}`)] : [];
    });
  }
  return [String(e)];
}
