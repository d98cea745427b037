import { describe, expect, it } from 'vitest';
import { evaluate, keysOf, resolve, stretch, text, type Expr } from './expr';
import { groupMarks } from './paint';
import { maxOf, minOf, niceTop, partsOf, runs, stack } from './stack';

describe('stack', () => {
  it('sums upwards', () => expect(stack([[1, 2], [3, 4], [5, 6]])).toEqual([[1, 2], [4, 6], [9, 12]]));
  it('counts a gap as nothing, but a gap of all as a gap', () => expect(stack([[1, null, null], [null, 2, null]])).toEqual([[1, 0, null], [1, 2, null]]));
  it('never goes down', () => expect(stack([[5], [-3]])).toEqual([[5], [5]]));
  it('is empty for nothing', () => expect(stack([])).toEqual([]));
});

describe('scales', () => {
  it('finds extremes beside gaps', () => {
    expect(maxOf([[1, null, 7], null])).toBe(7);
    expect(minOf([[1, null, -7]])).toBe(-7);
    expect(maxOf([[null]])).toBe(-Infinity);
  });
  it.each([[0, 1], [-3, 1], [7, 8], [8, 10], [8.5, 10], [9.9, 15], [1234, 1500], [0.023, 0.03], [100, 150]])('tops %d with %d', (v, want) => expect(niceTop(v)).toBeCloseTo(want, 9));
  it('tops bytes in their own units', () => {
    expect(niceTop(1000, true)).toBe(1024);
    expect(niceTop(130 * 1048576, true)).toBe(150 * 1048576);
    expect(niceTop(900 * 1024, true)).toBe(1048576);
  });
  it('cuts scales at round numbers', () => {
    expect(partsOf(1500)).toBe(3);
    expect(partsOf(0.03)).toBe(3);
    expect(partsOf(50)).toBe(5);
    expect(partsOf(8)).toBe(4);
    expect(partsOf(2)).toBe(4);
    expect(partsOf(2, false, true)).toBe(2);
    expect(partsOf(15 * 1024 ** 3, true)).toBe(3);
  });
  it('splits at gaps', () => {
    expect(runs([1, null, 2, 3, null])).toEqual([[0, 0], [2, 3]]);
    expect(runs([1, 2], [1, null])).toEqual([[0, 0]]);
    expect(runs([null])).toEqual([]);
  });
});

describe('stretch', () => {
  it('puts a value into the buckets it tells of, and no further', () =>
    expect(stretch([null, null, null, 4, null, 6, null], 3)).toEqual([null, 4, 4, 4, 6, 6, null]));
  it('leaves values of one bucket alone', () => expect(stretch([1, null, 3], 1)).toEqual([1, null, 3]));
});

describe('expressions', () => {
  const data: Record<string, (number | null)[]> = { a: [1, 2, null], b: [10, 0, 5], c: [3, 3, 3] };
  const col = (k: string): (number | null)[] | null => data[k] ?? null;
  const run = (e: Expr): (number | null)[] => evaluate(e, col, 3);
  it('reads, sums, divides, subtracts, scales', () => {
    expect(run('a')).toEqual([1, 2, null]);
    expect(run({ sum: ['a', 'b'] })).toEqual([11, 2, null]);
    expect(run({ less: ['b', 'a'] })).toEqual([9, -2, null]);
    expect(run({ times: ['c', 0.5] })).toEqual([1.5, 1.5, 1.5]);
  });
  it('makes a gap of a division by nothing', () => expect(run({ ratio: ['a', 'b'] })).toEqual([0.1, null, null]));
  it('is all gaps for a key without data', () => expect(run('z')).toEqual([null, null, null]));
  it('leaves out missing terms of a sum, and all else that lacks a part', () => {
    const has = (k: string): boolean => k in data;
    expect(resolve({ sum: ['a', 'z'] }, has)).toEqual({ sum: ['a'] });
    expect(resolve({ sum: ['y', 'z'] }, has)).toBeNull();
    expect(resolve({ ratio: ['a', 'z'] }, has)).toBeNull();
    expect(resolve({ times: [{ less: ['a', 'b'] }, 2] }, has)).toEqual({ times: [{ less: ['a', 'b'] }, 2] });
  });
  it('lists each key once', () => expect(keysOf({ ratio: [{ sum: ['a', 'b'] }, { sum: ['b', 'c'] }] })).toEqual(['a', 'b', 'c']));
  it('writes itself as people would', () => {
    expect(text({ ratio: ['a', { sum: ['b', 'c'] }] })).toBe('a / (b + c)');
    expect(text({ sum: ['x{m="p"}', 'x{m="q"}'] })).toBe('x{m=~"p|q"}');
  });
});

describe('marks', () => {
  it('joins those that fall together and keeps the gravest tone', () => {
    const marks = [
      { t: 100, tone: 'info' as const, text: '' }, { t: 90, tone: 'critical' as const, text: '' }, { t: 500, tone: 'info' as const, text: '' },
    ];
    expect(groupMarks(marks, 4)).toEqual([{ t: 90, tone: 'critical' }, { t: 500, tone: 'info' }]);
  });
});
