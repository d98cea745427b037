/**
 * Numbers and times as people read them; the exact value is always one hover away. The rules are those of the Go side's digits:
 * one table of cases, internal/digits/testdata/cases.json, holds both.
 */

/** What a number measures. Rates are per second. */
export type Unit = '' | '/s' | 'B' | 'B/s' | 's' | 's/s' | 'ms' | 'ms/s' | 'µs' | 'µs/s' | '%' | 'cores';

// Servers count some times in thousandths or millionths: they are shown as what they are.
const PARTS_OF_SECOND: Partial<Record<Unit, [number, 's' | 's/s']>> = {
  ms: [1e-3, 's'], 'ms/s': [1e-3, 's/s'], 'µs': [1e-6, 's'], 'µs/s': [1e-6, 's/s'],
};

const NBSP = '\u00a0';
const UNKNOWN = '–';

type Num = number | null | undefined;

const known = (v: Num): v is number => v !== null && v !== undefined && Number.isFinite(v);
const sign = (v: number): string => (v < 0 ? '-' : '');

// Halves away from zero, as Go's side does it: toFixed alone rounds binary fractions in its own way.
function fixed(v: number, decimals: number): string {
  const p = 10 ** decimals;
  const r = Math.round(Math.abs(v) * p) / p;
  return (r > 0 ? sign(v) : '') + r.toFixed(decimals);
}

function trim(s: string): string {
  return s.includes('.') ? s.replace(/\.?0+$/, '') : s;
}

const power = (v: number): string => v.toExponential(2).replace(/\.?0*e\+?/, 'e');

function decimals(a: number): number {
  let d = 0;
  for (let p = 1; d < 8 && a * p < 99.95; p *= 10) d++;
  return d;
}

/** Three significant digits: 38, 1.5, 0.0421; only below a millionth a power of ten. */
export function three(v: Num): string {
  if (!known(v)) return UNKNOWN;
  const a = Math.abs(v);
  if (a > 0 && a < 1e-6) return power(v);
  return trim(fixed(v, decimals(a)));
}

function scaled(v: Num, limit: number, base: number, units: string[]): string {
  if (!known(v)) return UNKNOWN;
  let i = 0;
  // 999.6 prints as 1000: step up before rounding would.
  for (; Math.abs(v) >= limit && i < units.length - 1; i++) v /= base;
  return three(v) + (units[i] && NBSP) + units[i];
}

/** A measured figure with a factor: 850, 1.24 k, 45.6 M. */
export const number = (v: Num): string => (known(v) && Math.abs(v) >= 999.5e15 ? power(v) : scaled(v, 999.5, 1000, ['', 'k', 'M', 'G', 'T', 'P']));

/** A number per second: 12.3/s, 1.24 k/s. */
export const rate = (v: Num): string => `${number(v)}/s`;

/** A size in powers of 1,024: 512 B, 1.5 MiB. */
export const bytes = (v: Num): string => scaled(v, 1023.5, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']);

/** A whole number with commas, every digit of it. */
export const thousands = (n: number): string => n.toLocaleString('en');

/** So many things: 1 table, 1,200 tables. many is for words to which an s does not do. */
export const counted = (n: number, one: string, many = `${one}s`): string => `${thousands(n)} ${n === 1 ? one : many}`;

/** A number of things that may be an average, or a rate that is compared with others: 12.3, 1,234,567. */
export function count(v: Num): string {
  const a = Math.abs(v ?? NaN);
  return known(v) && a >= 999.5 && a < 1e15 ? sign(v) + thousands(Math.round(a)) : number(v);
}

/** How long something takes: 38.2 µs, 4.2 ms, 93.1 s; from two minutes on in its two largest parts: 3 min 5 s, 4 d 6 h. */
export function seconds(v: Num): string {
  if (!known(v)) return UNKNOWN;
  const a = Math.abs(v);
  if (a === 0) return `0${NBSP}s`;
  if (a < 0.9995e-6) return `${three(v * 1e9)}${NBSP}ns`;
  if (a < 0.9995e-3) return `${three(v * 1e6)}${NBSP}µs`;
  if (a < 0.9995) return `${three(v * 1e3)}${NBSP}ms`;
  if (a < 119.5) return `${three(v)}${NBSP}s`;
  let rest = Math.round(a);
  const units = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]] as const;
  const first = units.findIndex(([, size]) => rest >= size);
  const parts: string[] = [];
  for (const [name, size] of units.slice(first, first + 2)) {
    const n = Math.floor(rest / size);
    rest -= n * size;
    if (n > 0) parts.push(`${n}${NBSP}${name}`);
  }
  return sign(v) + parts.join(' ');
}

/** How old something is, or about how long it will still take, in one part: 40 s, 89 min, 30 h, 5 d. */
export function age(s: Num): string {
  if (!known(s)) return UNKNOWN;
  const a = Math.abs(s);
  if (a < 119.5) return `${fixed(s, 0)}${NBSP}s`;
  if (a < 119.5 * 60) return `${fixed(s / 60, 0)}${NBSP}min`;
  if (a < 47.5 * 3600) return `${fixed(s / 3600, 0)}${NBSP}h`;
  return `${fixed(s / 86400, 0)}${NBSP}d`;
}

// A sum of floating point numbers misses 0 and 1 by less than this.
const EXACT = 1e-12;

/** A share of 1: 12 %, 3.2 %, 0.05 %, 99.95 %. Only nothing is 0 %, and only all is 100 %. */
export function percent(share: Num): string {
  if (!known(share)) return UNKNOWN;
  const p = Math.abs(share) * 100;
  if (p < 100 * EXACT) return `0${NBSP}%`;
  if (p < 0.01) return share < 0 ? `>${NBSP}-0.01${NBSP}%` : `<${NBSP}0.01${NBSP}%`;
  let n = thousands(Math.round(p));
  if (p < 0.995) n = trim(fixed(p, 2));
  else if (p < 9.95) n = trim(fixed(p, 1));
  else if (p > 99 && p < 100 * (1 - EXACT)) n = trim(fixed(Math.min(p, 99.99), 2));
  return `${sign(share)}${n}${NBSP}%`;
}

/** A factor, with its zeros: 1.58, 0.50, 12.3; near 1 with a digit more. */
export function ratio(v: Num): string {
  if (!known(v)) return UNKNOWN;
  const a = Math.abs(v);
  if (a > 0 && a < 0.0995) return three(v);
  return fixed(v, Math.abs(v - 1) < 0.05 ? 3 : Math.min(decimals(a), 2));
}

/** A number by the rule of its unit. */
export function human(v: Num, unit: Unit = ''): string {
  const part = PARTS_OF_SECOND[unit];
  if (part) return human(known(v) ? v * part[0] : v, part[1]);
  if (!known(v)) return UNKNOWN;
  switch (unit) {
    case '': return number(v);
    case '/s': return rate(v);
    case 'B': return bytes(v);
    case 'B/s': return `${bytes(v)}/s`;
    case 's': return seconds(v);
    case 's/s': return Math.abs(v) < 119.5 ? `${seconds(v)}/s` : `${number(v)}${NBSP}s/s`; // no minutes a second
    case '%': return percent(v);
    default: return `${three(v)}${NBSP}${unit}`;
  }
}

/** The same for an axis, where room is short: 1.2k, 38ms, 64%, 128Mi. */
export function axisLabel(v: number, unit: Unit): string {
  const text = human(v, unit).replace(/\/s$/, '').replace(/[\s\u00a0]/g, '');
  if (unit === 'B' || unit === 'B/s') return text.replace('B', '');
  if (unit === 'cores') return text.replace(unit, '');
  return v === 0 && unit !== '%' ? '0' : text;
}

/** Every digit, with thousands grouped: what a hover shows. */
export function exact(v: Num, unit: Unit = ''): string {
  if (!known(v)) return 'no data';
  const n = v.toLocaleString('en-US', { maximumSignificantDigits: 15, maximumFractionDigits: 9 } as Intl.NumberFormatOptions);
  const names: Record<Unit, string> = {
    '': '', '/s': 'a second', B: 'bytes', 'B/s': 'bytes a second', s: 'seconds',
    's/s': 'seconds a second', ms: 'milliseconds', 'ms/s': 'milliseconds a second', 'µs': 'microseconds', 'µs/s': 'microseconds a second', '%': 'of 1', cores: 'cores',
  };
  return names[unit] ? `${n} ${names[unit]}` : n;
}

const two = (n: number) => String(n).padStart(2, '0');

/** 10:32:07 in the viewer's zone. */
export function clock(t: number): string {
  const d = new Date(t * 1000);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** 2026-11-21 in the viewer's zone. */
export function day(t: number): string {
  const d = new Date(t * 1000);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
}

/** 2026-11-21 10:32:07 in the viewer's zone. */
export function stamp(t: number): string {
  return `${day(t)} ${clock(t)}`;
}

/** The shortest text that still says when: the clock alone for today. */
export function when(t: number, now: number): string {
  return day(t) === day(now) ? clock(t) : stamp(t);
}

/** 2026-11-21 10:32:07 UTC: the zone that two people share. */
export function utc(t: number): string {
  return new Date(t * 1000).toISOString().slice(0, 19).replace('T', ' ') + ' UTC';
}

/** Unix seconds of an RFC 3339 time or a number; NaN for what is neither. */
export function unix(t: string | number): number {
  return typeof t === 'number' ? t : Date.parse(t) / 1000;
}

const SECOND_UNITS = new Set(['s', 'sec', 'second', 'seconds']);
const BYTE_UNITS = new Set(['b', 'byte', 'bytes']);
const RATIO_UNITS = new Set(['ratio', '%', 'percent', 'fraction']);

/** The unit a series is drawn in: that of its rate for a counter. */
export function unitOf(unit: string, type: 'counter' | 'gauge'): Unit {
  const u = unit.toLowerCase();
  const rate = type === 'counter';
  if (BYTE_UNITS.has(u)) return rate ? 'B/s' : 'B';
  if (SECOND_UNITS.has(u)) return rate ? 's/s' : 's';
  if (u === 'milliseconds') return rate ? 'ms/s' : 'ms';
  if (u === 'microseconds') return rate ? 'µs/s' : 'µs';
  if (RATIO_UNITS.has(u)) return '%';
  return rate ? '/s' : '';
}

/** The unit of the value itself, not of its rate. */
export function plainUnit(unit: string): Unit {
  return unitOf(unit, 'gauge');
}

/** A version without the packager's tail: 10.11.19 of 10.11.19-MariaDB-0+deb12u1, Debian 12 of its full name. */
export function shortVersion(version: string): string {
  const number = /^\d+(\.\d+)+/.exec(version);
  return number ? number[0] : version.replace(/ GNU\/Linux/, '').replace(/\s*\(.*\)$/, '');
}
