/** The desk of a page about statements: charts of numbers that the page has asked for. */
import { useEffect, useMemo } from 'preact/hooks';
import type { ChartData } from '../api';
import { Feed } from '../chart/feed';
import type { Hole, Mark } from '../chart/paint';
import { currentDesk, Desk } from '../common/desk';
import type { Range } from '../common/range';
import { view } from '../common/router';
import { themeChanges } from '../common/theme';

const MINUTE = 60;

/** Charts that draw what they are given. */
export class GivenDesk extends Desk {
  private given: Mark[] = [];
  private unread: Hole[] = [];
  private data: ChartData = { from: 0, to: 60, step: 60, series: [] };
  private shown = { from: 0, to: 60 };

  /** The feed of all charts of the page. */
  readonly feed = new Feed('', this.shown, 1, async () => this.data);

  constructor(range: Range) {
    super(range, MINUTE);
  }

  marks(): Mark[] {
    return this.given;
  }

  holes(): Hole[] {
    return this.unread;
  }

  /** Follows the page's range, for gestures. */
  follow(range: Range): void {
    this.range = range;
  }

  /** Draws other numbers; gaps are what was not read. */
  show(data: ChartData, span: { from: number; to: number }, holes: Hole[] = []): void {
    this.unread = holes;
    this.changed('marks');
    this.data = data;
    this.shown = span;
    // As many buckets as the numbers have: the feed then asks in their own step.
    this.feed.show(span, Math.max(1, Math.ceil((span.to - span.from) / data.step)));
  }

  /** Marks other moments. */
  mark(marks: Mark[]): void {
    this.given = marks;
    this.changed('marks');
  }

  close(): void {
    this.feed.close();
    super.close();
  }

  protected window(): { from: number; to: number } {
    return this.shown;
  }
}

/** The desk of a page about statements, which is the current one as long as the page is shown. */
export function useDesk(): GivenDesk {
  const { range, at } = view.value;
  const desk = useMemo(() => new GivenDesk(range), []);
  useEffect(() => {
    currentDesk.value = desk;
    return () => {
      desk.close();
      if (currentDesk.value === desk) currentDesk.value = null;
    };
  }, []);
  useEffect(() => desk.follow(range), [range]);
  useEffect(() => desk.changed('marks'), [at]);
  useEffect(() => desk.changed('theme'), [themeChanges.value]);
  return desk;
}
