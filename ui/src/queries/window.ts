/** Spans of whole minutes, as statements are counted, and what they are compared with. */
import type { Span } from '../api';
import { human } from '../common/format';
import type { Range } from '../common/range';
import type { Versus } from '../common/view';

const MINUTE = 60;
const DAY = 86400;

/** Seconds after a minute's end until its statements are surely there. */
export const LAG = 8;

/** The end of the newest minute that is complete. */
export function lastMinute(now: number): number {
  return Math.floor((now - LAG) / MINUTE) * MINUTE;
}

/** The whole minutes that a range touches; a live one ends with the last complete minute. */
export function minutes(range: Range, now: number): Span {
  const end = lastMinute(now);
  if (range.live) return { from: end - Math.max(1, Math.round(range.span / MINUTE)) * MINUTE, to: end };
  const from = Math.floor(range.from / MINUTE) * MINUTE;
  const to = Math.min(Math.ceil(range.to / MINUTE) * MINUTE, end);
  return { from, to: Math.max(to, from + MINUTE) };
}

/** The part of a span of which anything can be known; first is the earliest minute kept, 0 when there is none. */
export function known(span: Span, first: number): Span {
  return first > span.from && first < span.to ? { from: first, to: span.to } : span;
}

/** How long a span is, in seconds. */
export function lengthOf(span: Span): number {
  return Math.max(1, span.to - span.from);
}

function shift(span: Span, vs: Versus): number {
  return vs === 'day' ? DAY : vs === 'week' ? 7 * DAY : span.to - span.from;
}

/** The span that another is compared with; null where nothing is known of it, or too little to be fair. */
export function earlier(span: Span, vs: Versus, first: number): Span | null {
  const by = shift(span, vs);
  const then = { from: span.from - by, to: span.to - by };
  if (first === 0 || first >= then.to) return null;
  const part = known(then, first);
  return lengthOf(part) * 4 >= lengthOf(then) ? part : null;
}

/** What the page compares with by default: the same hours yesterday tell most, the time before is next. */
export function bestVersus(span: Span, first: number): Versus {
  return (['day', 'before'] as const).find((vs) => earlier(span, vs, first) !== null) ?? '';
}

/** The earlier span in words that follow "than" or "against". */
export function versusWords(vs: Versus, span: Span): string {
  if (vs === 'day') return 'yesterday at this time';
  if (vs === 'week') return 'a week ago at this time';
  const n = lengthOf(span);
  return `the ${n === 3600 ? 'hour' : n === DAY ? 'day' : human(n, 's')} before`;
}
