/** Buckets of time: steps that people can read, and edges that do not wander while a live chart slides. */

const STEPS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800,
];

/** From this span on a bucket is an hour at least: Risso keeps the extremes of hours, and need not read every second. */
const HOURS_FROM = 15 * 86400;

/** The smallest readable step that needs at most so many buckets. */
export function stepFor(span: number, buckets: number): number {
  const least = Math.max(span / Math.max(1, buckets), span > HOURS_FROM ? 3600 : 0);
  return STEPS.find((s) => s >= least) ?? STEPS[STEPS.length - 1];
}

/** The start of the bucket that holds t. */
export function alignDown(t: number, step: number): number {
  return Math.floor(t / step) * step;
}

/** The end of the bucket that holds t, or t if a bucket begins there. */
export function alignUp(t: number, step: number): number {
  return Math.ceil(t / step) * step;
}

/** The starts of the buckets of [from, to), from on an edge. */
export function edges(from: number, to: number, step: number): number[] {
  const n = Math.max(0, Math.ceil((to - from) / step));
  return Array.from({ length: n }, (_, i) => from + i * step);
}

/** How often to ask for new buckets, in seconds: twice a bucket, but not more than each second. */
export function refreshEvery(step: number): number {
  return Math.min(30, Math.max(1, Math.floor(step / 2)));
}
