/** Small texts of the page of sizes. */

/** A number that the server may not know. */
export function known(v: number | null, text: (v: number) => string): string {
  return v === null ? '–' : text(v);
}

/** The width of a bar, in CSS. */
export function share(of: number, most: number): string {
  return most > 0 ? `${Math.round((of / most) * 1000) / 10}%` : '0';
}
