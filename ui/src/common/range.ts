/** Ranges of time: live windows and fixed ones, as typed by people and kept in links. */

/** A window that follows now, or a fixed one. Unix seconds. */
export type Range = { live: true; span: number } | { live: false; from: number; to: number };

/** The live windows on offer. */
export const PRESETS: readonly [string, number][] = [
  ['5m', 300], ['15m', 900], ['1h', 3600], ['6h', 21600], ['24h', 86400], ['7d', 604800], ['30d', 2592000],
];

/** What is shown when a link says nothing. */
export const DEFAULT_RANGE: Range = { live: true, span: 300 };

const MIN_SPAN = 10;
const MAX_SPAN = 5 * 366 * 86400;
const UNITS: Record<string, number> = { s: 1, m: 60, min: 60, h: 3600, d: 86400, w: 604800 };

/** Seconds of "15m", "2h", "1d12h"; null for anything else. */
export function parseSpan(text: string): number | null {
  const t = text.trim().toLowerCase();
  if (!/^(\d+(?:\.\d+)?\s*(?:min|[smhdw])\s*)+$/.test(t)) return null;
  let sum = 0;
  for (const m of t.matchAll(/(\d+(?:\.\d+)?)\s*(min|[smhdw])/g)) sum += Number(m[1]) * UNITS[m[2]];
  return sum > 0 ? sum : null;
}

/** "15m" for 900: the largest unit that divides it. */
export function spanText(span: number): string {
  if (span === 86400) return '24h'; // the word people use
  for (const [name, size] of [['d', 86400], ['h', 3600], ['m', 60]] as const) {
    if (span % size === 0) return `${span / size}${name}`;
  }
  return `${Math.round(span)}s`;
}

/**
 * A moment as people paste it from logs and tickets: unix seconds, RFC 3339, "2026-11-21 10:30[:05]"
 * and "10:30[:05]" in the viewer's zone, "now", "-15m" or "now-15m". Null for anything else.
 */
export function parseTime(text: string, now: number): number | null {
  const t = text.trim();
  if (/^now$/i.test(t)) return Math.floor(now);
  if (/^\d{9,11}(\.\d+)?$/.test(t)) return Math.floor(Number(t));
  const back = /^(?:now)?\s*[-−]\s*(.+)$/i.exec(t);
  if (back) {
    const span = parseSpan(back[1]);
    return span === null ? null : Math.floor(now - span);
  }
  const only = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/.exec(t);
  if (only) return clockToday(Number(only[1]), Number(only[2]), Number(only[3] ?? 0), now);
  const full = /^(\d{4})-(\d{2})-(\d{2})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?)?\s*(Z|UTC|[+-]\d{2}:?\d{2})?$/i.exec(t);
  if (!full) return null;
  const [, y, mo, d, h = '0', mi = '0', s = '0', zone] = full;
  if (+mo < 1 || +mo > 12 || +d < 1 || +d > 31 || +h > 23 || +mi > 59 || +s > 60) return null;
  if (!zone) return Math.floor(new Date(+y, +mo - 1, +d, +h, +mi, +s).getTime() / 1000);
  const base = Date.UTC(+y, +mo - 1, +d, +h, +mi, +s) / 1000;
  const off = /^([+-])(\d{2}):?(\d{2})$/.exec(zone);
  return off ? base - (off[1] === '+' ? 1 : -1) * (+off[2] * 3600 + +off[3] * 60) : base;
}

// A clock time later than now means yesterday's: there is nothing to see in the future.
function clockToday(h: number, m: number, s: number, now: number): number | null {
  if (h > 23 || m > 59 || s > 60) return null;
  const d = new Date(now * 1000);
  const t = new Date(d.getFullYear(), d.getMonth(), d.getDate(), h, m, s).getTime() / 1000;
  return t > now + 60 ? t - 86400 : t;
}

/** A fixed range with its ends in order and of a sane length. */
export function fixed(a: number, b: number): Range {
  let from = Math.floor(Math.min(a, b));
  let to = Math.ceil(Math.max(a, b));
  if (to - from < MIN_SPAN) {
    const middle = (from + to) / 2;
    from = Math.floor(middle - MIN_SPAN / 2);
    to = from + MIN_SPAN;
  }
  if (to - from > MAX_SPAN) from = to - MAX_SPAN;
  return { live: false, from, to };
}

/** The two ends of a range; a live one ends now. */
export function ends(r: Range, now: number): { from: number; to: number } {
  if (!r.live) return { from: r.from, to: r.to };
  const to = Math.floor(now);
  return { from: to - r.span, to };
}

/** The range moved by a part of its length; touching now makes no live range of it. */
export function pan(r: Range, part: number, now: number): Range {
  const { from, to } = ends(r, now);
  const by = Math.round((to - from) * part);
  if (to + by > now) {
    const end = Math.floor(now);
    return fixed(end - (to - from), end);
  }
  return fixed(from + by, to + by);
}

/** The range made longer (factor > 1) or shorter, around a moment or its middle; live stays live. */
export function zoom(r: Range, factor: number, now: number, around?: number): Range {
  if (r.live && around === undefined) {
    return { live: true, span: Math.round(Math.min(MAX_SPAN, Math.max(60, r.span * factor))) };
  }
  const { from, to } = ends(r, now);
  const at = around ?? (from + to) / 2;
  const next = { from: at - (at - from) * factor, to: at + (to - at) * factor };
  return fixed(next.from, Math.min(next.to, now));
}

/** The live window nearest in length to a range: where "back to live" goes. */
export function liveLike(r: Range): Range {
  if (r.live) return r;
  const span = r.to - r.from;
  let best = PRESETS[0][1];
  for (const [, p] of PRESETS) if (Math.abs(Math.log(p / span)) < Math.abs(Math.log(best / span))) best = p;
  return { live: true, span: best };
}

/** Whether two ranges show the same. */
export function sameRange(a: Range, b: Range): boolean {
  if (a.live) return b.live && a.span === b.span;
  return !b.live && a.from === b.from && a.to === b.to;
}
