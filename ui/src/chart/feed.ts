/**
 * Feed: the numbers of one instance for one window of time. Charts say which keys they show; the
 * feed asks for what is missing in as few requests as make sense, and in live mode only for the
 * seconds that are new.
 */
import { fetchChart, type ChartData } from '../api';
import { alignDown, stepFor } from './buckets';
import type { Hole } from './paint';
import { blanksOf, dropBefore, endOf, merge, toTrack, type Track } from './track';

/** The part of time on the page. */
export interface Window {
  from: number;
  to: number;
}

/** How a feed asks the server; a test gives its own. */
export type Ask = (keys: string[], from: number, to: number, points: number, signal: AbortSignal) => Promise<ChartData>;

interface Watcher {
  keys: string[];
  draw: () => void;
}

const KEYS_PER_REQUEST = 40;
// A month of one series costs the server far more than ten minutes of it: show charts as they come.
const KEYS_PER_LONG_REQUEST = 10;
const LONG_SPAN = 2 * 86400;
// The last buckets are asked for again: late values may still have joined them.
const OVERLAP_BUCKETS = 2;

/** One instance's numbers in the window that the page shows. */
export class Feed {
  private tracks = new Map<string, Track>();
  private watchers = new Set<Watcher>();
  private wanted = new Set<string>();
  private scheduled = false;
  private abort = new AbortController();
  private busy = false;
  private failures = 0;
  private blanks: Hole[] | null = null;

  /** Seconds per bucket, as asked for or as the server answered. */
  step: number;

  constructor(
    readonly instance: string,
    public window: Window,
    buckets: number,
    private ask: Ask = (keys, from, to, points, signal) => fetchChart(instance, keys, from, to, points, signal),
  ) {
    this.step = stepFor(window.to - window.from, buckets);
  }

  /** Calls draw whenever one of the keys has new numbers, until the returned function is called. */
  watch(keys: string[], draw: () => void): () => void {
    const w = { keys, draw };
    this.watchers.add(w);
    for (const k of keys) {
      const t = this.tracks.get(k);
      if (!t || t.step !== this.step || t.from > this.window.from || endOf(t) < this.window.to - 3 * this.step) this.wanted.add(k);
    }
    this.schedule();
    draw();
    return () => void this.watchers.delete(w);
  }

  /** Another window: what is held is drawn immediately under the new scale, then replaced. */
  show(window: Window, buckets: number): void {
    this.abort.abort();
    this.abort = new AbortController();
    this.busy = false;
    this.window = window;
    this.step = stepFor(window.to - window.from, buckets);
    this.wanted = new Set(this.watched());
    this.redraw(() => true);
    this.schedule();
  }

  /** The live window moved on: asks for the new buckets of what is on the screen, in one request. */
  async advance(window: Window): Promise<void> {
    this.window = window;
    if (this.busy) return;
    const keys = this.watched().filter((k) => !this.wanted.has(k));
    if (keys.length === 0) return this.redraw(() => true);
    let since = Infinity;
    for (const k of keys) since = Math.min(since, endOf(this.tracks.get(k) ?? { from: window.from, step: this.step, columns: { avg: [] } }));
    const from = Math.max(alignDown(window.from, this.step), alignDown(since, this.step) - OVERLAP_BUCKETS * this.step);
    await this.load(keys, from, window.to);
  }

  /** Stops all requests and forgets the charts. */
  close(): void {
    this.abort.abort();
    this.watchers.clear();
  }

  /** The parts of the window for which none of the series has a number: nobody looked, or there was nothing to see. */
  blank(now: number): Hole[] {
    if (!this.blanks) {
      const grid = { from: alignDown(this.window.from, this.step), step: this.step, to: this.window.to };
      this.blanks = this.tracks.size === 0 ? [] : blanksOf([...this.tracks.values()], grid, now);
    }
    return this.blanks;
  }

  /** The buckets of a key, where they are here. */
  track(key: string): Track | undefined {
    return this.tracks.get(key);
  }

  private watched(): string[] {
    const out = new Set<string>();
    for (const w of this.watchers) for (const k of w.keys) out.add(k);
    return [...out];
  }

  private schedule(): void {
    if (this.scheduled || this.wanted.size === 0) return;
    this.scheduled = true;
    // Charts come into view in the same frame: wait for them and ask once.
    setTimeout(() => {
      this.scheduled = false;
      void this.flush();
    }, 0);
  }

  private async flush(): Promise<void> {
    const keys = [...this.wanted];
    this.wanted.clear();
    const signal = this.abort.signal;
    const { from, to } = this.window;
    const size = to - from > LONG_SPAN ? KEYS_PER_LONG_REQUEST : KEYS_PER_REQUEST;
    for (let i = 0; i < keys.length; i += size) {
      if (signal.aborted) return;
      await this.load(keys.slice(i, i + size), alignDown(from, this.step), to);
    }
    this.schedule();
  }

  private async load(keys: string[], from: number, to: number): Promise<void> {
    const signal = this.abort.signal;
    this.busy = true;
    try {
      const points = Math.max(1, Math.ceil((to - from) / this.step));
      this.take(await this.ask(keys, from, to, points, signal), keys);
      this.failures = 0;
    } catch {
      if (signal.aborted) return;
      // The banner says that the server is silent; what was asked for is asked for again, ever slower.
      this.failures++;
      setTimeout(() => {
        if (signal.aborted) return;
        for (const k of keys) if (!this.tracks.has(k)) this.wanted.add(k);
        this.schedule();
      }, Math.min(10_000, 500 * 2 ** this.failures));
    } finally {
      if (!signal.aborted) this.busy = false;
    }
  }

  private take(data: ChartData, keys: string[]): void {
    if (data.step !== this.step) this.step = data.step;
    const keep = alignDown(this.window.from, this.step);
    const seen = new Set<string>();
    for (const s of data.series ?? []) {
      seen.add(s.key);
      this.tracks.set(s.key, dropBefore(merge(this.tracks.get(s.key), toTrack(data, s)), keep));
    }
    // A key without an answer has no data here: an empty track, so that it is not asked for again.
    for (const k of keys) {
      if (seen.has(k)) continue;
      const n = Math.max(0, Math.round((data.to - data.from) / data.step));
      const none: Track = { from: data.from, step: data.step, columns: { avg: new Array<number | null>(n).fill(null) } };
      this.tracks.set(k, dropBefore(merge(this.tracks.get(k), none), keep));
    }
    // Should the server choose another step than before, what was held does not join: ask for all of it.
    for (const k of keys) if ((this.tracks.get(k)?.from ?? keep) > keep) this.wanted.add(k);
    const mine = new Set(keys);
    this.redraw((w) => w.keys.some((k) => mine.has(k)));
  }

  private redraw(which: (w: Watcher) => boolean): void {
    this.blanks = null;
    for (const w of [...this.watchers]) if (which(w)) w.draw();
  }
}
