import { expect, test } from 'vitest';
import type { ProtectBackup, ProtectDetail, ProtectDrill, ProtectJob, Protected, ProtectRun } from '../api';
import { left, ticks, timelineOf, SHOWN } from './timeline';
import { configBlock, elsewhere, neverRan, part, parted, plan, progress, protectSentence, until, windowText } from './words';

const NOW = Date.parse('2026-11-21T12:00:00Z') / 1000;
const H = 3600;
const D = 86400;
const plain = (s: string): string => s.replaceAll('\u00a0', ' ');

const backup = (began: number, more: Partial<ProtectBackup> = {}): ProtectBackup => ({
  place: '/b', id: `b${began}`, kind: 'logical', began, ended: began + 240, bytes: 1 << 30, stored: 1 << 20, tables: 3, rows: 10, position: '0-1-2', ...more,
});
const server = (name: string, more: Partial<Protected> = {}): Protected => ({
  id: name, name, address: '', watched: true, plan: { place: '/b', kind: 'logical', encrypted: false, mirror: true }, state: 'ok', words: 'well', findings: [],
  last_backup: backup(NOW - 10 * H), last_proven: backup(NOW - 34 * H), proven_at: NOW - 30 * H, recovery: 812, window: null, next: null, running: [], jobs: [], ...more,
});
const finding = (id: string) => ({ id, severity: 'critical' as const, since: '', what: id });

test('what is not fresh and what was never proven is said first, by name', () => {
  const list = [
    server('idle', { state: 'critical', last_backup: null, last_proven: null, proven_at: null, findings: [finding('protect.never')] }),
    server('crm', { state: 'critical', findings: [finding('protect.stale'), finding('protect.drill_failed')] }),
    server('blog', { state: 'warning', last_proven: null, proven_at: null, findings: [finding('protect.unproven')] }),
    server('shop'),
  ];
  const said = protectSentence(list, NOW);
  expect(said.tone).toBe('critical');
  expect(said.text).toBe('1 server was never backed up (idle); 1 last backup is too old (crm); 1 drill failed (crm); 1 server has no proven backup (blog).');
  expect(protectSentence([server('a', { state: 'warning', words: 'the last copy failed at 11:00', findings: [finding('protect.failed_copy')] }), server('b')], NOW).text).toBe('a: the last copy failed at 11:00.');
  expect(protectSentence([server('a', { state: 'warning', last_backup: null, findings: [finding('protect.failed_backup'), finding('protect.never')] })], NOW).text).toBe(
    '1 last backup failed (a); 1 server was never backed up (a).');
  expect(protectSentence([server('a', { state: 'critical', last_backup: null, findings: [finding('protect.strange'), finding('protect.never')] })], NOW).text).toBe(
    '1 server has only backups without a trusted signature (a).');
  expect(protectSentence([server('a', { state: 'critical', last_backup: null, findings: [finding('protect.broken'), finding('protect.never')] })], NOW).text).toBe(
    '1 server has no backup that can be restored (a).');
});

test('what others did since the last run of a job is shown, and what leaves no trace is not said to be never done', () => {
  const job = (kind: ProtectJob['kind'], last: ProtectRun | null): ProtectJob => ({ name: `a/${kind}`, kind, schedule: '', due: null, last });
  const run = (began: number, ended: number | null): ProtectRun => ({ id: 1, job: 'a', kind: 'drill', place: '/b', began, ended, outcome: ended === null ? 'running' : 'ok', text: 'well' });
  const drill = (began: number, passed: boolean): ProtectDrill => ({ id: began, place: '/b', backup: 'x', began, ended: began + 60, passed, recovery: 5, reached: null, text: 'rows differ', proof: null });
  expect(elsewhere(job('drill', null), [], [drill(100, true), drill(900, false)])).toEqual({ began: 900, ended: 960, good: false, text: 'failed: rows differ' });
  expect(elsewhere(job('drill', run(890, 970)), [], [drill(900, false)])).toBeNull(); // its own
  expect(elsewhere(job('drill', run(100, 200)), [], [drill(900, true)])?.good).toBe(true);
  expect(elsewhere(job('drill', run(890, null)), [], [drill(900, false)])).toBeNull();
  expect(elsewhere(job('backup', null), [backup(500)], [])?.began).toBe(500);
  expect(elsewhere(job('verify', null), [backup(500)], [drill(900, true)])).toBeNull();
  expect(neverRan('verify')).toBe('never by this risso serve');
  expect(neverRan('drill')).toBe('never');
});

test('well is said quietly, with the worst of each figure', () => {
  const said = protectSentence([server('a'), server('b', { recovery: 90 })], NOW);
  expect(said.tone).toBe('ok');
  expect(plain(said.text)).toBe('2 servers are backed up within the last 10 h and proven within the last 30 h; the slowest is back within 13 min 32 s.');
});

test('a replica of a protected server is not counted as unprotected', () => {
  const replica = server('r', { source: 'a', plan: null, last_backup: null, last_proven: null, proven_at: null, recovery: null });
  expect(plain(protectSentence([server('a', { recovery: 0.4 }), replica], NOW).text)).toBe('1 server is backed up within the last 10 h and proven within the last 30 h; the slowest is back within 400 ms.');
  const sick = server('b', { state: 'critical', last_backup: null, findings: [finding('protect.never')] });
  expect(protectSentence([sick, replica], NOW).text).toBe('1 server was never backed up (b).');
});

test('progress says only what is known', () => {
  expect(plain(progress({ done: 3 * 1024 ** 3, total: 10 * 1024 ** 3, unit: 'bytes', rate: 120 * 1024 ** 2, left: 57 }))).toBe('3 GiB of 10 GiB, 120 MiB/s, 57 s left');
  expect(plain(progress({ done: 12, total: 0, unit: 'tables', rate: 0, left: null }))).toBe('12 tables');
  expect(progress({ done: 0, total: 0, unit: '', rate: 0, left: null })).toBe('');
  expect(part({ done: 5, total: 4 })).toBe(1);
  expect(part({ done: 5, total: 0 })).toBe(null);
});

test('small words', () => {
  expect(plain(windowText({ from: NOW - 14 * D, to: NOW - 5 }, NOW))).toBe('last 14 d');
  expect(plain(windowText({ from: NOW - 14 * D, to: NOW - 3 * H }, NOW))).toBe('last 14 d, until 3 h ago');
  expect(plain(until(NOW + 3 * H, NOW))).toBe('in 3 h');
  expect(until(NOW - 1, NOW)).toBe('now');
  expect(plan({ name: 's/copy', kind: 'copy', schedule: '', after: 's/backup', due: null, last: null })).toBe('behind backup');
  expect(plan({ name: 's/mirror', kind: 'mirror', schedule: '', due: NOW, last: null })).toBe('always');
  expect(plan({ name: 's/verify', kind: 'verify', schedule: '', due: null, last: null })).toBe('by hand');
  expect(configBlock('my shop: 1')).toContain('- name: "my shop: 1"');
  expect(configBlock('my shop: 1')).toContain('place: /backup/my-shop-1');
});

test('checks behind the recovery are no part of it', () => {
  const stages = [{ name: 'start', seconds: 3 }, { name: 'load', seconds: 600 }, { name: 'check tables', seconds: 1000 }];
  expect(parted(stages, 603).recovery.length).toBe(2);
  expect(parted(stages, 0).checks.length).toBe(3);
  const told = [{ name: 'start', seconds: 3 }, { name: 'count rows', seconds: 5, check: true }, { name: 'roll forward', seconds: 600 }];
  expect(parted(told, 603).recovery.map((x) => x.name)).toEqual(['start', 'roll forward']);
});

const run = (id: number, kind: ProtectRun['kind'], outcome: ProtectRun['outcome'], began: number): ProtectRun => ({ id, job: '', kind, place: '', began, ended: began + 10, outcome, text: 'x' });
const detail = (more: Partial<ProtectDetail>): ProtectDetail => ({ now: NOW, server: server('shop'), backups: [], drills: [], runs: [], ...more });

test('the timeline shows weeks at first and all on request; failed tries stand among backups', () => {
  const d = detail({
    backups: [backup(NOW - 100 * D), backup(NOW - D, { proven: NOW - H })],
    runs: [run(1, 'backup', 'failed', NOW - 2 * D), run(2, 'backup', 'ok', NOW - D), run(3, 'mirror', 'failed', NOW - D), run(4, 'verify', 'ok', NOW - D)],
  });
  const t = timelineOf(d, NOW, false);
  expect(t.older).toBe(true);
  expect(t.from).toBeGreaterThan(NOW - SHOWN - 2 * D);
  expect(t.backups.map((p) => [p.key, p.tone])).toEqual([['run-1', 'bad'], [`backup-b${NOW - D}`, 'good']]);
  expect(t.others.map((p) => p.key)).toEqual(['run-4']);
  const all = timelineOf(d, NOW, true);
  expect(all.older).toBe(false);
  expect(all.backups.length).toBe(3);
});

test('a server without anything still has an axis', () => {
  const t = timelineOf(detail({}), NOW, false);
  expect(t.to - t.from).toBeGreaterThan(H);
  expect(ticks(t.from, t.to).length).toBeGreaterThan(1);
  expect(ticks(NOW - 35 * D, NOW).length).toBeLessThan(10);
  expect(left(5, 0, 10)).toBe('50.000%');
  expect(left(-5, 0, 10)).toBe('0.000%');
});
