import { describe, expect, it } from 'vitest';
import { alignDown, alignUp, edges, refreshEvery, stepFor } from './buckets';
import { blanksOf, dropBefore, endOf, merge, onGrid, type Column, type Track } from './track';

const track = (from: number, avg: (number | null)[], step = 1): Track => ({ from, step, columns: { avg } });

describe('buckets', () => {
  it('takes the smallest step that fits', () => {
    expect(stepFor(300, 540)).toBe(1);
    expect(stepFor(900, 540)).toBe(2);
    expect(stepFor(86400, 540)).toBe(300);
    expect(stepFor(2592000, 540)).toBe(7200);
    expect(stepFor(1e12, 10)).toBe(604800);
  });
  it('aligns', () => {
    expect(alignDown(119, 60)).toBe(60);
    expect(alignDown(120, 60)).toBe(120);
    expect(alignUp(121, 60)).toBe(180);
    expect(edges(60, 200, 60)).toEqual([60, 120, 180]);
    expect(edges(60, 60, 60)).toEqual([]);
  });
  it('asks each second at most', () => {
    expect(refreshEvery(1)).toBe(1);
    expect(refreshEvery(10)).toBe(5);
    expect(refreshEvery(3600)).toBe(30);
  });
});

describe('merge', () => {
  it('appends new buckets and replaces the unfinished one', () => {
    const m = merge(track(10, [1, 2, 3]), track(12, [9, 4, 5]));
    expect(m).toEqual(track(10, [1, 2, 9, 4, 5]));
    expect(endOf(m)).toBe(15);
  });
  it('leaves a gap where nobody has buckets', () => expect(merge(track(10, [1]), track(13, [4])).columns.avg).toEqual([1, null, null, 4]));
  it('takes earlier buckets as well', () => expect(merge(track(20, [3], 10), track(0, [1, 2], 10))).toEqual(track(0, [1, 2, 3], 10)));
  it('keeps a new gap where there was a value: the newer answer knows better', () => {
    expect(merge(track(0, [1, 2]), track(1, [null])).columns.avg).toEqual([1, null]);
  });
  it('does not mix steps or edges', () => {
    expect(merge(track(0, [1, 2]), track(0, [7], 10))).toEqual(track(0, [7], 10));
    expect(merge(track(0, [1, 2], 10), track(5, [7], 10))).toEqual(track(5, [7], 10));
  });
  it('keeps all parts, filled with gaps where one side has none', () => {
    const old: Track = { from: 0, step: 60, columns: { avg: [1, 2], min: [0, 1], max: [3, 4] } };
    const m = merge(old, track(60, [5], 60));
    expect(m.columns).toEqual({ avg: [1, 5], min: [0, 1], max: [3, 4] });
  });
  it('leaves its input alone', () => {
    const old = track(0, [1, 2]);
    merge(old, track(1, [9]));
    expect(old).toEqual(track(0, [1, 2]));
  });
});

describe('windows', () => {
  it('drops what slid out', () => {
    expect(dropBefore(track(0, [1, 2, 3, 4], 10), 20)).toEqual(track(20, [3, 4], 10));
    expect(dropBefore(track(0, [1, 2], 10), 15)).toEqual(track(10, [2], 10));
    expect(dropBefore(track(50, [1]), 10)).toEqual(track(50, [1]));
  });
  it('lays a track on a grid', () => {
    expect(onGrid(track(2, [5, 6]), 'avg', 0, 1, 6)).toEqual([null, null, 5, 6, null, null]);
    expect(onGrid(track(0, [5, 6, 7]), 'avg', 1, 1, 2)).toEqual([6, 7]);
    expect(onGrid(undefined, 'avg', 0, 1, 2)).toBeNull();
    expect(onGrid(track(0, [1]), 'max', 0, 1, 2)).toBeNull();
  });
  it('draws old buckets under a new step until the new ones are there', () => {
    expect(onGrid(track(0, [1, 2], 10), 'avg', 5, 5, 3)).toEqual([1, 2, 2]);
  });
});

describe('parts without data', () => {
  const t = (from: number, avg: Column, step = 1) => ({ from, step, columns: { avg } });
  it('are those of which no series has a number', () => {
    const n = null;
    expect(blanksOf([t(10, [1, 1, n, n, n, 1])], { from: 0, step: 1, to: 16 }, 16)).toEqual([{ from: 0, to: 10 }, { from: 12, to: 15 }]);
    expect(blanksOf([t(0, [1, n, n, n, n, 1]), t(2, [1, 1, 1, n])], { from: 0, step: 1, to: 6 }, 6)).toEqual([]);
  });
  it('are not the newest seconds, which are still on their way, nor the future', () => {
    expect(blanksOf([t(0, [1, 1, 1])], { from: 0, step: 1, to: 60 }, 10)).toEqual([]);
    expect(blanksOf([t(0, [1, 1, 1])], { from: 0, step: 1, to: 60 }, 40)).toEqual([{ from: 3, to: 40 }]);
  });
});
