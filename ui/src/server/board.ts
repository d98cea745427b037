/** The board: all charts of a server page on one clock, with the same marks and cursor. */
import { fetchEvents, fetchFindings, serverNow, type Event, type FindingRecord } from '../api';
import { refreshEvery } from '../chart/buckets';
import { Feed } from '../chart/feed';
import type { Hole, Mark, Wrong } from '../chart/paint';
import { Desk } from '../common/desk';
import { unix } from '../common/format';
import { sameRange, type Range } from '../common/range';

const EVENTS_EVERY_MS = 5000;

/** How an event shows as a mark. */
export function toMark(e: Event): Mark {
  const change = e.old !== undefined || e.new !== undefined ? `${e.subject ?? ''}: ${e.old ?? ''} → ${e.new ?? ''}` : '';
  return { t: unix(e.time), tone: e.severity, text: e.text || change || e.kind, label: e.kind === 'deploy' || e.kind === 'note' ? e.text : undefined };
}

/** How a kept finding shows in the charts; nothing if no rule calls it bad. */
export function toWrong(r: FindingRecord): Wrong | null {
  const tone = r.worst.severity;
  if (tone === 'info') return null;
  const from = r.first.since ? unix(r.first.since) : unix(r.told);
  return { from, to: r.ended ? unix(r.ended) : Infinity, tone, text: r.worst.what, chart: r.worst.chart ?? '' };
}

/** Feeds, marks and the clock of one page. */
export class Board extends Desk {
  private feeds = new Map<string, Feed>();
  private events: Mark[] = [];
  private found: Wrong[] = [];
  private timer = 0;
  private ticks = 0;
  private eventsAt = 0;
  private closed = false;

  constructor(private id: string, range: Range, private buckets: number) {
    super(range);
    this.timer = window.setTimeout(() => this.tick(), 1000);
    void this.loadEvents();
  }

  /** The feed of an instance: the server itself or its host. */
  feed(instance: string): Feed {
    let f = this.feeds.get(instance);
    if (!f) {
      f = new Feed(instance, this.window(), this.buckets);
      this.feeds.set(instance, f);
    }
    return f;
  }

  /** Shows another part of time, or the same on another width. */
  show(range: Range, buckets: number): void {
    if (sameRange(range, this.range) && buckets === this.buckets) return;
    this.range = range;
    this.buckets = buckets;
    for (const f of this.feeds.values()) f.show(this.window(), buckets);
    void this.loadEvents();
  }

  marks(): Mark[] {
    return this.events;
  }

  wrong(): Wrong[] {
    return this.found;
  }

  blanks(feed: Feed): Hole[] {
    return feed.blank(serverNow());
  }

  /** What was wrong at a moment, on the server or its host. */
  wrongAt(t: number): Wrong[] {
    return this.found.filter((w) => w.from <= t + 1 && t <= w.to);
  }

  /** Ends requests and the clock. */
  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    for (const f of this.feeds.values()) f.close();
    super.close();
  }

  private tick(): void {
    if (this.closed) return;
    // Just after the second has ended on the server's clock, when its numbers are there.
    const wait = 1000 - ((serverNow() * 1000) % 1000) + 120;
    this.timer = window.setTimeout(() => this.tick(), wait < 300 ? wait + 1000 : wait);
    if (!this.range.live || document.hidden) return;
    this.ticks++;
    for (const f of this.feeds.values()) {
      if (this.ticks % refreshEvery(f.step) === 0) void f.advance(this.window());
    }
    if (performance.now() - this.eventsAt > EVENTS_EVERY_MS) void this.loadEvents();
  }

  private async loadEvents(): Promise<void> {
    this.eventsAt = performance.now();
    const { from, to } = this.window();
    const asked = this.range;
    try {
      const ids = [...new Set([this.id, ...this.feeds.keys()])];
      const [events, ...found] = await Promise.all([fetchEvents(this.id, from, to), ...ids.map((i) => fetchFindings(i, from, to))]);
      if (this.closed || !sameRange(asked, this.range)) return;
      // Findings have a beginning and an end: they are parts of time, not moments. Messages that did not arrive are no news of this server.
      const marks = events.filter((e) => e.kind !== 'finding' && e.kind !== 'alert').map(toMark);
      // What advice found is of no moment: it would colour every chart for weeks.
      const wrong = found.flat().filter((f) => !f.first.id.startsWith('advice.')).map(toWrong).filter((w) => w !== null);
      const same = marks.length === this.events.length && marks.every((m, i) => m.t === this.events[i].t && m.text === this.events[i].text)
        && wrong.length === this.found.length && wrong.every((w, i) => w.from === this.found[i].from && w.to === this.found[i].to && w.text === this.found[i].text);
      this.events = marks;
      this.found = wrong;
      if (!same) this.changed('marks');
    } catch {
      // Charts without marks are still charts; the next turn asks again.
    }
  }
}
