/** A desk: what all charts of a page share, time first. Its gestures change the link; the page follows. */
import { signal } from '@preact/signals';
import { serverNow } from '../api';
import type { ChartDesk } from '../chart/Chart';
import type { Mark } from '../chart/paint';
import { ends, fixed, pan, zoom, type Range } from './range';
import { go, replace, unzoom, view } from './router';

/** The desk on the screen, for the range control and the keyboard. */
export const currentDesk = signal<Desk | null>(null);

// A zoom to more detail than the data has would show nothing.
const LEAST_ZOOM = 4;

/** The clock, the cursor and the gestures of one page's charts. */
export abstract class Desk implements ChartDesk {
  private listeners = new Set<(what: 'marks' | 'theme') => void>();
  private hovered: number | null = null;

  /** leastZoom: seconds below which the data has no more detail */
  constructor(protected range: Range, private leastZoom = LEAST_ZOOM) {}

  abstract marks(): Mark[];

  /** Marks, pinned cursor or theme changed: the charts redraw them. */
  changed(what: 'marks' | 'theme'): void {
    for (const l of this.listeners) l(what);
  }

  /** Forgets the charts. */
  close(): void {
    this.listeners.clear();
  }

  /** Moves in time by a part of what is shown. */
  pan(part: number): void {
    go({ range: pan(this.range, part, serverNow()) }, 'pan');
  }

  /** Shows more or less time, around the cursor if there is one. */
  scale(factor: number): void {
    const at = this.hovered ?? undefined;
    go({ range: zoom(this.range, factor, serverNow(), this.range.live ? undefined : at) }, 'zoom');
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
    const half = Math.max(this.leastZoom, to - from) / 2;
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

  /** The part of time on the screen. */
  protected window(): { from: number; to: number } {
    return ends(this.range, serverNow());
  }
}
