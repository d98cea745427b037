/** The desk of one run: its own seconds and the server's numbers of the same seconds, on one clock. */
import { fetchEvents, type Benchmark, type ChartData } from '../api';
import { Feed } from '../chart/feed';
import type { Mark } from '../chart/paint';
import { Desk } from '../common/desk';
import type { Range } from '../common/range';
import { toMark } from '../server/board';
import { marksOf, toChart } from './timeline';

const SERVER_BUCKETS = 600;

/** A part of time. */
export interface Span {
  from: number;
  to: number;
}

/** What a run's page shows when its link says nothing: the run, and a little before and after. */
export function spanOf(b: Benchmark): Span {
  const pad = Math.max(3, Math.round((b.to - b.from) / 30));
  return { from: Math.floor(b.from) - pad, to: Math.ceil(b.to) + pad };
}

/** Feeds, marks and gestures of one run. */
export class RunDesk extends Desk {
  readonly data: ChartData;
  /** the run's own seconds */
  readonly own: Feed;
  private feeds = new Map<string, Feed>();
  private list: Mark[];
  private closed = false;

  /** still: gestures change nothing, for two runs side by side have no common time. */
  constructor(run: Benchmark, private span: Span, private still: boolean) {
    super({ live: false, from: span.from, to: span.to });
    this.data = toChart(run.result);
    this.own = new Feed('', span, this.buckets(), async () => this.data);
    this.list = marksOf(run.result);
    if (run.instance) {
      fetchEvents(run.instance, span.from, span.to).then((events) => {
        if (this.closed) return;
        this.list = [...this.list, ...events.map(toMark)].sort((a, b) => a.t - b.t);
        this.changed('marks');
      }, () => undefined); // charts without marks are still charts
    }
    if (still) this.zoom = () => undefined;
  }

  /** The numbers of an instance. */
  feed(instance: string): Feed {
    let f = this.feeds.get(instance);
    if (!f) {
      f = new Feed(instance, this.span, SERVER_BUCKETS);
      this.feeds.set(instance, f);
    }
    return f;
  }

  /** Shows another part of time. */
  show(range: Range, span: Span): void {
    this.range = range;
    if (span.from === this.span.from && span.to === this.span.to) return;
    this.span = span;
    this.own.show(span, this.buckets());
    for (const f of this.feeds.values()) f.show(span, SERVER_BUCKETS);
  }

  marks(): Mark[] {
    return this.list;
  }

  pan(part: number): void {
    if (!this.still) super.pan(part);
  }

  scale(factor: number): void {
    if (!this.still) super.scale(factor);
  }

  close(): void {
    this.closed = true;
    this.own.close();
    for (const f of this.feeds.values()) f.close();
    super.close();
  }

  protected window(): Span {
    return this.span;
  }

  // As many buckets as the run's seconds have: the feed then asks in their own step.
  private buckets(): number {
    return Math.max(1, Math.ceil((this.span.to - this.span.from) / this.data.step));
  }
}
