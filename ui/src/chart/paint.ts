/** What uPlot does not draw: bands, stacks and marks, straight onto its canvas. */
import type uPlot from 'uplot';
import { colour, css, type Colour } from './palette';
import { runs } from './stack';
import type { Column } from './track';

/** A moment marked in every chart: a variable changed, a restart. */
export interface Mark {
  t: number;
  tone: 'info' | 'warning' | 'critical';
  text: string;
  /** something that people did, such as a deployment: drawn with its name */
  label?: string;
}

/** A part of time in which something was wrong. */
export interface Wrong {
  from: number;
  /** Infinity while it holds */
  to: number;
  tone: 'warning' | 'critical';
  text: string;
  /** the chart that shows it; empty: all alike */
  chart: string;
}

/** min–max and, inside, p5–p95 of each bucket. */
export interface Band {
  min: Column;
  max: Column;
  p5: Column | null;
  p95: Column | null;
}

const TONE: Record<Mark['tone'], string> = { info: '--mark', warning: '--warn', critical: '--bad' };

/** The colour of a mark in the theme in use. */
export function toneColour(tone: Mark['tone']): string {
  return css(TONE[tone]);
}

/** Keeps painting inside of the plot. */
export function clipped(u: uPlot, paint: (ctx: CanvasRenderingContext2D) => void): void {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  paint(ctx);
  ctx.restore();
}

/** Fills between two columns, run by run: a gap stays empty, and a lone bucket is a bar of its width. */
export function fillBetween(u: uPlot, x: number[], low: Column | null, high: Column, step: number, style: string): void {
  const floor = u.valToPos(0, 'y', true);
  const px = (t: number) => u.valToPos(t, 'x', true);
  const py = (v: number) => u.valToPos(v, 'y', true);
  clipped(u, (ctx) => {
    ctx.fillStyle = style;
    for (const [a, b] of low ? runs(low, high) : runs(high)) {
      ctx.beginPath();
      if (a === b) {
        const w = Math.max(1, px(x[a] + step / 2) - px(x[a] - step / 2));
        const top = py(high[a]!);
        const bottom = low ? py(low[a]!) : floor;
        ctx.rect(px(x[a]) - w / 2, top, w, Math.max(1, bottom - top));
        ctx.fill();
        continue;
      }
      ctx.moveTo(px(x[a]), py(high[a]!));
      for (let i = a + 1; i <= b; i++) ctx.lineTo(px(x[i]), py(high[i]!));
      for (let i = b; i >= a; i--) ctx.lineTo(px(x[i]), low ? py(low[i]!) : floor);
      ctx.closePath();
      ctx.fill();
    }
  });
}

/** Paints a band: the whole spread light, its middle nine tenths darker. */
export function paintBand(u: uPlot, x: number[], band: Band, step: number): void {
  fillBetween(u, x, band.min, band.max, step, css('--band'));
  if (band.p5 && band.p95) fillBetween(u, x, band.p5, band.p95, step, css('--band-mid'));
}

/** Paints layers that were stacked, the highest first so that each covers those above it. */
export function paintStack(u: uPlot, x: number[], tops: Column[], colours: Colour[], step: number): void {
  for (let i = tops.length - 1; i >= 0; i--) {
    fillBetween(u, x, i > 0 ? tops[i - 1] : null, tops[i], step, colour(colours[i]));
  }
}

/** A part of time of which nothing is known. */
export interface Hole {
  from: number;
  to: number;
}

const HATCH_PX = 7;

/** Hatches the parts of time of which nothing is known: that is not the same as nothing there. */
export function paintHoles(u: uPlot, holes: Hole[]): void {
  const s = devicePixelRatio;
  const { bbox } = u;
  clipped(u, (ctx) => {
    ctx.strokeStyle = css('--hatch');
    ctx.lineWidth = s;
    for (const h of holes) {
      const left = Math.max(bbox.left, u.valToPos(h.from, 'x', true));
      const right = Math.min(bbox.left + bbox.width, u.valToPos(h.to, 'x', true));
      if (right - left < 1) continue;
      ctx.save();
      ctx.beginPath();
      ctx.rect(left, bbox.top, right - left, bbox.height);
      ctx.clip();
      ctx.beginPath();
      const { top, height } = bbox;
      // Lines on one grid for all charts: neighbours join.
      const step = HATCH_PX * s;
      for (let x = Math.floor((left - height) / step) * step; x < right; x += step) {
        ctx.moveTo(x, top + height);
        ctx.lineTo(x + height, top);
      }
      ctx.stroke();
      ctx.restore();
    }
  });
}

function vertical(u: uPlot, t: number, style: string, dash: number[]): void {
  const { min, max } = u.scales.x;
  if (min === undefined || max === undefined || min === null || max === null || t < min || t > max) return;
  const x = Math.round(u.valToPos(t, 'x', true)) + 0.5;
  const { ctx, bbox } = u;
  ctx.save();
  ctx.strokeStyle = style;
  ctx.lineWidth = Math.max(1, Math.round(devicePixelRatio));
  ctx.setLineDash(dash);
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}

const RANK: Record<Mark['tone'], number> = { info: 0, warning: 1, critical: 2 };
const NEAR_PX = 5;
// More lines than these would hide the numbers they explain: then pointers on top replace them.
const MANY = 8;

/** Paints what was wrong: a strip at the foot, and in the chart that shows it a shade over all its height. */
export function paintWrong(u: uPlot, wrong: Wrong[], chart: string): void {
  const s = devicePixelRatio;
  const { bbox } = u;
  clipped(u, (ctx) => {
    for (const w of [...wrong].sort((a, b) => RANK[a.tone] - RANK[b.tone])) {
      const left = Math.max(bbox.left, u.valToPos(w.from, 'x', true));
      const right = Number.isFinite(w.to) ? Math.min(bbox.left + bbox.width, u.valToPos(w.to, 'x', true)) : bbox.left + bbox.width;
      if (right < bbox.left || left > bbox.left + bbox.width) continue;
      const width = Math.max(2 * s, right - left);
      ctx.fillStyle = toneColour(w.tone);
      if (w.chart === chart) {
        ctx.globalAlpha = 0.13;
        ctx.fillRect(left, bbox.top, width, bbox.height);
      }
      ctx.globalAlpha = 1;
      ctx.fillRect(left, bbox.top + bbox.height - 3 * s, width, 3 * s);
    }
  });
}

interface Spot {
  t: number;
  tone: Mark['tone'];
}

/** Marks that fall together on the screen become one of the gravest tone. */
export function groupMarks(marks: Mark[], secondsPerPixel: number): Spot[] {
  const out: Spot[] = [];
  for (const m of [...marks].sort((a, b) => a.t - b.t)) {
    const last = out[out.length - 1];
    if (!last || m.t - last.t > NEAR_PX * secondsPerPixel) out.push({ t: m.t, tone: m.tone });
    else if (RANK[m.tone] > RANK[last.tone]) last.tone = m.tone;
  }
  return out;
}

/** Paints the marks: a dashed line and, on top of it, a small pointer to hover. */
export function paintMarks(u: uPlot, marks: Mark[]): void {
  const { min, max } = u.scales.x;
  if (marks.length === 0 || typeof min !== 'number' || typeof max !== 'number') return;
  const s = devicePixelRatio;
  const { ctx, bbox } = u;
  const spots = groupMarks(marks.filter((m) => !m.label && m.t >= min && m.t <= max), ((max - min) / bbox.width) * s);
  for (const m of spots) {
    const style = toneColour(m.tone);
    if (spots.length <= MANY || m.tone === 'critical') vertical(u, m.t, style, [2 * s, 3 * s]);
    const x = u.valToPos(m.t, 'x', true);
    ctx.save();
    ctx.fillStyle = style;
    ctx.beginPath();
    ctx.moveTo(x - 4 * s, bbox.top);
    ctx.lineTo(x + 4 * s, bbox.top);
    ctx.lineTo(x, bbox.top + 6 * s);
    ctx.closePath();
    ctx.fill();
    ctx.restore();
  }
}

/** Paints what people did: a line with its name. */
export function paintLabels(u: uPlot, marks: Mark[]): void {
  const s = devicePixelRatio;
  const { ctx, bbox } = u;
  let free = -Infinity;
  for (const m of marks.filter((k) => k.label).sort((a, b) => a.t - b.t)) {
    vertical(u, m.t, css('--ink-2'), []);
    const x = u.valToPos(m.t, 'x', true) + 4 * s;
    // A name that would cover another is left to the hover.
    if (x < free || x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.save();
    ctx.font = `${10 * s}px system-ui, sans-serif`;
    ctx.fillStyle = css('--ink-2');
    const text = m.label!.length > 24 ? `${m.label!.slice(0, 23)}…` : m.label!;
    const width = ctx.measureText(text).width;
    const over = x + width > bbox.left + bbox.width;
    ctx.textAlign = over ? 'right' : 'left';
    ctx.fillText(text, over ? x - 8 * s : x, bbox.top + 15 * s);
    ctx.restore();
    free = x + width + 6 * s;
  }
}

/** Paints the pinned cursor. */
export function paintPin(u: uPlot, at: number | null): void {
  if (at !== null) vertical(u, at, css('--accent'), []);
}

/** Paints a limit, such as max_connections, if it is within the scale. */
export function paintLimit(u: uPlot, v: number): void {
  const { max } = u.scales.y;
  if (max === undefined || max === null || v > max) return;
  const { ctx, bbox } = u;
  const y = Math.round(u.valToPos(v, 'y', true)) + 0.5;
  ctx.save();
  ctx.strokeStyle = css('--ink-3');
  ctx.lineWidth = Math.max(1, Math.round(devicePixelRatio));
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.restore();
}
