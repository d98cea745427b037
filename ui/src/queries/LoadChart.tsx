/** The load over time, a layer for each of the heaviest classes; its colours are those of the list's bars. */
import { useEffect, useMemo } from 'preact/hooks';
import type { Queries, QueryRow } from '../api';
import { Chart, type ChartModel } from '../chart/Chart';
import type { Colour } from '../chart/palette';
import { type GivenDesk, useDesk } from './desk';
import { OTHERS, loadSeries } from './list';
import type { Known } from './covered';
import { Holes } from './parts';
import { nameOf } from './sql';

function modelOf(rows: QueryRow[], tinted: Map<string, Colour>, desk: GivenDesk): ChartModel {
  const top = rows.filter((r) => tinted.has(r.id)).sort((a, b) => b.seconds - a.seconds);
  const others = rows.length - top.length;
  const names = new Map<string, number>();
  // Two classes may have the same name; a legend needs names that differ.
  const label = (r: QueryRow): string => {
    const name = nameOf(r.fingerprint, r.verb, r.tables);
    const n = (names.get(name) ?? 0) + 1;
    names.set(name, n);
    return n > 1 ? `${name} (${n})` : name;
  };
  return {
    id: 'query-load', title: 'Load by class', unit: 's/s', stacked: true,
    lines: [
      ...top.map((r) => ({ label: label(r), expr: r.id, colour: tinted.get(r.id)! })),
      ...(others > 0 ? [{ label: others === 1 ? 'one other' : `${others} others`, expr: OTHERS, colour: 'pale' as const }] : []),
    ],
    explain: 'Seconds of execution per second: 1 s/s is one statement running at any moment. Drag to see what ran in a part of it.',
    source: 'the statements listed below', feed: desk.feed,
  };
}

interface Props {
  data: Queries;
  rows: QueryRow[];
  tinted: Map<string, Colour>;
  points: Known;
}

/** The chart above the list. */
export function LoadChart({ data, rows, tinted, points }: Props) {
  const desk = useDesk();
  // The chart's frame is redrawn only when other classes lead.
  const key = [...rows].filter((r) => tinted.has(r.id)).sort((a, b) => b.seconds - a.seconds).map((r) => r.id + tinted.get(r.id)).join() + (rows.length - tinted.size);
  const model = useMemo(() => modelOf(rows, tinted, desk), [key]);
  useEffect(() => desk.show(loadSeries(data, rows, tinted, points), data, points.holes), [data, tinted, points]);
  return <div class="wide"><h2 class="unseen">Load</h2><Chart model={model} desk={desk} /><Holes list={points.holes} first={data.first} /></div>;
}
