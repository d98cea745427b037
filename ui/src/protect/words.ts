/** Sentences about protection. */
import type { DrillStage, JobKind, ProtectBackup, ProtectDrill, Protected, ProtectJob, ProtectRun, ProtectRunning, Span } from '../api';
import { age, counted, human } from '../common/format';
import type { Said } from '../fleet/sentence';

/** The name of a kind of job on a button. */
export const NOW: Record<JobKind, string> = {
  backup: 'Back up now', copy: 'Copy now', prune: 'Prune now', mirror: 'Start', drill: 'Drill now', verify: 'Verify now', checksum: 'Compare now',
};

/** What a job of a kind does, in a line. */
export const DOES: Record<JobKind, string> = {
  backup: 'takes a backup',
  copy: 'copies backups to the second place',
  prune: 'removes what retention does not keep',
  mirror: 'copies binary logs as they are written',
  drill: 'restores the newest backup into a throw-away server, checks it and measures the time',
  verify: 'reads everything at the place and compares checksums',
  checksum: 'compares the replicas with this server, chunk by chunk',
};

/** What goes on with all servers, in a sentence or two: what is not fresh and what was never proven is said loudly. */
export function protectSentence(list: Protected[], now: number): Said {
  const bad = list.filter((s) => s.state !== 'ok');
  if (bad.length === 0) return { tone: 'ok', text: well(list, now) };
  const none = list.filter((s) => !s.last_backup && !s.source);
  const strange = none.filter((s) => has(s, 'protect.strange'));
  const broken = none.filter((s) => has(s, 'protect.broken') && !strange.includes(s));
  const never = none.filter((s) => !strange.includes(s) && !broken.includes(s));
  const unproven = list.filter((s) => s.last_backup && !s.last_proven);
  const stale = list.filter((s) => s.last_backup && has(s, 'protect.stale'));
  const failed = list.filter((s) => has(s, 'protect.drill_failed'));
  const broke = list.filter((s) => has(s, 'protect.failed_backup'));
  const names = (of: Protected[]): string => (of.length <= 3 ? ` (${of.map((s) => s.name).join(', ')})` : '');
  const parts = [
    broke.length > 0 ? `${counted(broke.length, 'last backup')} failed${names(broke)}` : '',
    never.length > 0 ? `${counted(never.length, 'server was', 'servers were')} never backed up${names(never)}` : '',
    strange.length > 0 ? `${counted(strange.length, 'server has', 'servers have')} only backups without a trusted signature${names(strange)}` : '',
    broken.length > 0 ? `${counted(broken.length, 'server has', 'servers have')} no backup that can be restored${names(broken)}` : '',
    stale.length > 0 ? `${counted(stale.length, 'last backup is', 'last backups are')} too old${names(stale)}` : '',
    failed.length > 0 ? `${counted(failed.length, 'drill')} failed${names(failed)}` : '',
    unproven.length > 0 ? `${counted(unproven.length, 'server has', 'servers have')} no proven backup${names(unproven)}` : '',
  ].filter(Boolean);
  const tone = bad.some((s) => s.state === 'critical') ? 'critical' : 'warning';
  const named = new Set([...broke, ...never, ...strange, ...broken, ...stale, ...failed, ...unproven]);
  const others = bad.filter((s) => !named.has(s));
  if (others.length > 0) parts.push(parts.length === 0 ? `${others[0].name}: ${others[0].words}` : `${counted(others.length, 'more needs', 'more need')} attention${names(others)}`);
  return { tone, text: `${parts.join('; ')}.` };
}

const has = (s: Protected, id: string): boolean => (s.findings ?? []).some((f) => f.id === id);

function well(all: Protected[], now: number): string {
  const list = all.filter((s) => !s.source);
  const oldest = Math.max(...list.map((s) => now - (s.last_backup?.began ?? now)));
  const proof = Math.max(...list.map((s) => now - (s.proven_at ?? now)));
  const recovery = Math.max(0, ...list.map((s) => s.recovery ?? 0));
  const first = `${counted(list.length, 'server is', 'servers are')} backed up within the last ${age(oldest)} and proven within the last ${age(proof)}`;
  return `${first}${recovery > 0 ? `; the slowest is back within ${human(recovery, 's')}` : ''}.`;
}

/** How far something is: 3.2 GiB of 10 GiB, 120 MiB/s, 57 s left. */
export function progress(p: Pick<ProtectRunning, 'done' | 'total' | 'unit' | 'rate' | 'left'>): string {
  const bytes = p.unit === 'bytes';
  const amount = (n: number): string => (bytes ? human(n, 'B') : `${human(n)}${p.unit ? ` ${p.unit}` : ''}`);
  const out: string[] = [];
  if (p.done > 0 || p.total > 0) out.push(p.total > 0 ? `${bytes ? human(p.done, 'B') : human(p.done)} of ${amount(p.total)}` : amount(p.done));
  if (p.rate > 0) out.push(bytes ? human(p.rate, 'B/s') : human(p.rate, '/s'));
  if (p.left !== null) out.push(`${age(p.left)} left`);
  return out.join(', ');
}

/** The part that is done, 0 to 1; null if unknown. */
export function part(p: Pick<ProtectRunning, 'done' | 'total'>): number | null {
  return p.total > 0 ? Math.min(1, p.done / p.total) : null;
}

/** A window of time that can be restored: its length, and how near to now it ends. */
export function windowText(w: Span | null, now: number): string {
  if (!w) return '';
  const behind = now - w.to;
  return `last ${age(now - w.from)}${behind > 120 ? `, until ${age(behind)} ago` : ''}`;
}

/** When a job is done again. */
export function plan(j: ProtectJob): string {
  if (j.kind === 'mirror') return 'always';
  if (j.after) return `behind ${j.after.replace(/^.*\//, '')}`;
  return j.schedule || 'by hand';
}

/** The last time that the work of a job was done, where this serve did not do it: by the command line, or by another serve. */
export interface Elsewhere {
  began: number;
  ended: number;
  good: boolean;
  text: string;
}

/** What is at the place and is newer than the last run of a job: a backup, or what a drill found. Other work leaves nothing there. */
export function elsewhere(j: ProtectJob, backups: ProtectBackup[], drills: ProtectDrill[]): Elsewhere | null {
  if (j.last && j.last.ended === null) return null;
  const since = j.last?.ended ?? -Infinity;
  const newest = <T extends { began: number }>(list: T[]): T | undefined => list.filter((x) => x.began > since).sort((a, b) => b.began - a.began)[0];
  if (j.kind === 'backup') {
    const b = newest(backups);
    return b ? { began: b.began, ended: b.ended, good: true, text: human(b.bytes, 'B') } : null;
  }
  const d = j.kind === 'drill' ? newest(drills) : undefined;
  return d ? { began: d.began, ended: d.ended, good: d.passed, text: d.passed ? d.text : `failed: ${d.text}` } : null;
}

/** What is said about a job that this serve never ran: only backups and drills leave something at the place that would show others' work. */
export function neverRan(kind: JobKind): string {
  return kind === 'backup' || kind === 'drill' ? 'never' : 'never by this risso serve';
}

/** How long a run took; nothing while it runs. */
export function took(r: ProtectRun): string {
  return r.ended === null ? '' : human(Math.max(0, r.ended - r.began), 's');
}

/** "in 3 h", or "now" for what is overdue. */
export function until(due: number, now: number): string {
  return due <= now ? 'now' : `in ${age(due - now)}`;
}

/** A block for the config file that protects a server. */
export function configBlock(name: string): string {
  return `servers:
  - name: ${/^[\w.-]+$/.test(name) ? name : JSON.stringify(name)}
    dsn: …
    protect:
      place: /backup/${name.replace(/[^\w.-]+/g, '-')}
      schedule: daily at 02:00
      retention: {keep_daily: 7, keep_weekly: 4, keep_monthly: 12}
      drill: weekly on sunday at 04:00
      mirror: true`;
}

/** The stages of a drill that make up its recovery, and the checks, during which a server in need would answer already. */
export function parted(stages: DrillStage[], recovery: number): { recovery: DrillStage[]; checks: DrillStage[] } {
  if (stages.some((x) => x.check)) return { recovery: stages.filter((x) => !x.check), checks: stages.filter((x) => x.check) };
  // A proof from before checks were distinguished: they come last.
  let sum = 0;
  let n = 0;
  while (n < stages.length && sum + stages[n].seconds <= recovery * 1.01 + 0.01) sum += stages[n++].seconds;
  return { recovery: stages.slice(0, n), checks: stages.slice(n) };
}
