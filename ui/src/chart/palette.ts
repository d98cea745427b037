/**
 * Colours by meaning. They are CSS variables, so that a theme changes all charts together; the
 * canvas reads them from here. Red and amber are not among them: they belong to rules.
 */

/** The tokens that a chart may name; each is a CSS variable --x-<token>. */
export type Colour =
  | 'line' | 'blue' | 'teal' | 'violet' | 'mauve' | 'olive' | 'sky' | 'brown' | 'slate' | 'green' | 'rose' | 'faint' | 'pale';

/** The order in which lines without a meaning of their own get colours. */
export const CYCLE: readonly Colour[] = ['blue', 'teal', 'violet', 'olive', 'mauve', 'sky', 'brown', 'slate', 'green', 'rose'];

let cache = new Map<string, string>();

/** The value of a CSS variable of the theme in use. */
export function css(name: string): string {
  let v = cache.get(name);
  if (v === undefined) {
    v = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    cache.set(name, v);
  }
  return v;
}

/** The colour of a token in the theme in use. */
export function colour(token: Colour): string {
  return css(`--x-${token}`);
}

/** Forgets the colours: the theme changed. */
export function forgetColours(): void {
  cache = new Map();
}
