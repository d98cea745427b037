/**
 * What a line shows: a series, or a sum or ratio of several. Counters come as rates, so that
 * "read time / reads" is the mean time of a read.
 */
import type { Column } from './track';

/** An expression over the keys of an instance's series. */
export type Expr = string | { sum: Expr[] } | { ratio: [Expr, Expr] } | { less: [Expr, Expr] } | { times: [Expr, number] };

/** The keys an expression reads, each once. */
export function keysOf(e: Expr): string[] {
  const out = new Set<string>();
  const walk = (x: Expr): void => {
    if (typeof x === 'string') out.add(x);
    else if ('sum' in x) x.sum.forEach(walk);
    else if ('ratio' in x) x.ratio.forEach(walk);
    else if ('less' in x) x.less.forEach(walk);
    else walk(x.times[0]);
  };
  walk(e);
  return [...out];
}

/**
 * The expression with only the series that exist: a sum works without some of its terms, everything
 * else needs all of its parts. Null when nothing is left.
 */
export function resolve(e: Expr, has: (key: string) => boolean): Expr | null {
  if (typeof e === 'string') return has(e) ? e : null;
  if ('sum' in e) {
    const terms = e.sum.map((x) => resolve(x, has)).filter((x): x is Expr => x !== null);
    return terms.length > 0 ? { sum: terms } : null;
  }
  if ('times' in e) {
    const x = resolve(e.times[0], has);
    return x === null ? null : { times: [x, e.times[1]] };
  }
  const pair = 'ratio' in e ? e.ratio : e.less;
  const a = resolve(pair[0], has);
  const b = resolve(pair[1], has);
  if (a === null || b === null) return null;
  return 'ratio' in e ? { ratio: [a, b] } : { less: [a, b] };
}

/** The expression's values; a gap in any part is a gap, and so is a division by nothing. */
export function evaluate(e: Expr, column: (key: string) => Column | null, n: number): Column {
  if (typeof e === 'string') return column(e) ?? empty(n);
  if ('sum' in e) {
    const parts = e.sum.map((x) => evaluate(x, column, n));
    return fill(n, (i) => {
      let s = 0;
      for (const p of parts) {
        const v = p[i];
        if (v === null || v === undefined) return null;
        s += v;
      }
      return s;
    });
  }
  if ('times' in e) {
    const a = evaluate(e.times[0], column, n);
    return fill(n, (i) => (a[i] === null ? null : (a[i] as number) * e.times[1]));
  }
  const pair = 'ratio' in e ? e.ratio : e.less;
  const a = evaluate(pair[0], column, n);
  const b = evaluate(pair[1], column, n);
  if ('ratio' in e) return fill(n, (i) => (a[i] === null || b[i] === null || b[i] === 0 ? null : a[i]! / b[i]!));
  return fill(n, (i) => (a[i] === null || b[i] === null ? null : a[i]! - b[i]!));
}

/** Values that each cover several buckets, put into those before them too: a quantile of ten seconds holds for all ten. */
export function stretch(c: Column, buckets: number): Column {
  if (buckets < 2) return c;
  return fill(c.length, (i) => {
    for (let j = i; j < Math.min(i + buckets, c.length); j++) if (c[j] !== null && c[j] !== undefined) return c[j];
    return null;
  });
}

/** The expression as people write it, with the exact keys: what a hover shows. */
export function text(e: Expr): string {
  if (typeof e === 'string') return e;
  if ('sum' in e) return family(e.sum) ?? e.sum.map(text).join(' + ');
  if ('times' in e) return `${text(e.times[0])} × ${e.times[1]}`;
  if ('less' in e) return `${text(e.less[0])} − ${text(e.less[1])}`;
  const part = (x: Expr): string => {
    const t = text(x);
    return t.includes(' ') ? `(${t})` : t;
  };
  return `${part(e.ratio[0])} / ${part(e.ratio[1])}`;
}

// A sum over one label reads better as PromQL has it: name{mode=~"irq|softirq"}.
function family(terms: Expr[]): string | null {
  if (terms.length < 2) return null;
  const values: string[] = [];
  let head = '';
  for (const t of terms) {
    const m = typeof t === 'string' ? /^([^{]+\{[^=,]+)="([^",]*)"\}$/.exec(t) : null;
    if (!m || (head !== '' && m[1] !== head)) return null;
    head = m[1];
    values.push(m[2]);
  }
  return `${head}=~"${values.join('|')}"}`;
}

function empty(n: number): Column {
  return new Array<number | null>(n).fill(null);
}

function fill(n: number, f: (i: number) => number | null): Column {
  const out = empty(n);
  for (let i = 0; i < n; i++) out[i] = f(i);
  return out;
}
