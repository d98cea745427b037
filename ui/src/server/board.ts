/** The board: all charts of a server page on one clock, with the same marks and cursor. */
import { fetchEvents, serverNow, type Event } from '../api';
import { refreshEvery } from '../chart/buckets';
import type { ChartDesk } from '../chart/Chart';
import { Feed } from '../chart/feed';
import type { Mark } from '../chart/paint';
import { unix } from '../common/format';
import { ends, fixed, pan, sameRange, zoom, type Range } from '../common/range';
import { go, replace, unzoom, view } from '../common/router';

// A zoom to more detail than the data has would show nothing: a few seconds are the least.
const LEAST_ZOOM = 4;
const EVENTS_EVERY_MS = 5000;

/** How an event shows as a mark. */
export function toMark(e: Event): Mark {
  const change = e.old !== undefined || e.new !== undefined ? `${e.subject ?? ''}: ${e.old ?? ''} → ${e.new ?? ''}` : '';
  return { t: unix(e.time), tone: e.severity, text: e.text || change || e.kind };
}

/** Feeds, marks and the clock of one page. */
export class Board implements ChartDesk {
  private feeds = new Map<string, Feed>();
  private listeners = new Set<(what: 'marks' | 'theme') => void>();
  private events: Mark[] = [];
  private timer = 0;
  private ticks = 0;
  private eventsAt = 0;
  private hovered: number | null = null;
  private closed = false;

  constructor(private id: string, private range: Range, private buckets: number) {
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

  /** Marks, pinned cursor or theme changed: the charts draw them anew. */
  changed(what: 'marks' | 'theme'): void {
    for (const l of this.listeners) l(what);
  }

  /** Ends requests and the clock. */
  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    for (const f of this.feeds.values()) f.close();
    this.listeners.clear();
  }

  /** Moves in time by a part of what is shown. */
  pan(part: number): void {
    go({ range: pan(this.range, part, serverNow()) }, 'pan');
  }

  /** Shows more or less time, around the cursor where there is one. */
  scale(factor: number): void {
    const at = this.hovered ?? undefined;
    go({ range: zoom(this.range, factor, serverNow(), this.range.live ? undefined : at) }, 'zoom');
  }

  marks(): Mark[] {
    return this.events;
  }

  pinned(): number | null {
    return view.value.at;
  }

  now(): number {
    return serverNow();
  }

  onChange(f: (what: 'marks' | 'theme') => void): () => void {
    this.listeners.add(f);
    return () => void this.listeners.delete(f);
  }

  zoom = (from: number, to: number): void => {
    const middle = (from + to) / 2;
    const half = Math.max(LEAST_ZOOM, to - from) / 2;
    go({ range: fixed(middle - half, middle + half) });
    history.replaceState({ kind: 'zoom' }, '');
  };

  back = (): void => {
    if (!unzoom() && !this.range.live) this.scale(3);
  };

  pin = (t: number): void => {
    const { from, to } = this.window();
    const near = view.value.at !== null && Math.abs(view.value.at - t) < (to - from) / 80;
    replace({ at: near ? null : t });
  };

  hover = (t: number | null): void => {
    this.hovered = t;
  };

  private window(): { from: number; to: number } {
    return ends(this.range, serverNow());
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
      const events = await fetchEvents(this.id, from, to);
      if (this.closed || !sameRange(asked, this.range)) return;
      const marks = events.map(toMark);
      const same = marks.length === this.events.length && marks.every((m, i) => m.t === this.events[i].t && m.text === this.events[i].text);
      this.events = marks;
      if (!same) this.changed('marks');
    } catch {
      // Charts without marks are still charts; the next turn asks again.
    }
  }
}
