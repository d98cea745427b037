/** Numbers and times as people read them; the exact value is always one hover away. */

/** What a number measures. Rates are per second. */
export type Unit = '' | '/s' | 'B' | 'B/s' | 's' | 's/s' | 'ms' | 'ms/s' | 'µs' | 'µs/s' | '%' | 'cores';

// Servers count some times in thousandths or millionths: they are shown as what they are.
const PARTS_OF_SECOND: Partial<Record<Unit, [number, 's' | 's/s']>> = {
  ms: [1e-3, 's'], 'ms/s': [1e-3, 's/s'], 'µs': [1e-6, 's'], 'µs/s': [1e-6, 's/s'],
};

const NBSP = '\u00a0';
const DECIMAL = ['', 'k', 'M', 'G', 'T', 'P'];
const BINARY = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** Three significant digits without an exponent: 0.0123, 1.23, 12.3, 123. */
export function digits(v: number, integer = false): string {
  const a = Math.abs(v);
  if (a === 0) return '0';
  if (integer && Number.isInteger(v)) return String(v);
  if (a >= 100) return v.toFixed(0);
  if (a >= 10) return trim(v.toFixed(1));
  if (a >= 1) return trim(v.toFixed(2));
  if (a >= 0.01) return trim(v.toFixed(3));
  return trim(v.toPrecision(2));
}

/** So many things: 1 table, 1,200 tables. many is for words to which an s does not do. */
export const counted = (n: number, one: string, many = `${one}s`): string => `${n.toLocaleString('en')} ${n === 1 ? one : many}`;

function trim(s: string): string {
  if (s.includes('e')) return s;
  return s.includes('.') ? s.replace(/\.?0+$/, '') : s;
}

function scaled(v: number, base: number, names: string[]): [string, string] {
  let i = 0;
  let a = Math.abs(v);
  // 999.6 prints as 1000: step up before rounding would.
  while (a >= base - base / 2000 && i < names.length - 1) {
    a /= base;
    v /= base;
    i++;
  }
  return [digits(v, i === 0), names[i]];
}

function seconds(v: number): [string, string] {
  const a = Math.abs(v);
  if (a === 0) return ['0', 's'];
  if (a < 0.9995e-6) return [digits(v * 1e9), 'ns'];
  if (a < 0.9995e-3) return [digits(v * 1e6), 'µs'];
  if (a < 0.9995) return [digits(v * 1e3), 'ms'];
  return [digits(v), 's'];
}

/** A number with its unit in at most four digits: 1.2 k/s, 38 ms, 64 %. */
export function human(v: number | null | undefined, unit: Unit = ''): string {
  if (v === null || v === undefined || !Number.isFinite(v)) return '–';
  const part = PARTS_OF_SECOND[unit];
  if (part) return human(v * part[0], part[1]);
  switch (unit) {
    case 'B':
    case 'B/s': {
      const [n, name] = scaled(v, 1024, BINARY);
      return n + NBSP + name + (unit === 'B/s' ? '/s' : '');
    }
    case 's': {
      if (Math.abs(v) >= 120) return duration(v);
      const [n, name] = seconds(v);
      return n + NBSP + name;
    }
    case 's/s': {
      const [n, name] = seconds(v);
      return `${n}${NBSP}${name}/s`;
    }
    case '%':
      return percent(v);
    case 'cores':
      return digits(v) + NBSP + 'cores';
    default: {
      const [n, name] = scaled(v, 1000, DECIMAL);
      const tail = name + unit;
      return tail ? n + NBSP + tail : n;
    }
  }
}

function percent(v: number): string {
  const p = v * 100;
  const a = Math.abs(p);
  let n: string;
  if (a === 0) n = '0';
  else if (a < 10) n = trim(p.toFixed(a < 1 ? 2 : 1));
  else if (a > 99 && a < 100) n = trim(p.toFixed(2)); // 99.95 % of hits is not 100 %
  else n = p.toFixed(0);
  return n + NBSP + '%';
}

/** The same for an axis, where room is short: 1.2k, 38ms, 64%, 128Mi. */
export function axisLabel(v: number, unit: Unit): string {
  const part = PARTS_OF_SECOND[unit];
  if (part) return axisLabel(v * part[0], part[1]);
  switch (unit) {
    case 'B':
    case 'B/s': {
      const [n, name] = scaled(v, 1024, ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi']);
      return n + name;
    }
    case 's':
    case 's/s': {
      if (v === 0) return '0';
      if (Math.abs(v) >= 120) return duration(v).replace(/ .*/, '').replaceAll(NBSP, '');
      const [n, name] = seconds(v);
      return n + name;
    }
    case '%':
      return percent(v).replace(NBSP, '');
    default: {
      const [n, name] = scaled(v, 1000, DECIMAL);
      return n + name;
    }
  }
}

/** Every digit, with thousands grouped: what a hover shows. */
export function exact(v: number | null | undefined, unit: Unit = ''): string {
  if (v === null || v === undefined || !Number.isFinite(v)) return 'no data';
  const n = v.toLocaleString('en-US', { maximumSignificantDigits: 15, maximumFractionDigits: 9 } as Intl.NumberFormatOptions);
  const names: Record<Unit, string> = {
    '': '', '/s': 'a second', B: 'bytes', 'B/s': 'bytes a second', s: 'seconds',
    's/s': 'seconds a second', ms: 'milliseconds', 'ms/s': 'milliseconds a second', 'µs': 'microseconds', 'µs/s': 'microseconds a second', '%': 'of 1', cores: 'cores',
  };
  return names[unit] ? `${n} ${names[unit]}` : n;
}

/** A length of time in its two largest parts: 12 s, 3 min 5 s, 2 h, 4 d 6 h. */
export function duration(s: number | null | undefined): string {
  if (s === null || s === undefined || !Number.isFinite(s)) return '–';
  const sign = s < 0 ? '−' : '';
  let rest = Math.round(Math.abs(s));
  const parts: string[] = [];
  for (const [name, size] of [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]] as const) {
    const n = Math.floor(rest / size);
    rest -= n * size;
    if (n > 0) parts.push(`${n}${NBSP}${name}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return sign + (parts.join(' ') || `0${NBSP}s`);
}

/** How old something is, in one part: 7 s, 3 min, 2 h, 4 d. */
export function age(s: number): string {
  return duration(s).split(' ')[0];
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
