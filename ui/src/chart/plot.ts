/** One plot: uPlot with Risso's scales, axes, bands, stacks, marks and gestures. Knows nothing of pages. */
import uPlot from 'uplot';
import { axisLabel, clock, type Unit } from '../common/format';
import { colour, css, type Colour } from './palette';
import { paintBand, paintHoles, paintLabels, paintLimit, paintMarks, paintPin, paintStack, paintWrong, type Band, type Hole, type Mark, type Wrong } from './paint';
import { maxOf, minOf, niceTop, partsOf } from './stack';
import type { Column } from './track';

/** What a plot shows: columns over the same buckets. */
export interface Picture {
  /** middles of the buckets, unix seconds */
  x: number[];
  step: number;
  /** the scale of time */
  from: number;
  to: number;
  lines: Column[];
  band: Band | null;
  /** tops of stacked layers; the lines are then not drawn as lines */
  stacked: Column[] | null;
  limit: number | null;
  /** parts of time without any data */
  blanks?: Hole[];
}

/** What does not change while a plot lives. */
export interface Look {
  unit: Unit;
  colours: Colour[];
  /** a fixed top of the scale, such as 1 for parts of a whole */
  top?: number;
  /** what the chart is called where something wrong names it */
  chart: string;
}

/** What a plot tells its page. */
export interface Gestures {
  /** the cursor is over bucket i of all plots, or nowhere */
  hover(i: number | null): void;
  /** the pointer is over this plot, at a moment, perhaps drawing a selection; or it left */
  point(x: number, t: number | null, selection: [number, number] | null): void;
  zoom(from: number, to: number): void;
  back(): void;
  pin(t: number): void;
}

const isBytes = (unit: Unit): boolean => unit === 'B' || unit === 'B/s';

const LEFT = 46;
const CLICK_PX = 4;
const SYNC = 'risso';

/** A live uPlot and the picture it shows. */
export class Plot {
  private u: uPlot;
  private picture: Picture | null = null;
  private marks: Mark[] = [];
  private holes: Hole[] = [];
  private wrong: Wrong[] = [];
  private pinned: number | null = null;

  constructor(host: HTMLElement, private look: Look, private gestures: Gestures, width: number, height: number) {
    this.u = new uPlot(this.options(width, height), [[], ...look.colours.map(() => [])] as unknown as uPlot.AlignedData, host);
    touch(this.u, gestures);
  }

  /** Shows other numbers or another part of time. */
  set(p: Picture): void {
    this.picture = p;
    const none = p.x.map(() => null);
    const data = [p.x, ...(p.stacked ? p.lines.map(() => none) : p.lines)] as uPlot.AlignedData;
    this.u.batch(() => {
      this.u.setData(data, false);
      this.u.setScale('x', { min: p.from, max: p.to });
    });
  }

  /** Marks, pinned cursor and what was wrong, on top of the numbers; holes under them. */
  annotate(marks: Mark[], pinned: number | null, holes: Hole[] = [], wrong: Wrong[] = []): void {
    this.marks = marks;
    this.wrong = wrong;
    this.holes = holes;
    this.pinned = pinned;
    if (this.picture) this.u.redraw(false, false);
  }

  /** Redraws, in the colours of the theme. */
  redraw(): void {
    this.u.redraw(false, true);
  }

  /** Fits another width. */
  resize(width: number, height: number): void {
    if (width !== this.u.width || height !== this.u.height) this.u.setSize({ width, height });
  }

  /** Ends the plot. */
  destroy(): void {
    this.u.destroy();
  }

  /** The bucket that holds t; null outside of the picture. */
  bucketAt(t: number): number | null {
    const p = this.picture;
    if (!p || p.x.length === 0) return null;
    const i = Math.round((t - p.x[0]) / p.step);
    return i >= 0 && i < p.x.length ? i : null;
  }

  private top(): [number, number] {
    const p = this.picture;
    const { unit, top } = this.look;
    if (!p) return [0, top ?? 1];
    const drawn = p.stacked ?? [...p.lines, p.band?.max ?? null];
    const max = maxOf(drawn);
    if (top !== undefined) return [0, Math.max(top, max)];
    // A part of the time is at most all of it, give or take the clocks of two readings.
    if (unit === '%' && max > 0.8 && max < 1.2) return [0, 1];
    const min = minOf(p.stacked ? [] : [...p.lines, p.band?.min ?? null]);
    // A limit far above would press the line to the floor: then it is in the legend only.
    const reach = p.limit !== null && p.limit < max * 3 ? Math.max(max, p.limit) : max;
    return [min < 0 ? -niceTop(-min) : 0, niceTop(reach, isBytes(unit))];
  }

  private options(width: number, height: number): uPlot.Options {
    const { look } = this;
    const font = '10px system-ui, sans-serif';
    return {
      width,
      height,
      legend: { show: false },
      padding: [6, 8, 0, 0],
      scales: { x: { time: true, auto: false }, y: { auto: true, range: () => this.top() } },
      axes: [
        {
          stroke: () => css('--ink-3'), font, size: 18, gap: 3, space: 64, ticks: { show: false },
          grid: { stroke: () => css('--grid'), width: 1 },
          values: (u, splits, _i, _space, incr) => timeLabels(splits, incr).map((l, i) => (fits(u, splits[i], l) ? l : '')),
        },
        {
          stroke: () => css('--ink-3'), font, size: LEFT, gap: 4, space: 26, ticks: { show: false },
          grid: { stroke: () => css('--grid'), width: 1 },
          values: (_u, splits) => splits.map((v) => axisLabel(v, look.unit)),
          splits: (u, _i, min, max) => valueSplits(min, max, u.height, look.unit),
        },
      ],
      series: [
        {},
        ...look.colours.map((c): uPlot.Series => ({
          stroke: () => colour(c), width: 1.25, spanGaps: false,
          points: { show: (u, s, a, b) => lonely(u, s, a, b), size: 3, filter: lonePoints },
        })),
      ],
      cursor: {
        y: false,
        points: { size: 5, width: 1, fill: (_u, s) => (s > 0 ? colour(look.colours[s - 1]) : ''), stroke: () => css('--ground') },
        drag: { x: true, y: false, setScale: false, dist: CLICK_PX },
        sync: { key: SYNC, setSeries: false, scales: ['x', null] },
        bind: { dblclick: () => () => (this.gestures.back(), null) },
      },
      hooks: {
        drawAxes: [(u) => this.paintUnder(u)],
        draw: [(u) => this.paintOver(u)],
        setCursor: [(u) => this.moved(u)],
        setSelect: [(u) => this.selected(u)],
        ready: [(u) => this.clicks(u)],
      },
    };
  }

  private paintUnder(u: uPlot): void {
    const p = this.picture;
    if (!p) return;
    paintHoles(u, p.blanks ? [...this.holes, ...p.blanks] : this.holes);
    if (p.stacked) paintStack(u, p.x, p.stacked, this.look.colours, p.step);
    else if (p.band) paintBand(u, p.x, p.band, p.step);
  }

  private paintOver(u: uPlot): void {
    const p = this.picture;
    if (p?.limit !== null && p?.limit !== undefined) paintLimit(u, p.limit);
    paintWrong(u, this.wrong, this.look.chart);
    paintMarks(u, this.marks);
    paintLabels(u, this.marks);
    paintPin(u, this.pinned);
  }

  private moved(u: uPlot): void {
    const { left, idx } = u.cursor;
    const inside = left !== undefined && left !== null && left >= 0;
    this.gestures.hover(inside && idx !== undefined ? idx : null);
    // Only the plot under the pointer has an event of its own; the others follow it.
    if (!u.cursor.event) return;
    const { left: a, width: w } = u.select;
    const selection: [number, number] | null = w >= CLICK_PX ? [u.posToVal(a, 'x'), u.posToVal(a + w, 'x')] : null;
    this.gestures.point(left ?? -1, inside ? u.posToVal(left, 'x') : null, selection);
  }

  private selected(u: uPlot): void {
    const { left, width } = u.select;
    if (width < CLICK_PX || !u.cursor.event) return;
    const from = u.posToVal(left, 'x');
    const to = u.posToVal(left + width, 'x');
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.gestures.zoom(from, to);
  }

  private clicks(u: uPlot): void {
    let downAt = -1;
    u.over.addEventListener('mousedown', (e) => (downAt = e.offsetX));
    u.over.addEventListener('click', (e) => {
      if (e.detail === 1 && Math.abs(e.offsetX - downAt) < CLICK_PX) this.gestures.pin(Math.round(u.posToVal(e.offsetX, 'x')));
    });
  }
}

// On a phone a finger sideways moves the cursor; up and down scrolls the page as ever.
function touch(u: uPlot, gestures: Gestures): void {
  const move = (e: TouchEvent): void => {
    const box = u.over.getBoundingClientRect();
    const left = e.touches[0].clientX - box.left;
    if (left < 0 || left > box.width) return;
    u.setCursor({ left, top: 10 });
    gestures.point(left, u.posToVal(left, 'x'), null);
  };
  u.over.addEventListener('touchstart', move, { passive: true });
  u.over.addEventListener('touchmove', move, { passive: true });
}

function lonely(_u: uPlot, s: number, _a: number, _b: number): boolean {
  return s > 0;
}

// A value between two gaps has no line: it gets a dot.
function lonePoints(u: uPlot, s: number): number[] | null {
  const c = u.data[s] as Column;
  const out: number[] = [];
  for (let i = 0; i < c.length; i++) {
    if (c[i] !== null && (c[i - 1] ?? null) === null && (c[i + 1] ?? null) === null) out.push(i);
  }
  return out;
}

function valueSplits(min: number, max: number, height: number, unit: Unit): number[] {
  const n = height > 100 ? partsOf(max, isBytes(unit), unit === '') : 2;
  const out = min < 0 ? [min, min / 2] : [];
  for (let i = 0; i <= n; i++) out.push((max * i) / n);
  return out;
}

// A label that the right edge would cut says nothing.
function fits(u: uPlot, t: number, label: string): boolean {
  const px = u.valToPos(t, 'x');
  const half = label.length * 2.8;
  return px + half <= u.width - LEFT + 2;
}

function timeLabels(splits: number[], incr: number): string[] {
  let last = '';
  return splits.map((t) => {
    const d = new Date(t * 1000);
    const date = `${d.getDate()} ${d.toLocaleString('en', { month: 'short' })}`;
    if (incr >= 86400) return date;
    const c = clock(t);
    // Where a day begins, its date says more than 00:00.
    if (c.startsWith('00:00') && last !== '' && last !== date) {
      last = date;
      return date;
    }
    last = date;
    return incr < 60 ? c : c.slice(0, 5);
  });
}
