/** What the numbers of statements say, in words. */
import type { Cost, Flip, QueryChange, Span } from '../api';
import { clock, human } from '../common/format';
import type { Versus } from '../common/view';
import { nameOf } from './sql';
import { lengthOf, versusWords } from './window';

/** Seconds of execution per second. */
export function loadOf(c: Cost, seconds: number): number {
  return c.seconds / seconds;
}

const MOST = 0.8;

/** How few classes make most of the load: at least four fifths, or what those listed make together. */
export function heaviest(shares: (number | null)[]): { n: number; share: number } {
  let share = 0;
  let n = 0;
  for (const s of shares) {
    if (share >= MOST || s === null) break;
    share += s;
    n++;
  }
  return { n, share };
}

/** "4", "1.3", "27": how many times, as people say it. */
export function times(factor: number): string {
  return factor >= 9.95 ? human(Math.round(factor)) : human(Math.round(factor * 10) / 10);
}

const percent = (v: number): string => human(v, '%');
const per = (calls: number, seconds: number): string => human(calls / seconds, '/s');
const avgOf = (c: Cost): number | null => (c.calls > 0 ? c.seconds / c.calls : null);

/** "3 of 214 classes make 81 % of the load: 0.6 s/s, 320 calls/s." */
export function loadSentence(shares: (number | null)[], count: number, total: Cost, seconds: number): string {
  if (total.calls === 0) return 'Nothing ran in this range.';
  const { n, share } = heaviest(shares);
  const sum = `${human(loadOf(total, seconds), 's/s')} of execution, ${human(total.calls / seconds)} calls/s`;
  if (count === 1) return `One class of statements makes all of the load: ${sum}.`;
  if (n === 0 || total.seconds === 0) return `${count} classes of statements ran: ${sum}.`;
  return `${n === 1 ? 'One' : n} of ${count} classes ${n === 1 ? 'makes' : 'make'} ${percent(share)} of the load: ${sum}.`;
}

// What a factor this small says drowns in noise.
const NOTABLE = 1.1;

/** What became of a class, without its name: "4 × slower: 2.1 → 8.6 ms a call". */
export function changeWords(c: QueryChange, before: Span, after: Span): string {
  const [sa, sb] = [lengthOf(before), lengthOf(after)];
  const a = avgOf(c.a);
  const b = avgOf(c.b);
  switch (c.kind) {
    case 'new':
      return `${c.first_seen > 0 && c.first_seen < before.from ? 'back' : 'new'}: ${per(c.b.calls, sb)} at ${human(b, 's')} a call`;
    case 'gone':
      return `gone: was ${per(c.a.calls, sa)} at ${human(a, 's')} a call`;
    case 'same':
      return 'about the same';
    default:
  }
  const speed = c.avg_factor ?? 1;
  const rate = c.rate_factor ?? 1;
  const calls = `${per(c.a.calls, sa)} → ${per(c.b.calls, sb)}`;
  const took = `${human(a, 's')} → ${human(b, 's')} a call`;
  const said: string[] = [];
  const slow = (): void => {
    if (speed >= NOTABLE) said.push(`${times(speed)} × slower: ${took}`);
    else if (speed > 0 && speed <= 1 / NOTABLE) said.push(`${times(1 / speed)} × faster: ${took}`);
  };
  const often = (): void => {
    if (rate >= NOTABLE) said.push(`${times(rate)} × more often: ${calls}`);
    else if (rate > 0 && rate <= 1 / NOTABLE) said.push(`${times(1 / rate)} × less often: ${calls}`);
  };
  if (c.kind === 'oftener' || c.kind === 'rarer') {
    often();
    slow();
  } else {
    slow();
    often();
  }
  return said.join(', ') || 'about the same';
}

/** "plan flipped at 10:32:07"; with how often, or on how many servers, if it was more than once. */
export function flipWords(flips: Flip[] | null): string {
  if (!flips || flips.length === 0) return '';
  const last = flips.reduce((t, f) => Math.max(t, f.time), 0);
  const servers = new Set(flips.map((f) => f.instance)).size;
  if (flips.length === 1) return `plan flipped at ${clock(last)}`;
  if (flips.length === servers) return `plan flipped on ${servers} servers, last at ${clock(last)}`;
  return `plan flipped ${flips.length} times, last at ${clock(last)}`;
}

// A change below this part of the load before or after is no news.
const NEWS = 0.03;

/** The change that matters most: what adds load goes before what removes it; null when nothing is news. */
export function news(changes: QueryChange[], a: Cost, b: Cost, before: Span, after: Span): QueryChange | null {
  const all = Math.max(loadOf(a, lengthOf(before)), loadOf(b, lengthOf(after)));
  const big = changes.filter((c) => c.kind !== 'same' && Math.abs(c.delta) >= NEWS * all);
  return big.find((c) => c.delta > 0) ?? big[0] ?? null;
}

/** The second half of the sentence on top, after the class's name: "is 4 × slower than yesterday at this time". */
export function newsWords(c: QueryChange, vs: Versus, before: Span): string {
  const than = versusWords(vs, before);
  const flipped = flipWords(c.flips);
  const tail = flipped ? `; its ${flipped}` : '';
  switch (c.kind) {
    case 'new':
      return `${c.first_seen > 0 && c.first_seen < before.from ? 'runs again' : 'is new'}: it did not run ${vs === 'before' ? 'in ' : ''}${than}${tail}.`;
    case 'gone':
      return `ran ${vs === 'before' ? 'in ' : ''}${than} and no longer runs.`;
    case 'oftener':
      return `runs ${times(c.rate_factor ?? 1)} × as often as ${vs === 'before' ? 'in ' : ''}${than}${tail}.`;
    case 'rarer':
      return `runs ${times(1 / (c.rate_factor || 1))} × less often than ${vs === 'before' ? 'in ' : ''}${than}${tail}.`;
    case 'faster':
      return `is ${times(1 / (c.avg_factor || 1))} × faster than ${vs === 'before' ? 'in ' : ''}${than}${tail}.`;
    default:
      return `is ${times(c.avg_factor ?? 1)} × slower than ${vs === 'before' ? 'in ' : ''}${than}${tail}.`;
  }
}

/** How all of the load changed: "The load grew from 0.3 to 0.6 s/s against yesterday at this time." */
export function totalWords(a: Cost, b: Cost, vs: Versus, before: Span, after: Span): string {
  const [x, y] = [loadOf(a, lengthOf(before)), loadOf(b, lengthOf(after))];
  const than = versusWords(vs, before);
  if (a.calls === 0) return `Nothing is known about ${than}.`;
  if (y <= x * NOTABLE && x <= y * NOTABLE) return `The load is about that of ${than}: ${human(y, 's/s')}.`;
  return `The load ${y > x ? 'grew' : 'fell'} from ${human(x, 's/s')} to ${human(y, 's/s')} against ${than}.`;
}

/** What a class is now against before, from its two totals: "4 × slower and 2 × more often"; empty when about the same. */
export function againstWords(a: Cost, b: Cost, before: Span, after: Span): string {
  if (a.calls === 0 || b.calls === 0) return '';
  const speed = a.seconds > 0 ? b.seconds / b.calls / (a.seconds / a.calls) : 1;
  const rate = b.calls / lengthOf(after) / (a.calls / lengthOf(before));
  const said: string[] = [];
  if (speed >= NOTABLE) said.push(`${times(speed)} × slower`);
  else if (speed <= 1 / NOTABLE) said.push(`${times(1 / speed)} × faster`);
  if (rate >= NOTABLE) said.push(`${times(rate)} × more often`);
  else if (rate <= 1 / NOTABLE) said.push(`${times(1 / rate)} × less often`);
  return said.join(' and ');
}

/** A class's name in a sentence. */
export function nameOfChange(c: QueryChange): string {
  return nameOf(c.fingerprint, c.verb, tablesIn(c.fingerprint));
}

// The comparison names no tables: the first after FROM, INTO, UPDATE or JOIN is a name good enough for a sentence.
function tablesIn(fingerprint: string): string {
  return /\b(?:from|into|update|join|table)\s+([`\w$.]+)/i.exec(fingerprint)?.[1].replaceAll('`', '') ?? '';
}
