/** Where things are on the timeline of a server's protection. */
import type { ProtectDetail } from '../api';
import { day, human, stamp } from '../common/format';

/** One thing that happened. */
export interface Point {
  t: number;
  /** what the table below calls it: backup-ID, drill-N, run-N */
  key: string;
  tone: 'good' | 'plain' | 'bad';
  title: string;
}

/** The whole timeline; from and to are unix seconds. */
export interface Timeline {
  from: number;
  to: number;
  backups: Point[];
  drills: Point[];
  others: Point[];
  /** what is due in the future */
  due: { t: number; title: string }[];
  /** there is more before from */
  older: boolean;
}

const DAY = 86400;
// A shorter axis would make much of the seconds.
const LEAST = 3600;
/** How much is shown at first. */
export const SHOWN = 35 * DAY;

/** Lays out what is known; all shows all of it. */
export function timelineOf(d: ProtectDetail, now: number, all: boolean): Timeline {
  const backups = (d.backups ?? []).map((b): Point => ({
    t: b.began, key: `backup-${b.id}`, tone: b.proven ? 'good' : 'plain',
    title: `${b.kind} backup ${stamp(b.began)}\n${human(b.bytes, 'B')} in ${human(b.ended - b.began, 's')}\n${b.proven ? `proven ${stamp(b.proven)}` : 'not proven'}`,
  }));
  const drills = (d.drills ?? []).map((x): Point => ({
    t: x.began, key: `drill-${x.id}`, tone: x.passed ? 'good' : 'bad',
    title: `drill ${stamp(x.began)}: ${x.passed ? `good, back within ${human(x.recovery, 's')}` : `failed: ${x.text}`}`,
  }));
  const others: Point[] = [];
  for (const r of d.runs ?? []) {
    if (r.outcome === 'running' || r.kind === 'mirror') continue;
    const bad = r.outcome !== 'ok';
    const p: Point = { t: r.began, key: `run-${r.id}`, tone: bad ? 'bad' : 'plain', title: `${r.kind} ${stamp(r.began)}: ${r.outcome}${r.text ? `, ${r.text}` : ''}` };
    if (r.kind === 'backup') {
      if (bad) backups.push(p);
    } else if (r.kind === 'drill') {
      // One that found the backup bad is there already.
      if (bad && !(d.drills ?? []).some((x) => Math.abs(x.began - r.began) < 60 && !x.passed)) drills.push(p);
    } else others.push(p);
  }
  const times = [...backups, ...drills, ...others].map((p) => p.t);
  if (d.server.window) times.push(d.server.window.from);
  const oldest = Math.min(now - LEAST, ...times);
  const from = all ? oldest : Math.max(oldest, now - SHOWN);
  const ahead = (now - from) / 10;
  const due = (d.server.jobs ?? []).filter((j) => j.due !== null && j.due > now && j.due < now + ahead && !j.after && (j.kind === 'backup' || j.kind === 'drill'))
    .map((j) => ({ t: j.due!, title: `${j.kind} due ${stamp(j.due!)}` }));
  const margin = (now - from) / 50;
  const to = Math.max(now, ...due.map((x) => x.t)) + margin;
  const start = from - margin;
  const shown = (list: Point[]): Point[] => list.filter((p) => p.t >= start).sort((a, b) => a.t - b.t);
  return { from: start, to, backups: shown(backups), drills: shown(drills), others: shown(others), due, older: !all && oldest < from };
}

const STEPS = [600, 1800, 3600, 3 * 3600, 6 * 3600, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 91 * DAY, 365 * DAY];

/** The part at the right end where a label would be cut off. */
const EDGE = 0.03;

/** Labels of the axis, at most so many, at round times of the viewer's zone. */
export function ticks(from: number, to: number, most = 9): { t: number; text: string }[] {
  const step = STEPS.find((s) => (to - from) / s <= most) ?? STEPS[STEPS.length - 1];
  const shift = new Date(from * 1000).getTimezoneOffset() * 60;
  const out: { t: number; text: string }[] = [];
  for (let t = Math.ceil((from - shift) / step) * step + shift; t <= to - (to - from) * EDGE; t += step) {
    out.push({ t, text: step >= DAY ? day(t).slice(5) : stamp(t).slice(5, 16) });
  }
  return out;
}

/** How far from the left a moment is, as CSS. */
export function left(t: number, from: number, to: number): string {
  return `${(Math.min(1, Math.max(0, (t - from) / (to - from))) * 100).toFixed(3)}%`;
}

