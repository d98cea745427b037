import { describe, expect, it } from 'vitest';
import type { Alert, FindingRecord } from '../api';
import { evidenceLines, lasted, lastEvening, tonightSentence, troubles } from './words';

const NOW = new Date(2026, 10, 24, 8, 0, 0).getTime() / 1000;
const iso = (h: number, m: number): string => new Date(2026, 10, 24, h, m, 0).toISOString();
let record = 0;
const found = (over: Partial<FindingRecord> & { id?: string; severity?: 'warning' | 'critical' | 'info' } = {}): FindingRecord => {
  const { id = 'lock.blocker', severity = 'warning', ...rest } = over;
  const f = { id, severity, since: iso(3, 0), what: 'connection 812 keeps 9 others waiting' };
  return { record: ++record, instance: 'db1', first: f, worst: f, worst_at: iso(3, 1), told: iso(3, 0), seen: iso(3, 2), ended: iso(3, 2), ...rest };
};
const alert = (r: FindingRecord, over: Partial<Alert> = {}): Alert => ({
  key: `${r.instance}/${r.worst.id}`, finding: r.worst.id, instance: r.instance, server: r.instance, severity: r.worst.severity,
  phase: 'resolved', began: iso(3, 0), what: r.worst.what, record: r.record, ...over,
});

describe('what was wrong tonight', () => {
  it('begins at six yesterday', () => {
    expect(new Date(lastEvening(NOW) * 1000).toString()).toContain('Nov 23 2026 18:00');
  });
  it('leaves out what no rule calls bad, and puts the worst first, then what holds', () => {
    const list = troubles([found({ severity: 'info' }), found(), found({ id: 'disk.full', ended: undefined }), found({ id: 'server.down', severity: 'critical' })], []);
    expect(list.map((t) => t.r.worst.id)).toEqual(['server.down', 'disk.full', 'lock.blocker']);
  });
  it('is one line for a cause and all that came from it', () => {
    const down = found({ id: 'server.down', severity: 'critical' });
    const late = [1, 2].map((n) => found({ id: 'repl.stopped', instance: `replica${n}` }));
    const list = troubles([down, ...late], [alert(down), ...late.map((r) => alert(r, { cause: 'db1/server.down' }))]);
    expect(list.map((t) => [t.r.worst.id, t.effects.length])).toEqual([['server.down', 2]]);
  });
  it('is one line for what came again and again', () => {
    const list = troubles([1, 2, 3, 4].map((n) => { const r = found(); r.worst = { ...r.worst, subject: `connection ${n} (app@web)` }; return r; }), []);
    expect(list.map((t) => t.again.length)).toEqual([3]);
  });
});

describe('the sentence of the night', () => {
  const say = (records: FindingRecord[], started = 0): string => tonightSentence(troubles(records, []), started, lastEvening(NOW), (id) => id, NOW, () => '07:55');
  it('names the worst with its time', () => {
    expect(say([found()])).toBe('Tonight: one thing was wrong since yesterday 18:00, none still is; the worst: db1 for 2\u00a0min.');
    expect(say([found({ ended: undefined }), found({ id: 'x' })])).toBe('Tonight: 2 things were wrong since yesterday 18:00, 1 still is.');
  });
  it('does not speak for hours in which Risso did not run', () => {
    expect(say([], NOW - 300)).toBe('Tonight: nothing was wrong since Risso started at 07:55.');
  });
  it('says at most for an end that nobody saw', () => {
    expect(lasted(troubles([found({ unseen: true })], [])[0], NOW)).toBe('2\u00a0min at most');
  });
});

describe('evidence', () => {
  it('becomes lines, whatever its form', () => {
    expect(evidenceLines(['a', 'b'])).toEqual(['a', 'b']);
    expect(evidenceLines({ last_error: 1146, waits: [{ connection: 7 }], none: null })).toEqual(['last error: 1146', 'waits:', '  connection: 7']);
    expect(evidenceLines(undefined)).toEqual([]);
  });
  it('is the second of the worst in words', () => {
    const got = evidenceLines({
      tick: NOW, connected: 12, running: 5, blocked: 1, numbers: { threads_running: 5 }, blockers: [{ id: 1, what: 'connection 1 keeps 1 other waiting' }],
      sessions: [{ id: 2, user: 'app', host: 'web', seconds: 41, wait: 'row_lock', statement: 'UPDATE t' }, { id: 1, seconds: 50, wait: 'idle' }],
      channels: [{ source: 'db1:3306', io_running: 'Yes', sql_running: 'No', io: {}, sql: { number: 1146, text: 'Table does not exist' } }],
    });
    expect(got).toEqual(['at 08:00:00: 12 connections, 5 run a statement, 1 blocked', 'connection 1 keeps 1 other waiting',
      'replication from db1:3306: receives Yes, applies No; error 1146: Table does not exist', 'connection 2 (app@web), 41\u00a0s, row lock: UPDATE t']);
  });
  it('is a host in that second, with what takes most of it', () => {
    const got = evidenceLines({
      tick: NOW,
      host: {
        load: 26.7, processors: 2, idle: 0, memory_bytes: 8 * 2 ** 30, available_bytes: 2 ** 30, swapped_bytes: 0, stalled_io: 0.3, stalled_memory: 0, disk: 'vda', busy: 0.12,
        mount: '/data', size_bytes: 2 ** 23, free_bytes: 2 ** 10, processes: [{ pid: 812, name: 'mariadbd', cpu: 1.234, resident_bytes: 2 ** 30, read_rate: 0, write_rate: 2 ** 20, suspended: true }],
      },
    });
    expect(got.map((l) => l.replace(/\u00a0/g, ' '))).toEqual(['at 08:00:00: load 26.7 on 2 processors, 0 % idle; 1 GiB of 8 GiB memory available', '/data: 1 KiB of 8 MiB free', 'disk vda busy 12 % of the time',
      'all tasks waited for disks 30 % of the time, for memory 0 %', 'mariadbd (process 812): 1.23 processors, 1 GiB memory, reads 0 B/s, writes 1 MiB/s, waits for a disk']);
  });
});
