/** The charts of a run: its own, and the server's of the same seconds. */
import type { ChartModel } from '../chart/Chart';
import { CHARTS } from '../server/charts';
import { build, type Catalogue } from '../server/define';
import type { RunDesk } from './desk';
import { topOf } from './timeline';

const SOURCE = 'risso bench run, second by second';

/** Charts of the server page that show why a run went as it did. */
const SERVER = ['throughput', 'threads_running', 'waits', 'row_locks', 'row_lock_time', 'redo', 'log_flush', 'process_cpu', 'cpu', 'psi', 'disk_write_latency', 'flush_latency', 'disk_iops', 'disk_throughput', 'buffer_pool_reads'];

/** A run's own charts; all desks on the page share the scales. */
export function ownCharts(desk: RunDesk, all: RunDesk[]): ChartModel[] {
  const data = all.map((d) => d.data);
  const top = (...keys: string[]): number | undefined => (all.length > 1 ? topOf(data, keys) * 1.05 || undefined : undefined);
  const out: ChartModel[] = [
    { id: 'b-transactions', title: 'Transactions', unit: '/s', stacked: false, lines: [{ label: 'transactions', expr: 'transactions', colour: 'line' }], top: top('transactions'), explain: 'Transactions that succeeded in each second, as the benchmark counted them.', source: SOURCE, feed: desk.own },
    {
      id: 'b-latency', title: 'Latency', unit: 's', stacked: false, top: top('p50', 'p95', 'p99'),
      lines: [{ label: 'median', expr: 'p50', colour: 'teal' }, { label: 'p95', expr: 'p95', colour: 'blue' }, { label: 'p99', expr: 'p99', colour: 'violet' }],
      explain: 'How long transactions took that ended in each second. At a given rate it counts from the time at which a transaction was due.', source: SOURCE, feed: desk.own,
    },
    { id: 'b-max', title: 'Slowest transaction', unit: 's', stacked: false, lines: [{ label: 'slowest', expr: 'max', colour: 'line' }], top: top('max'), explain: 'The slowest transaction that ended in each second.', source: SOURCE, feed: desk.own },
  ];
  if (topOf(data, ['errors']) > 0) out.push({ id: 'b-errors', title: 'Errors', unit: '/s', stacked: false, lines: [{ label: 'errors', expr: 'errors', colour: 'line' }], top: top('errors'), explain: 'Transactions that failed, and connections that were lost.', source: SOURCE, feed: desk.own });
  if (topOf(data, ['backlog']) > 0) out.push({ id: 'b-backlog', title: 'Waiting to begin', unit: '', stacked: false, lines: [{ label: 'backlog', expr: 'backlog', colour: 'line' }], top: top('backlog'), explain: 'Transactions that were due and had to wait for a free session.', source: SOURCE, feed: desk.own });
  return out.map((m) => ({ ...m, past: true }));
}

/** The server's charts, of those series that it has. */
export function serverCharts(desk: RunDesk, id: string, own: Catalogue | undefined, hostID: string, host: Catalogue | undefined): ChartModel[] {
  const out: ChartModel[] = [];
  for (const name of SERVER) {
    const def = CHARTS.find((c) => c.id === name);
    const catalogue = def?.of === 'host' ? host : own;
    const model = def && catalogue ? build(def, catalogue, desk.feed(def.of === 'host' ? hostID : id)) : null;
    if (model) out.push(model);
  }
  return out;
}
