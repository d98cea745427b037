/** A chart on the page: title line with the value under the cursor, legend, plot; loads when seen. */
import { memo } from 'preact/compat';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { clock, exact, human, when, type Unit } from '../common/format';
import { alignDown } from './buckets';
import { evaluate, keysOf, stretch, text, type Expr } from './expr';
import type { Feed } from './feed';
import type { Colour } from './palette';
import type { Hole, Mark, Wrong } from './paint';
import { Plot, type Picture } from './plot';
import { stack } from './stack';
import { onGrid, type Column, type Part } from './track';

/** One line or layer of a chart. */
export interface Line {
  label: string;
  expr: Expr;
  colour: Colour;
  /** seconds up to its own that each value covers, if more than one */
  covers?: number;
}

/** A chart whose series are known to exist. */
export interface ChartModel {
  id: string;
  title: string;
  unit: Unit;
  lines: Line[];
  stacked: boolean;
  /** a fixed top of the scale */
  top?: number;
  /** what it shows, in a sentence or two */
  explain: string;
  /** where the numbers come from */
  source: string;
  limit?: { label: string; key: string };
  /** a number of its own in the title, such as head-room */
  sum?: { label: string; expr: Expr };
  /** numbers of what is over: the last one is in the title, however long before the window's end */
  past?: boolean;
  feed: Feed;
}

/** What all charts of a page share. */
export interface ChartDesk {
  marks(): Mark[];
  /** parts of time that were not read, if the page knows of such */
  holes?(): Hole[];
  /** parts of time for which a feed has no numbers at all */
  blanks?(feed: Feed): Hole[];
  /** what was wrong, and when */
  wrong?(): Wrong[];
  pinned(): number | null;
  now(): number;
  /** called when marks, pinned cursor or theme changed */
  onChange(f: (what: 'marks' | 'theme') => void): () => void;
  zoom(from: number, to: number): void;
  back(): void;
  pin(t: number): void;
  hover(t: number | null): void;
}

/** The keys of all series that a chart reads. */
export function keysOfChart(m: ChartModel): string[] {
  const keys = new Set<string>();
  for (const l of m.lines) keysOf(l.expr).forEach((k) => keys.add(k));
  if (m.limit) keys.add(m.limit.key);
  if (m.sum) keysOf(m.sum.expr).forEach((k) => keys.add(k));
  return [...keys];
}

interface Drawn {
  picture: Picture;
  values: Column[];
  sum: Column | null;
  limit: number | null;
}

/** Evaluates a chart over its feed's window. */
export function draw(m: ChartModel): Drawn {
  const { step, window: w } = m.feed;
  const from = alignDown(w.from, step);
  const n = Math.max(1, Math.ceil((w.to - from) / step));
  const column = (part: Part) => (key: string) => onGrid(m.feed.track(key), part, from, step, n);
  const x = new Array<number>(n);
  for (let i = 0; i < n; i++) x[i] = from + i * step + (step > 1 ? step / 2 : 0);
  const values = m.lines.map((l) => stretch(evaluate(l.expr, column('avg'), n), Math.ceil((l.covers ?? 0) / step)));
  // A spread is known for a series itself; that of a sum or ratio is not the sum of spreads.
  const only = m.lines.length === 1 && typeof m.lines[0].expr === 'string' ? m.lines[0].expr : null;
  const min = only ? column('min')(only) : null;
  const max = only ? column('max')(only) : null;
  const band = only && min && max ? { min, max, p5: column('p5')(only), p95: column('p95')(only) } : null;
  const limitColumn = m.limit ? column('avg')(m.limit.key) : null;
  const limit = limitColumn?.findLast((v) => v !== null) ?? null;
  return {
    picture: { x, step, from: w.from, to: w.to, lines: values, band, stacked: m.stacked ? stack(values) : null, limit },
    values,
    sum: m.sum ? evaluate(m.sum.expr, column('avg'), n) : null,
    limit,
  };
}

function put(el: HTMLElement | null, text: string, title: string): void {
  if (!el) return;
  if (el.textContent !== text) el.textContent = text;
  if (el.title !== title) el.title = title;
}

function last(c: Column, reach: number): number | null {
  // The newest bucket may still be empty; older than a few is no "now".
  for (let i = c.length - 1; i >= Math.max(0, c.length - 6 - reach); i--) if (c[i] !== null && c[i] !== undefined) return c[i];
  return null;
}

/** Writes the values under the cursor (or the newest) into title and legend, without a render. */
class Readout {
  private hover: number | null = null;
  constructor(private m: ChartModel, private root: HTMLElement) {}

  over(i: number | null): void {
    this.hover = i;
  }

  show(d: Drawn, pinnedAt: number | null): void {
    const i = this.hover ?? pinnedAt;
    const at = (c: Column | null, covers = 0): number | null => (c === null ? null : i === null ? last(c, this.m.past ? c.length : Math.ceil(covers / d.picture.step)) : (c[i] ?? null));
    const { unit, lines } = this.m;
    lines.forEach((l, k) => {
      const v = at(d.values[k], l.covers);
      put(this.root.querySelector(`[data-v="${k}"]`), human(v, unit), exact(v, unit));
    });
    const spread = this.root.querySelector<HTMLElement>('[data-spread]');
    if (spread) {
      const b = d.picture.band;
      const lo = b ? at(b.min) : null;
      const hi = b ? at(b.max) : null;
      const some = lo !== null && hi !== null && lo !== hi;
      put(spread, some ? `${human(lo, unit)} … ${human(hi, unit)}` : '', some ? `lowest and highest second of ${human(d.picture.step, 's')}: ${exact(lo, unit)}, ${exact(hi, unit)}` : '');
    }
    put(this.root.querySelector('[data-sum]'), human(at(d.sum), unit), exact(at(d.sum), unit));
    put(this.root.querySelector('[data-limit]'), human(d.limit, unit), exact(d.limit, unit));
  }
}

/** Shows what is at a place of the plot: the time and the marks near it. */
class Tip {
  constructor(private el: HTMLElement, private desk: ChartDesk, private feed: Feed) {}

  hide(): void {
    this.el.hidden = true;
  }

  show(x: number, t: number, width: number, perPixel: number, step: number): void {
    const near = this.desk.marks().filter((k) => Math.abs(k.t - t) <= perPixel * 7).slice(-6);
    const now = this.desk.now();
    const span = step > 1 ? ` +${human(step, 's')}` : '';
    const hole = this.desk.holes?.().some((h) => t >= h.from && t < h.to) ? ['not read'] : [];
    const blank = this.desk.blanks?.(this.feed).some((h) => t >= h.from && t < h.to) ? ['no data'] : [];
    const wrong = (this.desk.wrong?.() ?? []).filter((w) => t >= w.from - perPixel * 3 && t <= w.to + perPixel * 3).slice(0, 4);
    const lines = [when(alignDown(t, step), now) + span, ...hole, ...blank, ...wrong.map((w) => `${w.tone === 'critical' ? '◆' : '▲'} ${w.text}`), ...near.map((k) => `${clock(k.t)}  ${k.text}`)];
    this.el.classList.toggle('marked', near.length + wrong.length > 0);
    this.put(x, lines.join('\n'), width);
  }

  select(x: number, [from, to]: [number, number], width: number): void {
    this.put(x, `${clock(from)} – ${clock(to)}, ${human(to - from, 's')}`, width);
  }

  private put(x: number, text: string, width: number): void {
    this.el.textContent = text;
    this.el.hidden = false;
    const w = this.el.offsetWidth;
    this.el.style.left = `${Math.max(0, Math.min(width - w, x + 46 - w / 2))}px`;
  }
}

function mount(m: ChartModel, desk: ChartDesk, root: HTMLElement): () => void {
  const host = root.querySelector<HTMLElement>('.plot')!;
  const tip = new Tip(root.querySelector<HTMLElement>('.tip')!, desk, m.feed);
  const readout = new Readout(m, root);
  let plot: Plot | null = null;
  let unwatch: (() => void) | null = null;
  let drawn: Drawn | null = null;

  const showReadout = (): void => {
    const at = desk.pinned();
    if (drawn) readout.show(drawn, at === null ? null : (plot?.bucketAt(at) ?? null));
  };
  const update = (): void => {
    if (!plot) return;
    drawn = draw(m);
    plot.set({ ...drawn.picture, blanks: desk.blanks?.(m.feed) });
    // Nothing asked for has come yet: that is not the same as nothing there.
    const known = keysOfChart(m).every((k) => m.feed.track(k) !== undefined);
    root.classList.toggle('empty', known && drawn.values.every((c) => c.every((v) => v === null)));
    showReadout();
  };
  const start = (): void => {
    plot ??= new Plot(host, { unit: m.unit, colours: m.lines.map((l) => l.colour), top: m.top, chart: m.id }, {
      hover: (i) => {
        readout.over(i);
        showReadout();
        if (i === null) tip.hide();
      },
      point: (x, t, selection) => {
        desk.hover(t);
        const p = drawn?.picture;
        if (t === null || !p) tip.hide();
        else if (selection) tip.select(x, selection, host.clientWidth);
        else tip.show(x, t, host.clientWidth, (p.to - p.from) / Math.max(1, host.clientWidth - 54), p.step);
      },
      zoom: desk.zoom, back: desk.back, pin: desk.pin,
    }, host.clientWidth, host.clientHeight);
    plot.annotate(desk.marks(), desk.pinned(), desk.holes?.(), desk.wrong?.());
    unwatch ??= m.feed.watch(keysOfChart(m), update);
  };
  const stop = (): void => {
    unwatch?.();
    unwatch = null;
  };

  const seen = new IntersectionObserver((e) => (e[e.length - 1].isIntersecting ? start() : stop()), { rootMargin: '240px 0px' });
  seen.observe(root);
  const sized = new ResizeObserver(() => plot?.resize(host.clientWidth, host.clientHeight));
  sized.observe(host);
  const off = desk.onChange((what) => {
    if (what === 'theme') plot?.redraw();
    plot?.annotate(desk.marks(), desk.pinned(), desk.holes?.(), desk.wrong?.());
    showReadout();
  });
  return () => {
    seen.disconnect();
    sized.disconnect();
    off();
    stop();
    plot?.destroy();
  };
}

/** The hover on a title: what it shows, where it comes from, the exact keys. */
function About({ model }: { model: ChartModel }) {
  const one = model.lines.length === 1;
  return (
    <div class="about" role="note">
      <p>{model.explain}</p>
      <p class="quiet">Source: {model.source}</p>
      <dl>
        {model.lines.slice(0, 12).map((l) => (
          <div key={l.label}>
            {!one && <dt>{l.label}</dt>}
            <dd><code>{text(l.expr)}</code></dd>
          </div>
        ))}
        {model.limit && <div><dt>{model.limit.label}</dt><dd><code>{model.limit.key}</code></dd></div>}
      </dl>
    </div>
  );
}

interface Props {
  model: ChartModel;
  desk: ChartDesk;
  /** shown for pinned metrics */
  onUnpin?: () => void;
}

/** One chart. It renders once; numbers flow past the renderer. */
export const Chart = memo(function Chart({ model, desk, onUnpin }: Props) {
  const root = useRef<HTMLElement>(null);
  useLayoutEffect(() => mount(model, desk, root.current!), [model, desk]);
  const one = model.lines.length === 1;
  const label = useMemo(() => `${model.title}. ${model.explain}`, [model]);
  return (
    <figure class="chart" id={`chart-${model.id}`} data-chart={model.id} ref={root} aria-label={label}>
      <figcaption>
        <div class="head">
          <h3 tabIndex={0}>{model.title}</h3>
          <About model={model} />
          <span class="spread" data-spread />
          {one && <span class="value" data-v="0">–</span>}
          {model.sum && <span class="value"><small>{model.sum.label} </small><b data-sum>–</b></span>}
          {onUnpin && <button class="bare" onClick={onUnpin} aria-label={`Remove ${model.title}`} title="Remove this chart">×</button>}
        </div>
        {(!one || model.limit) && (
          <ul class="legend">
            {!one && model.lines.map((l, k) => (
              <li key={l.label} title={text(l.expr)}>
                <i class={`dot x-${l.colour}`} /><span>{l.label}</span><b data-v={k}>–</b>
              </li>
            ))}
            {model.limit && <li class="limit" title={model.limit.key}><i class="dash" /><span>{model.limit.label}</span><b data-limit>–</b></li>}
          </ul>
        )}
      </figcaption>
      <div class="plot"><div class="tip" hidden /></div>
    </figure>
  );
});

