/** The charts of one class's page. */
import type { Query } from '../api';
import type { ChartModel, Line } from '../chart/Chart';
import type { Feed } from '../chart/feed';
import type { Unit } from '../common/format';

interface Def {
  id: string;
  title: string;
  unit: Unit;
  lines: Line[];
  explain: string;
  /** shown only if some value is larger; otherwise always */
  above?: number;
}

const SOURCE = 'the server’s statement digests, by the minute';

const DEFS: Def[] = [
  { id: 'q-load', title: 'Load', unit: 's/s', lines: [{ label: 'load', expr: 'load', colour: 'line' }], explain: 'Seconds of execution per second: 1 s/s is one statement of this class running at any moment.' },
  { id: 'q-calls', title: 'Calls', unit: '/s', lines: [{ label: 'calls', expr: 'calls_per_second', colour: 'line' }], explain: 'How often it is run.' },
  {
    id: 'q-latency', title: 'Latency', unit: 's',
    lines: [{ label: 'average', expr: 'avg', colour: 'line' }, { label: 'median', expr: 'p50', colour: 'teal' }, { label: 'p95', expr: 'p95', colour: 'blue' }, { label: 'p99', expr: 'p99', colour: 'violet' }],
    explain: 'How long a call takes. The quantiles are at most 4.7 % too high, and known while the class is among the heaviest.',
  },
  {
    id: 'q-rows', title: 'Rows', unit: '/s',
    lines: [{ label: 'examined', expr: 'rows_examined', colour: 'blue' }, { label: 'sent', expr: 'rows_sent', colour: 'teal' }, { label: 'changed', expr: 'rows_affected', colour: 'violet' }],
    explain: 'Rows read, sent to the client, and changed.',
  },
  { id: 'q-ratio', title: 'Rows examined per row sent', unit: '', lines: [{ label: 'ratio', expr: 'rows_examined_per_sent', colour: 'line' }], explain: 'Near 1 is ideal, except for queries that count or sum rows; if it jumps, look at the plan.', above: 0 },
  { id: 'q-lock', title: 'Waiting for locks', unit: 's/s', lines: [{ label: 'lock', expr: 'lock', colour: 'line' }], explain: 'Seconds of waiting per second, as the server counts lock time: table and metadata locks, with row locks from MySQL 8.0.28 on.', above: 1e-4 },
  {
    id: 'q-trouble', title: 'Errors and temporary tables on disk', unit: '/s',
    lines: [{ label: 'errors', expr: 'errors', colour: 'mauve' }, { label: 'temporary tables on disk', expr: 'tmp_disk_tables', colour: 'brown' }], explain: 'Calls that failed, and temporary tables that did not fit into memory.', above: 0,
  },
  { id: 'q-max', title: 'Slowest call', unit: 's', lines: [{ label: 'slowest', expr: 'max', colour: 'line' }], explain: 'The longest call of each minute, if the server reports it.', above: 0 },
];

/** The charts that have something to show. */
export function chartsOf(q: Query, feed: Feed): ChartModel[] {
  const some = (key: string, above = 0): boolean => (q.series[key] ?? []).some((v) => v !== null && v > above);
  const keys = (d: Def): string[] => d.lines.map((l) => l.expr as string);
  return DEFS.filter((d) => d.above === undefined || keys(d).some((k) => some(k, d.above))).map((d) => {
    // A line that is not known at all only costs room in the legend.
    const lines = d.lines.filter((l, i) => i === 0 || some(l.expr as string));
    return { id: d.id, title: d.title, unit: d.unit, lines, stacked: false, explain: d.explain, source: SOURCE, feed };
  });
}
