/** Benchmarks that are kept. */
import { get, only, request } from './http';

/** A run of risso bench in the list. */
export interface BenchmarkRow {
  id: number;
  began: string;
  ended: string;
  /** empty: the server is not watched */
  instance: string;
  workload: string;
  server: string;
  version: string;
  threads: number;
  /** transactions a second that were asked for; 0: as many as could be */
  rate: number;
  transactions_per_second: number;
  queries_per_second: number;
  p95: number;
  p99: number;
  errors: number;
  /** seconds without any success */
  outage: number;
  interrupted: boolean;
}

/** One second of a run. */
export interface BenchmarkSecond {
  /** since the start of the measured time; below 0: warm-up */
  second: number;
  transactions: number;
  errors?: number;
  p50: number;
  p95: number;
  p99: number;
  max: number;
  backlog?: number;
}

/** How long transactions took, in seconds. */
export interface BenchmarkLatency {
  min: number;
  avg: number;
  max: number;
  percentiles: { percentile: number; seconds: number }[] | null;
}

/** What a run measured: the result of risso bench run. */
export interface BenchmarkResult {
  workload: string;
  parameters?: Record<string, unknown> | null;
  server: string;
  server_version?: string;
  began: string;
  threads: number;
  rate?: number;
  warmup_seconds: number;
  seconds: number;
  interrupted?: boolean;
  transactions: number;
  transactions_per_second: number;
  queries_per_second: number;
  latency: BenchmarkLatency;
  errors?: { label: string; message: string; count: number }[] | null;
  outages?: { from: number; milliseconds: number; errors: boolean }[] | null;
  unfinished?: number;
  backlog?: { max: number; never_started: number } | null;
  ledger?: { acknowledged: number; missing: number; error?: string } | null;
  timeline: BenchmarkSecond[] | null;
  environment?: BenchmarkEnvironment | null;
}

/** Under which conditions a run was made. */
export interface BenchmarkEnvironment {
  client: { hostname?: string; cpu_model?: string; cpus?: number; governor?: string; virtual?: string; kernel?: string; memory_bytes?: number; transparent_huge_pages?: string; load?: Record<string, number>; limits?: BenchmarkLimits };
  server_host?: { limits?: BenchmarkLimits; data?: { file_system: string; options: string; device?: string; scheduler?: string; rotational?: boolean; mount: string } } | null;
  server: { flavour: string; version: string; changed?: { name: string; value: string; source?: string }[] | null; all_variables?: boolean };
  connection: { kind: string; address: string; tls?: string; network?: string };
}

/** What a control group allows. */
export interface BenchmarkLimits {
  slice?: string;
  cpus?: number;
  cpuset?: string;
  memory_bytes?: number;
}

/** A run that is kept. */
export interface Benchmark {
  id: number;
  instance: string;
  /** unix seconds, with the warm-up */
  from: number;
  to: number;
  /** who used the machine of the load driver, in words; empty if that was not watched */
  machine?: string;
  result: BenchmarkResult;
}

/** The runs that are kept, the latest first; of one instance, or all when it is empty. */
export async function fetchBenchmarks(instance: string, signal?: AbortSignal): Promise<BenchmarkRow[]> {
  return (await get<{ benchmarks: BenchmarkRow[] | null }>('/api/benchmarks', only('instance', instance), signal)).benchmarks ?? [];
}

/** One run whole. */
export function fetchBenchmark(id: string, signal?: AbortSignal): Promise<Benchmark> {
  return get('/api/benchmark', [['id', id]], signal);
}

/** Forgets a run. */
export function removeBenchmark(id: number): Promise<unknown> {
  return request<unknown>(`/api/benchmark?id=${id}`, { method: 'DELETE' });
}
