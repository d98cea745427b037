import { describe, expect, it } from 'vitest';
import { ends, fixed, liveLike, pan, parseSpan, parseTime, sameRange, spanText, zoom } from './range';

const NOW = new Date(2026, 10, 21, 10, 30, 0).getTime() / 1000;

describe('parseSpan', () => {
  it.each([['15m', 900], ['1h', 3600], ['1d12h', 129600], ['90s', 90], ['2w', 1209600], ['5 min', 300], ['1.5h', 5400]])('%s is %d s', (text, s) => {
    expect(parseSpan(text)).toBe(s);
  });
  it.each(['', 'abc', '15', 'm', '-5m', '0s'])('refuses %j', (text) => expect(parseSpan(text)).toBeNull());
  it('is undone by spanText', () => {
    for (const s of [300, 900, 3600, 21600, 86400, 604800, 2592000, 90]) expect(parseSpan(spanText(s))).toBe(s);
  });
});

describe('parseTime', () => {
  it('reads what people paste', () => {
    expect(parseTime('1700000000', NOW)).toBe(1700000000);
    expect(parseTime('2026-11-21T09:00:00Z', NOW)).toBe(Date.UTC(2026, 10, 21, 9) / 1000);
    expect(parseTime('2026-11-21 09:00:00.123 +01:00', NOW)).toBe(Date.UTC(2026, 10, 21, 8) / 1000);
    expect(parseTime('2026-11-21 09:00:00 UTC', NOW)).toBe(Date.UTC(2026, 10, 21, 9) / 1000);
    expect(parseTime('2026-11-21', NOW)).toBe(new Date(2026, 10, 21).getTime() / 1000);
    expect(parseTime('2026-11-21 10:15', NOW)).toBe(NOW - 900);
  });
  it('takes a clock time later than now for yesterday', () => {
    expect(parseTime('10:00', NOW)).toBe(NOW - 1800);
    expect(parseTime('11:00:05', NOW)).toBe(NOW + 1805 - 86400);
  });
  it('counts back from now', () => {
    expect(parseTime('now', NOW)).toBe(NOW);
    expect(parseTime('-15m', NOW)).toBe(NOW - 900);
    expect(parseTime('now-2h', NOW)).toBe(NOW - 7200);
  });
  it.each(['', 'yesterday', '25:00', '2026-13-01', '2026-11-21 10', '-x', '12'])('refuses %j', (t) => expect(parseTime(t, NOW)).toBeNull());
});

describe('ranges', () => {
  it('puts ends in order and keeps a least length', () => {
    expect(fixed(200, 100)).toEqual({ live: false, from: 100, to: 200 });
    const short = fixed(100, 102);
    expect(short.live === false && short.to - short.from).toBe(10);
  });
  it('ends live ranges now', () => expect(ends({ live: true, span: 60 }, 1000.9)).toEqual({ from: 940, to: 1000 }));
  it('pans, but not beyond now', () => {
    expect(pan({ live: true, span: 100 }, -0.5, 1000)).toEqual({ live: false, from: 850, to: 950 });
    expect(pan({ live: false, from: 850, to: 950 }, 0.25, 1000)).toEqual({ live: false, from: 875, to: 975 });
    expect(pan({ live: false, from: 850, to: 950 }, 2, 1000)).toEqual({ live: false, from: 900, to: 1000 });
  });
  it('zooms around the cursor, and live stays live', () => {
    expect(zoom({ live: true, span: 900 }, 0.5, 1000)).toEqual({ live: true, span: 450 });
    expect(zoom({ live: false, from: 0, to: 400 }, 0.5, 1000, 100)).toEqual({ live: false, from: 50, to: 250 });
    expect(zoom({ live: false, from: 0, to: 400 }, 4, 500, 200)).toEqual({ live: false, from: -600, to: 500 });
  });
  it('goes back to the live window nearest in length', () => {
    expect(liveLike(fixed(0, 1000))).toEqual({ live: true, span: 900 });
    expect(liveLike(fixed(0, 80000))).toEqual({ live: true, span: 86400 });
  });
  it('compares', () => {
    expect(sameRange({ live: true, span: 5 }, { live: true, span: 5 })).toBe(true);
    expect(sameRange({ live: true, span: 5 }, fixed(0, 50))).toBe(false);
  });
});
