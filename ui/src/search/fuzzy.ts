/** Fuzzy search over a few thousand names, the better match first. */

/** Lower case, with everything that is neither letter nor digit as one blank. */
export function normalise(s: string): string {
  return s.toLowerCase().replace(/[^a-z0-9]+/g, ' ').trim();
}

/**
 * How well a query fits a normalised text: 0 for not at all, more for better. All words of the
 * query must be found; a word counts more at the start of the text or of one of its words; letters
 * in order but apart count least.
 */
export function score(query: string, text: string): number {
  const words = normalise(query).split(' ').filter((w) => w !== '');
  if (words.length === 0) return 1;
  if (text === words.join(' ')) return 1000;
  let sum = 0;
  for (const w of words) {
    const s = one(w, text);
    if (s === 0) return 0;
    sum += s;
  }
  if (text.includes(words.join(' '))) sum += 60;
  // Among equals the shorter name is the one meant.
  return sum / words.length + 20 / (1 + text.length / 10);
}

function one(w: string, text: string): number {
  const at = text.indexOf(w);
  if (at === 0) return 120;
  if (at > 0) {
    const start = text.includes(` ${w}`);
    const whole = ` ${text} `.includes(` ${w} `);
    return whole ? 110 : start ? 95 : 60;
  }
  return w.length >= 3 && inOrder(w, text) ? 15 : 0;
}

function inOrder(w: string, text: string): boolean {
  let from = 0;
  let first = -1;
  for (const c of w) {
    const at = text.indexOf(c, from);
    if (at < 0) return false;
    if (first < 0) first = at;
    from = at + 1;
  }
  // Letters strewn over a long name are no match that anybody means.
  return from - first <= w.length * 3;
}

/** The best matches, best first; equal ones keep their order. */
export function best<T>(query: string, items: readonly T[], text: (t: T) => string, limit: number): T[] {
  const scored: { item: T; s: number; i: number }[] = [];
  items.forEach((item, i) => {
    const s = score(query, text(item));
    if (s > 0) scored.push({ item, s, i });
  });
  scored.sort((a, b) => b.s - a.s || a.i - b.i);
  return scored.slice(0, limit).map((x) => x.item);
}
