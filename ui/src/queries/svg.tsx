/**
 * A drawing that came as SVG text. It holds names and values from queries, which nobody trusts: it
 * is parsed, and only shapes and text that are on a list are made anew, without scripts, styles or links.
 */
import { h, type VNode } from 'preact';

const ELEMENTS = new Set(['svg', 'g', 'rect', 'line', 'path', 'polyline', 'polygon', 'circle', 'ellipse', 'text', 'tspan', 'title', 'desc', 'defs', 'marker']);
const ATTRIBUTES = new Set((
  'x y x1 y1 x2 y2 cx cy r rx ry dx dy width height viewBox d points transform fill stroke stroke-width stroke-dasharray stroke-linecap opacity fill-opacity ' +
  'font-size font-family font-weight font-style text-anchor dominant-baseline class id role aria-label xml:space marker-end marker-start orient markerWidth markerHeight refX refY'
).split(' '));
const MOST = 20_000;

/** The safe part of an SVG; null when it is none. */
export function safeSvg(text: string): VNode | null {
  const root = new DOMParser().parseFromString(text, 'image/svg+xml').documentElement;
  if (root.nodeName !== 'svg') return null;
  let left = MOST;
  const make = (el: Element): VNode | null => {
    if (!ELEMENTS.has(el.nodeName) || left-- <= 0) return null;
    const props: Record<string, string> = {};
    for (const a of el.attributes) {
      if (ATTRIBUTES.has(a.name) && !/url\s*\(\s*(?!['"]?#)/i.test(a.value)) props[a.name] = a.value;
    }
    const children = [...el.childNodes].map((n) => (n.nodeType === Node.TEXT_NODE ? n.nodeValue : n.nodeType === Node.ELEMENT_NODE ? make(n as Element) : null));
    return h(el.nodeName, props, children);
  };
  return make(root);
}

/** The drawing, in a box that scrolls. */
export function Drawing({ svg }: { svg: string }) {
  const made = safeSvg(svg);
  return made ? <div class="drawing">{made}</div> : <p class="quiet">This drawing cannot be shown.</p>;
}
