import { describe, expect, it } from 'vitest';
import type { LockWait, Moment } from '../api';
import { indexAt } from './Player';
import { momentSentence, trees, waitWords, type Node } from './tree';
import { inUnit } from './units';

const wait = (waiter: number, blocker: number, over: Partial<LockWait> = {}): LockWait => ({ waiter, kind: 'row_lock', blocker: { id: blocker }, ...over });
const moment = (over: Partial<Moment> = {}): Moment => ({ tick: 1, connected: 12, sleeping: 10, sessions: [], transactions: [], locks: [], blockers: [], numbers: {}, ...over });

describe('lock trees', () => {
  it('have those who wait for nobody as roots, the one with most behind it first', () => {
    const got = trees([wait(5, 9), wait(2, 1), wait(3, 2), wait(4, 1)]);
    expect(got.map((n) => [n.id, n.count, n.under.map((u) => u.id)])).toEqual([[1, 3, [2, 4]], [9, 1, [5]]]);
  });
  it('end where a circle closes, and show who waits for two below both', () => {
    const ids = (n: Node): unknown[] => [n.id, ...n.under.map(ids)];
    expect(trees([wait(1, 2), wait(2, 1)]).map(ids)).toEqual([[2, [1, [2]]]]);
    expect(trees([wait(3, 1), wait(3, 2), wait(4, 3)]).map(ids)).toEqual([[1, [3, [4]]], [2, [3]]]);
  });
  it('say what is waited for', () => {
    expect(waitWords(wait(2, 1, { schema: 'shop', name: 'orders', index: 'PRIMARY', data: '17', mode: 'X' }))).toBe('row lock on shop.orders, index PRIMARY, record 17 (X)');
  });
});

describe('a moment in a sentence', () => {
  it('names who blocks', () => {
    expect(momentSentence(moment({ blockers: [{ id: 811, blocks: 9, what: 'connection 811 keeps 9 others waiting' }, { id: 4, blocks: 1, what: '' }] }))).toEqual({ tone: 'warning', text: 'connection 811 keeps 9 others waiting. 1 more blocks others.' });
  });
  it('is quiet when nothing waits, and says when the server was down', () => {
    expect(momentSentence(moment())).toEqual({ tone: 'ok', text: 'Nothing runs, 12 connected; nobody waits for a lock.' });
    expect(momentSentence(moment({ down: 'refuses connections' })).tone).toBe('critical');
  });
});

describe('a film', () => {
  it('stands at the last second that is kept up to a moment', () => {
    const reel = { tick: [10, 11, 15], running: [], blocked: [], deadlock: [], missing: [] };
    expect([9, 10, 13, 15, 99].map((t) => indexAt(reel, t))).toEqual([0, 0, 1, 2, 2]);
  });
});

describe('units of moments', () => {
  it('are those of the answers, where a percentage is of 100', () => {
    expect([inUnit(6.7, '%'), inUnit(2048, 'bytes'), inUnit(2048, 'bytes/s'), inUnit(812), inUnit(null, '%')]).toEqual(['6.7\u00a0%', '2\u00a0KiB', '2\u00a0KiB/s', '812', '–']);
  });
});
