import { describe, expect, it } from 'vitest';
import type { ChangeKind, Cost, QueryChange } from '../api';
import { againstWords, changeWords, flipWords, heaviest, loadSentence, nameOfChange, news, newsWords, times, totalWords } from './words';

const plain = (s: string): string => s.replaceAll('\u00a0', ' ');
const cost = (calls: number, seconds: number): Cost => ({
  calls, seconds, lock_seconds: 0, rows_sent: 0, rows_examined: 0, rows_affected: 0, errors: 0, warnings: 0, tmp_tables: 0, tmp_disk_tables: 0,
  no_index: 0, sort_rows: 0, max: 0, avg: calls > 0 ? seconds / calls : null, rows_examined_per_sent: null,
});
const before = { from: 10_000, to: 10_600 };
const after = { from: 20_000, to: 20_600 };
const change = (kind: ChangeKind, a: Cost, b: Cost, more: Partial<QueryChange> = {}): QueryChange => ({
  id: 'A', fingerprint: 'update shop.orders set a = ? where id = ?', verb: 'UPDATE', kind, first_seen: 1, a, b, delta: (b.seconds - a.seconds) / 600, share: 1,
  avg_factor: a.avg && b.avg ? b.avg / a.avg : null, rate_factor: a.calls ? b.calls / a.calls : null, flips: [], ...more,
});

describe('loadSentence', () => {
  it('says how few make most', () => {
    expect(heaviest([0.5, 0.2, 0.15, 0.1])).toEqual({ n: 3, share: 0.85 });
    expect(plain(loadSentence([0.5, 0.2, 0.11, 0.1], 214, cost(192_000, 360), 600))).toBe('3 of 214 classes make 81 % of the load: 600 ms/s of execution, 320 calls/s.');
    expect(plain(loadSentence([0.9], 12, cost(600, 60), 600))).toBe('One of 12 classes makes 90 % of the load: 100 ms/s of execution, 1 calls/s.');
  });
  it('has words for little', () => {
    expect(loadSentence([], 0, cost(0, 0), 600)).toBe('Nothing ran in this range.');
    expect(loadSentence([1], 1, cost(60, 6), 60)).toMatch(/^One class of statements makes all/);
    expect(loadSentence([null, null], 2, cost(60, 0), 60)).toMatch(/^2 classes of statements ran/);
  });
});

describe('changes', () => {
  it.each<[QueryChange, string]>([
    [change('slower', cost(600, 1.2), cost(600, 4.8)), '4 × slower: 2 ms → 8 ms a call'],
    [change('slower', cost(600, 1.2), cost(1200, 9.6)), '4 × slower: 2 ms → 8 ms a call, 2 × more often: 1/s → 2/s'],
    [change('oftener', cost(600, 1.2), cost(1800, 3.6)), '3 × more often: 1/s → 3/s'],
    [change('rarer', cost(1800, 3.6), cost(600, 1.2)), '3 × less often: 3/s → 1/s'],
    [change('faster', cost(600, 6), cost(600, 1.2)), '5 × faster: 10 ms → 2 ms a call'],
    [change('new', cost(0, 0), cost(600, 1.2), { first_seen: 20_060 }), 'new: 1/s at 2 ms a call'],
    [change('new', cost(0, 0), cost(600, 1.2), { first_seen: 500 }), 'back: 1/s at 2 ms a call'],
    [change('gone', cost(600, 1.2), cost(0, 0)), 'gone: was 1/s at 2 ms a call'],
    [change('same', cost(600, 1.2), cost(600, 1.2)), 'about the same'],
    [change('slower', cost(600, 0), cost(600, 1.2), { avg_factor: null }), 'about the same'],
  ])('%#', (c, want) => expect(plain(changeWords(c, before, after))).toBe(want));

  it('says what matters most, and what adds before what takes away', () => {
    const big = change('gone', cost(600, 60), cost(0, 0), { id: 'gone' });
    const slow = change('slower', cost(600, 6), cost(600, 24), { id: 'slow' });
    const tiny = change('new', cost(0, 0), cost(6, 0.006), { id: 'tiny' });
    expect(news([big, slow, tiny], cost(1, 66), cost(1, 24), before, after)?.id).toBe('slow');
    expect(news([big, tiny], cost(1, 60), cost(1, 1), before, after)?.id).toBe('gone');
    expect(news([tiny], cost(1, 60), cost(1, 60), before, after)).toBeNull();
    expect(news([], cost(0, 0), cost(0, 0), before, after)).toBeNull();
    expect(nameOfChange(slow)).toBe('UPDATE orders …');
    expect(newsWords(slow, 'day', before)).toBe('is 4 × slower than yesterday at this time.');
    expect(plain(newsWords(slow, 'before', before))).toBe('is 4 × slower than in the 10 min before.');
    expect(newsWords({ ...slow, flips: [{ instance: 'a', time: 20_100, old: 'x', new: 'y' }] }, 'week', before)).toMatch(/a week ago at this time; its plan flipped at \d\d:\d\d:\d\d\.$/);
  });

  it('sums up', () => {
    expect(plain(totalWords(cost(1, 60), cost(1, 180), 'day', before, after))).toBe('The load grew from 100 ms/s to 300 ms/s against yesterday at this time.');
    expect(plain(totalWords(cost(1, 60), cost(1, 62), 'day', before, after))).toMatch(/^The load is about that of yesterday/);
    expect(againstWords(cost(600, 1.2), cost(1200, 9.6), before, after)).toBe('4 × slower and 2 × more often');
    expect(againstWords(cost(600, 1.2), cost(600, 1.2), before, after)).toBe('');
    expect(againstWords(cost(0, 0), cost(600, 1.2), before, after)).toBe('');
    expect([1.25, 4, 9.96, 27.4].map(times)).toEqual(['1.3', '4', '10', '27']);
    expect(flipWords(null)).toBe('');
    expect(flipWords([{ instance: 'a', time: 5, old: 'x', new: 'y' }, { instance: 'a', time: 9, old: 'y', new: 'x' }])).toMatch(/^plan flipped 2 times, last at/);
    expect(flipWords([{ instance: 'a', time: 5, old: 'x', new: 'y' }, { instance: 'b', time: 9, old: 'x', new: 'y' }])).toMatch(/^plan flipped on 2 servers, last at/);
  });
});
