import { describe, expect, it } from 'vitest';
import type { ChartData } from '../api';
import { Feed } from './feed';

interface Call { keys: string[]; from: number; to: number; points: number }

// A server that answers with the bucket's own time, so that a misplaced bucket shows.
function server(): { calls: Call[]; ask: (keys: string[], from: number, to: number, points: number) => Promise<ChartData> } {
  const calls: Call[] = [];
  return {
    calls,
    ask: async (keys, from, to, points) => {
      calls.push({ keys, from, to, points });
      const step = Math.ceil((to - from) / points);
      const n = Math.ceil((to - from) / step);
      const avg = Array.from({ length: n }, (_, i) => from + i * step);
      return { from, to, step, series: keys.filter((k) => k !== 'gone').map((key) => ({ key, type: 'gauge', unit: '', avg })) };
    },
  };
}
const soon = (): Promise<void> => new Promise((r) => setTimeout(r, 5));

describe('feed', () => {
  it('asks once for charts that come into view together', async () => {
    const s = server();
    const f = new Feed('i', { from: 1000, to: 1100 }, 400, s.ask);
    let drawn = 0;
    f.watch(['a'], () => drawn++);
    f.watch(['b', 'a'], () => undefined);
    await soon();
    expect(s.calls).toEqual([{ keys: ['a', 'b'], from: 1000, to: 1100, points: 100 }]);
    expect(drawn).toBe(2);
    expect(f.track('a')?.columns.avg[5]).toBe(1005);
  });

  it('asks for new seconds only while live, and lets the old ones go', async () => {
    const s = server();
    const f = new Feed('i', { from: 1000, to: 1100 }, 400, s.ask);
    f.watch(['a'], () => undefined);
    await soon();
    await f.advance({ from: 1003, to: 1103 });
    expect(s.calls[1]).toEqual({ keys: ['a'], from: 1098, to: 1103, points: 5 });
    const t = f.track('a')!;
    expect([t.from, t.columns.avg.length, t.columns.avg.at(-1)]).toEqual([1003, 100, 1102]);
  });

  it('does not ask for what nobody sees', async () => {
    const s = server();
    const f = new Feed('i', { from: 1000, to: 1100 }, 400, s.ask);
    const off = f.watch(['a'], () => undefined);
    await soon();
    off();
    await f.advance({ from: 1001, to: 1101 });
    expect(s.calls.length).toBe(1);
    f.watch(['a'], () => undefined);
    await soon();
    expect(s.calls.length).toBe(1);
    await f.advance({ from: 1030, to: 1130 });
    expect(s.calls[1].from).toBe(1098);
    expect(f.track('a')!.columns.avg).toHaveLength(100);
  });

  it('drops answers to a range that is no longer shown', async () => {
    const s = server();
    const f = new Feed('i', { from: 1000, to: 1100 }, 400, s.ask);
    f.watch(['a'], () => undefined);
    f.show({ from: 5000, to: 5400 }, 200);
    await soon();
    const t = f.track('a')!;
    expect([t.from, t.step, t.columns.avg[1]]).toEqual([5000, 2, 5002]);
  });

  it('takes a key without an answer for empty, and does not ask forever', async () => {
    const s = server();
    const f = new Feed('i', { from: 1000, to: 1100 }, 400, s.ask);
    f.watch(['gone'], () => undefined);
    await soon();
    await soon();
    expect(s.calls.length).toBe(1);
    expect(f.track('gone')?.columns.avg.every((v) => v === null)).toBe(true);
  });

  it('tries again when the server is silent', async () => {
    let calls = 0;
    const f = new Feed('i', { from: 1000, to: 1100 }, 400, async () => {
      calls++;
      throw new Error('silent');
    });
    f.watch(['a'], () => undefined);
    await soon();
    expect(calls).toBe(1);
    await new Promise((r) => setTimeout(r, 1200));
    expect(calls).toBe(2);
    f.close();
  });
});
