/** The order of the fleet table: what needs attention comes first. */
import type { Instance, State } from '../api';

const RANK: Record<State, number> = { down: 0, critical: 1, warning: 2, new: 3, ok: 4 };
const ROLE: Record<string, number> = { primary: 0, galera: 1, standalone: 2, replica: 3 };

/** How urgent a state is: the smaller, the sooner. */
export function urgency(state: State): number {
  return RANK[state] ?? 5;
}

/** Worst first; at the same urgency servers before hosts, a primary before its replicas, then by name. */
export function worstFirst(a: Instance, b: Instance): number {
  return (
    urgency(a.state) - urgency(b.state) ||
    Number(a.kind === 'host') - Number(b.kind === 'host') ||
    (ROLE[a.role ?? ''] ?? 4) - (ROLE[b.role ?? ''] ?? 4) ||
    byName(a, b)
  );
}

function byName(a: Instance, b: Instance): number {
  return a.name.localeCompare(b.name, 'en', { numeric: true });
}

/** Columns of the fleet table that sort. */
export const COLUMNS = ['name', 'qps', 'threads', 'lag', 'cpu', 'version', 'role'] as const;

/** Sorts a copy by a column of the table, "-" before it for descending; anything else is worst first. */
export function sortInstances(list: Instance[], sort: string): Instance[] {
  const down = sort.startsWith('-');
  const column = down ? sort.slice(1) : sort;
  const number: Record<string, (i: Instance) => number | null> = {
    qps: (i) => i.qps, threads: (i) => i.threads_running, lag: (i) => i.lag, cpu: (i) => i.cpu,
  };
  const text: Record<string, (i: Instance) => string> = {
    name: (i) => i.name, version: (i) => `${i.flavour ?? ''} ${i.version ?? ''}`, role: (i) => i.role ?? '',
  };
  const sign = down ? -1 : 1;
  if (column in number) {
    const get = number[column];
    return [...list].sort((a, b) => {
      const [x, y] = [get(a), get(b)];
      if (x === null || y === null) return Number(x === null) - Number(y === null) || byName(a, b);
      return sign * (x - y) || byName(a, b);
    });
  }
  if (column in text) {
    const get = text[column];
    return [...list].sort((a, b) => sign * get(a).localeCompare(get(b), 'en', { numeric: true }) || byName(a, b));
  }
  return [...list].sort(worstFirst);
}
