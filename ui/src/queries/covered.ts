/** Which parts of a range were read: a minute without load is not a minute that was not read. */
import type { Covered, Span } from '../api';

/** Buckets of time, the first of which begins at from. */
export interface Grid {
  from: number;
  step: number;
}

/** What is known of the buckets of a range. */
export interface Known {
  /** whether a bucket's value means anything */
  read: boolean[];
  /** the parts of time that were not read, joined */
  holes: Span[];
}

// A reading of the newest minute may still be under way: that is no hole yet.
const LATE = 120;

/**
 * Says which of n buckets were read, on any of the instances; none means all. A bucket in which something ran was read,
 * whatever the store knows about it. Without covered all were.
 */
export function knownOf(covered: Covered[] | null | undefined, grid: Grid, n: number, span: Span, now: number, ran: (i: number) => boolean, instances?: Set<string>): Known {
  const read = new Array<boolean>(n).fill(true);
  const holes: Span[] = [];
  if (!covered) return { read, holes };
  const spans = covered.filter((c) => !instances || instances.has(c.instance)).flatMap((c) => c.spans);
  for (let i = 0; i < n; i++) {
    const from = Math.max(span.from, grid.from + i * grid.step);
    const to = Math.min(span.to, grid.from + (i + 1) * grid.step);
    if (from >= to || ran(i) || spans.some(([a, b]) => a < to && b > from)) continue;
    read[i] = false;
    if (to > now - LATE) continue;
    const last = holes[holes.length - 1];
    if (last && last.to === from) last.to = to;
    else holes.push({ from, to });
  }
  return { read, holes };
}
