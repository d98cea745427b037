/** Sentences about benchmarks. */
import type { BenchmarkEnvironment, BenchmarkLatency, BenchmarkLimits, BenchmarkResult } from '../api';
import { count, counted, human, ratio, three } from '../common/format';

/** A percentile of a run; null if it has none. */
export function at(l: BenchmarkLatency, percentile: number): number | null {
  return l.percentiles?.find((p) => p.percentile === percentile)?.seconds ?? null;
}

/** What a run found, in a sentence or some. */
export function tell(r: BenchmarkResult): string {
  const out: string[] = [];
  const rate = r.rate ? ` of ${count(r.rate)}/s requested` : '';
  let first = `${count(r.transactions_per_second)} transactions/s${rate} over ${human(r.seconds, 's')}`;
  const [p50, p99] = [at(r.latency, 50), at(r.latency, 99)];
  // If nothing ended it is unknown how long it takes.
  if (p50 !== null && p99 !== null && r.latency.max > 0) first += `; half within ${human(p50, 's')}, 99 of 100 within ${human(p99, 's')}, the slowest ${human(r.latency.max, 's')}`;
  out.push(first);
  const failed = (r.errors ?? []).reduce((n, e) => n + e.count, 0);
  if (failed > 0) out.push(counted(failed, 'error'));
  const silent = (r.outages ?? []).reduce((n, o) => n + o.milliseconds, 0);
  if (silent > 0) out.push(`nothing succeeded for ${human(silent / 1000, 's')}`);
  if (r.unfinished) out.push(`${counted(r.unfinished, 'transaction was', 'transactions were')} abandoned at the end`);
  if (r.backlog?.never_started) out.push(`${counted(r.backlog.never_started, 'transaction')} never began`);
  if (r.ledger && !r.ledger.error) out.push(r.ledger.missing > 0 ? `${counted(r.ledger.missing, 'acknowledged write')} lost` : 'no acknowledged write lost');
  if (r.ledger?.error) out.push('whether acknowledged writes were lost is not known, because the ledger could not be read');
  if (r.interrupted) out.push('ended early');
  return `${out.join('; ')}.`;
}

/** How a second run compares with the first. One run each: this is pointed out. */
export function versus(a: BenchmarkResult, b: BenchmarkResult): string {
  if (a.workload !== b.workload) return `They did different work, ${a.workload} and ${b.workload}: their transactions are not comparable.`;
  const [x, y] = [a.transactions_per_second, b.transactions_per_second];
  if (!(x > 0) || !(y > 0)) return 'One of the two did nothing.';
  const p = [at(a.latency, 99), at(b.latency, 99)];
  const tail = p[0] && p[1] ? `, at ${ratio(p[1] / p[0])} times the p99` : '';
  return `B did ${ratio(y / x)} times the transactions of A${tail}. One run each says nothing about chance: risso bench compare repeats both and tests the difference.`;
}

function limits(l: BenchmarkLimits | undefined): string {
  if (!l) return '';
  return [l.slice, l.cpus ? `${counted(l.cpus, 'core')} at most` : '', l.cpuset ? `CPUs ${l.cpuset}` : '', l.memory_bytes ? `${human(l.memory_bytes, 'B')} of memory at most` : ''].filter(Boolean).join(', ');
}

/** An environment as lines: what, and what it was. */
export function facts(e: BenchmarkEnvironment): [string, string][] {
  const c = e.client;
  const d = e.server_host?.data;
  const list: [string, string][] = [
    ['server', `${e.server.flavour} ${e.server.version}`],
    ['connection', [e.connection.kind, e.connection.tls && `TLS ${e.connection.tls}`, e.connection.network].filter(Boolean).join(', ')],
    ['CPU', [c.cpu_model, c.cpus ? counted(c.cpus, 'core') : '', c.governor].filter(Boolean).join(', ')],
    ['memory', [c.memory_bytes ? human(c.memory_bytes, 'B') : '', c.transparent_huge_pages ? `huge pages: ${c.transparent_huge_pages}` : ''].filter(Boolean).join(', ')],
    ['machine', [c.hostname, c.virtual].filter(Boolean).join(', ')],
    ['kernel', c.kernel ?? ''],
    ['load before', c.load ? Object.values(c.load).map(three).join(' ') : ''],
    ['driver may use', limits(c.limits)],
    ['server may use', limits(e.server_host?.limits)],
    ['data on', d ? [d.file_system, d.device, d.scheduler, d.rotational ? 'rotational' : '', d.options].filter(Boolean).join(', ') : ''],
  ];
  return list.filter(([, v]) => v !== '');
}
