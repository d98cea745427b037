/** The topology as a drawing: the server places it, this paints it. */
import type { Health, Picture, TopologyLink, TopologyNode } from '../api';
import { go } from '../common/router';
import { HOME, formatView } from '../common/view';
import { fit, nodeLabel, nodeLines } from './words';

// The shapes of StateMark, so that a state is readable without its colour.
const MARKS: Record<Health, string> = {
  ok: 'M6 3a3 3 0 1 1 0 6a3 3 0 1 1 0-6z', warning: 'M6 1.2 11.4 11H.6z', critical: 'M6 .5 11.5 6 6 11.5.5 6z',
  unknown: 'M6 2a4 4 0 1 1 0 8a4 4 0 1 1 0-8zM6 4a2 2 0 1 0 0 4a2 2 0 1 0 0-4z',
};
const WORST_LAST: Health[] = ['unknown', 'ok', 'warning', 'critical'];
const NAME_CHAR = 7;
const TEXT_CHAR = 6.3;

function Line({ p, l }: { p: Picture; l: TopologyLink }) {
  const runs = l.kind === 'runs' || l.kind === 'late';
  return (
    <path class={`t-edge ${l.state}${runs ? '' : ' dashed'}`} d={l.path} marker-end={`url(#t-tip-${l.state})`} data-link={`${p.nodes[l.source].name} ${p.nodes[l.replica].name}`} data-kind={l.kind}>
      <title>{`${p.nodes[l.source].name} → ${p.nodes[l.replica].name}${l.channel ? `, channel ${l.channel}` : ''}: ${l.words}`}</title>
    </path>
  );
}

function Place({ p, i, chosen, onChoose }: { p: Picture; i: number; chosen: boolean; onChoose: (id: string) => void }) {
  const n: TopologyNode = p.nodes[i];
  const label = nodeLabel(p, i);
  const inside = <><title>{label}</title><rect width={n.width} height={n.height} rx="5" /></>;
  const cls = `t-node ${n.state}${n.seen ? '' : ' unseen-node'}${chosen ? ' chosen' : ''}`;
  const key = (e: KeyboardEvent): void => {
    if (e.key !== 'Enter' && e.key !== ' ') return;
    e.preventDefault();
    onChoose(n.id);
  };
  // What is written over it is cut to its place: its name says all.
  return (
    <g transform={`translate(${n.x} ${n.y})`}>
      {n.instance
        ? <a class={cls} href={formatView({ ...HOME, page: 'server', id: n.instance })} onClick={(e) => follow(e, n.instance!)} aria-label={label} data-node={n.name} data-state={n.state}>{inside}</a>
        // One that is not watched has no page: its button shows what is known of it.
        : <g class={cls} role="button" tabindex={0} aria-label={label} aria-pressed={chosen} data-node={n.name} data-state={n.state} onClick={() => onChoose(n.id)} onKeyDown={key}>{inside}</g>}
      <g class={`t-words ${n.state}`} aria-hidden="true">
        <path class="t-mark" fill-rule="evenodd" d={MARKS[n.state]} transform={`translate(8 ${Math.min(n.height / 2 - 6, 6)})`} />
        <text class="t-name" x="25" y="17">{fit(n.name, n.width - 30, NAME_CHAR)}</text>
        {nodeLines(n).map((t, k) => <text key={k} x="8" y={34 + 17 * k}>{fit(t, n.width - 14, TEXT_CHAR)}</text>)}
      </g>
    </g>
  );
}

// The page's router knows links of HTML only.
function follow(e: MouseEvent, id: string): void {
  if (e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  e.preventDefault();
  go({ ...HOME, page: 'server', id });
}

// Arrows go from one server to the next in the list, as in other lists.
function onArrow(e: KeyboardEvent): void {
  if (!['ArrowDown', 'ArrowRight', 'ArrowUp', 'ArrowLeft'].includes(e.key)) return;
  const all = [...(e.currentTarget as Element).querySelectorAll<SVGElement>('.t-node')];
  const i = all.indexOf(document.activeElement as unknown as SVGElement);
  const next = i < 0 ? undefined : all[i + (e.key === 'ArrowDown' || e.key === 'ArrowRight' ? 1 : -1)];
  if (!next) return;
  e.preventDefault();
  e.stopPropagation();
  next.focus();
}

/** The drawing. Its servers can be reached by the keyboard in the order in which it shows them. */
export function Drawing({ p, chosen, onChoose }: { p: Picture; chosen: string; onChoose: (id: string) => void }) {
  const order = p.nodes.map((_, i) => i).sort((a, b) => p.nodes[a].y - p.nodes[b].y || p.nodes[a].x - p.nodes[b].x);
  return (
    <div class="t-scroll">
      <svg class="t-drawing" viewBox={`0 0 ${p.width} ${p.height}`} width={p.width} height={p.height} role="group" aria-label="Drawing of who replicates from whom" onKeyDown={onArrow}>
        <defs>
          {WORST_LAST.map((s) => <marker key={s} id={`t-tip-${s}`} class={`t-tip ${s}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" /></marker>)}
        </defs>
        {p.boxes.map((b) => (
          <g key={b.cluster} class={`t-box ${b.state}`} data-cluster={b.cluster}>
            <rect x={b.x} y={b.y} width={b.width} height={b.height} rx="8" />
            <text x={b.x + 12} y={b.y + 17}>{fit(b.words, b.width - 24, TEXT_CHAR)}</text>
          </g>
        ))}
        {WORST_LAST.map((s) => p.links.filter((l) => l.state === s).map((l) => <Line key={`${l.source} ${l.replica} ${l.channel ?? ''}`} p={p} l={l} />))}
        {order.map((i) => <Place key={p.nodes[i].id} p={p} i={i} chosen={p.nodes[i].id === chosen} onChoose={onChoose} />)}
      </svg>
    </div>
  );
}
