/** The page /benchmarks/N: a run on the server's clock; with ?beside=M two of them side by side. */
import { useEffect, useMemo } from 'preact/hooks';
import { fetchBenchmark, fetchBenchmarks, mayAct, NO_ACT, removeBenchmark, serverNow, type Benchmark as Kept, type BenchmarkResult, type BenchmarkRow } from '../api';
import { Chart } from '../chart/Chart';
import { currentDesk } from '../common/desk';
import { count, counted, exact, human, ratio, thousands, when, unix } from '../common/format';
import { Moment } from '../common/parts';
import { fixed } from '../common/range';
import { go, view } from '../common/router';
import { catalogues, instanceOf, loadCatalogue } from '../common/store';
import { themeChanges } from '../common/theme';
import { HOME, formatView } from '../common/view';
import { useAsked } from './ask';
import { ownCharts, serverCharts } from './charts';
import { RunDesk, spanOf } from './desk';
import { facts, tell, versus } from './words';

const LIST = formatView({ ...HOME, page: 'benchmarks' });

/** The desks of the runs on the page, for as long as it shows them. */
function useDesks(runs: Kept[]): RunDesk[] {
  const { range, at } = view.value;
  const key = runs.map((r) => r.id).join();
  const spans = useMemo(() => {
    // Side by side both begin at the same place and are as long.
    const own = runs.map(spanOf);
    const length = Math.max(0, ...own.map((s) => s.to - s.from));
    return own.map((s) => ({ from: s.from, to: s.from + length }));
  }, [key]);
  const desks = useMemo(() => runs.map((r, i) => new RunDesk(r, spans[i], runs.length > 1)), [key]);
  useEffect(() => {
    currentDesk.value = desks[0] ?? null;
    return () => {
      for (const d of desks) d.close();
      if (currentDesk.value === desks[0]) currentDesk.value = null;
    };
  }, [desks]);
  useEffect(() => {
    if (desks.length !== 1) return;
    const span = range.live ? spans[0] : { from: range.from, to: range.to };
    desks[0].show(fixed(span.from, span.to), span);
  }, [desks, range]);
  useEffect(() => desks.forEach((d) => d.changed('marks')), [desks, at]);
  useEffect(() => desks.forEach((d) => d.changed('theme')), [desks, themeChanges.value]);
  return desks;
}

const hostOf = (id: string): string => instanceOf(id)?.host_id ?? '';

/** The series of the servers that the runs were made on. */
function useCatalogues(runs: Kept[]): void {
  const ids = [...new Set(runs.flatMap((r) => [r.instance, hostOf(r.instance)]).filter(Boolean))].join('\n');
  useEffect(() => {
    for (const id of ids.split('\n').filter(Boolean)) loadCatalogue(id, 60).catch(() => undefined);
  }, [ids]);
}

function About({ run, letter }: { run: Kept; letter: string }) {
  const r = run.result;
  const at = { ...HOME, page: 'server' as const, id: run.instance, range: fixed(spanOf(run).from, spanOf(run).to) };
  return (
    <div class="about-run">
      <div class="title-line">
        <h1>{letter && <b class="letter">{letter}</b>}{r.workload}</h1>
        <p class="facts">
          <span>{run.instance ? <a href={formatView(at)}>{instanceOf(run.instance)?.name ?? run.instance} during the run</a> : `${r.server}, which is not watched`}</span>
          <span>{counted(r.threads, 'thread')}</span>
          <span><Moment t={run.from} now={serverNow()} /></span>
          <span><a href={`/api/benchmark?id=${run.id}`} target="_blank" rel="noopener">JSON</a></span>
        </p>
      </div>
      <p class="sentence" data-sentence>{tell(r)}</p>
      {run.machine && <p class={run.machine.startsWith('DISTURBED') ? '' : 'quiet'} data-machine>machine: {run.machine}</p>}
    </div>
  );
}

function name(b: BenchmarkRow): string {
  const where = b.instance ? (instanceOf(b.instance)?.name ?? b.instance) : b.server;
  return `${when(unix(b.began), serverNow())}: ${b.workload} on ${where}, ${counted(b.threads, 'thread')}, ${human(b.transactions_per_second, '/s')}`;
}

/** Chooses the run to show next to this one. */
function Beside({ run }: { run: Kept }) {
  const { data } = useAsked(`beside ${run.id}`, (s) => fetchBenchmarks('', s));
  const others = (data ?? []).filter((b) => b.id !== run.id);
  // Those of the same workload are mostly what one wants to see next to it.
  others.sort((a, b) => Number(b.workload === run.result.workload) - Number(a.workload === run.result.workload));
  if (others.length === 0 && !view.value.beside) return null;
  return (
    <label class="beside">beside it{' '}
      <select value={view.value.beside} onChange={(e) => go({ beside: e.currentTarget.value, range: HOME.range, at: null })}>
        <option value="">no other run</option>
        {others.slice(0, 200).map((b) => <option key={b.id} value={String(b.id)}>{name(b)}</option>)}
      </select>
    </label>
  );
}

function Figures({ runs }: { runs: Kept[] }) {
  const percentiles = [...new Set(runs.flatMap((r) => (r.result.latency.percentiles ?? []).map((p) => p.percentile)))].sort((a, b) => a - b);
  const lines: [string, (r: BenchmarkResult) => number | null, '/s' | 's' | ''][] = [
    ['transactions', (r) => r.transactions_per_second, '/s'], ['queries', (r) => r.queries_per_second, '/s'], ['average', (r) => r.latency.avg, 's'],
    ...percentiles.map((p): [string, (r: BenchmarkResult) => number | null, 's'] => [`p${p}`, (r) => r.latency.percentiles?.find((x) => x.percentile === p)?.seconds ?? null, 's']),
    ['slowest', (r) => r.latency.max, 's'],
    ['errors', (r) => (r.errors ?? []).reduce((n, e) => n + e.count, 0), ''],
  ];
  const two = runs.length === 2;
  return (
    <section aria-labelledby="figures">
      <h2 id="figures">Figures</h2>
      <table class="list figures">
        {two && <thead><tr><th /><th class="num">A</th><th class="num">B</th><th class="num">B / A</th></tr></thead>}
        <tbody>
          {lines.map(([label, of, unit]) => {
            const v = runs.map((r) => of(r.result));
            return (
              <tr key={label}>
                <td>{label}</td>
                {v.map((x, i) => <td key={i} class="num" title={exact(x, unit)}>{unit === 's' ? human(x, unit) : count(x) + unit}</td>)}
                {two && <td class="num quiet">{v[0] && v[1] !== null ? ratio(v[1] / v[0]) : '–'}</td>}
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

function Trouble({ runs }: { runs: Kept[] }) {
  const errors = runs.flatMap((run, i) => (run.result.errors ?? []).map((e) => ({ ...e, letter: 'AB'[i] })));
  if (errors.length === 0) return null;
  return (
    <section aria-labelledby="errors">
      <h2 id="errors">Errors</h2>
      <table class="list">
        <tbody>{errors.map((e) => <tr key={e.letter + e.label}>{runs.length > 1 && <td>{e.letter}</td>}<td>{e.label}</td><td class="num">{thousands(e.count)}</td><td>{e.message}</td></tr>)}</tbody>
      </table>
    </section>
  );
}

// Names and places of a server differ between any two and make none faster.
const PLACES = /dir$|directory$|_path$|_file$|socket$|port$|^report_|^server_(id|uuid)$|^log_error$|^hostname$|^secure_file_priv$|^bind_address$/;

/** Facts side by side; those that differ are marked. */
function Environments({ runs }: { runs: Kept[] }) {
  const lists = runs.map((r) => (r.result.environment ? new Map(facts(r.result.environment)) : new Map<string, string>()));
  const names = [...new Set(lists.flatMap((l) => [...l.keys()]))];
  const sets = runs.map((r) => new Map((r.result.environment?.server.changed ?? []).map((v) => [v.name, v.value])));
  const all = runs.some((r) => r.result.environment?.server.all_variables);
  const variables = [...new Set(sets.flatMap((s) => [...s.keys()]))].filter((n) => !PLACES.test(n)).sort();
  const differs = (v: (string | undefined)[]): boolean => v.length > 1 && v[0] !== v[1];
  const line = (key: string, values: (string | undefined)[], none: string) => (
    <tr key={key} class={differs(values) ? 'differs' : ''}><td>{key}</td>{values.map((v, i) => <td key={i} class="c-value">{v ?? <span class="quiet">{none}</span>}</td>)}</tr>
  );
  const head = runs.length > 1 && <thead><tr><th /><th>A</th><th>B</th></tr></thead>;
  if (names.length === 0) return <p class="quiet">The environment was not recorded.</p>;
  return (
    <section aria-labelledby="environment">
      <h2 id="environment">Environment</h2>
      <table class="list environment">{head}<tbody>{names.map((n) => line(n, lists.map((l) => l.get(n)), '–'))}</tbody></table>
      {variables.length > 0 && (
        <details open={runs.length > 1 && variables.length < 60}>
          <summary class="quiet">{all ? 'all variables (one of the servers does not tell which were changed)' : 'changed variables'}: {variables.length}</summary>
          <table class="list environment">{head}<tbody>{variables.map((n) => line(n, sets.map((s) => s.get(n)), 'the default'))}</tbody></table>
        </details>
      )}
    </section>
  );
}

function Remove({ run }: { run: Kept }) {
  const remove = (): void => {
    if (confirm('Delete this benchmark? The server’s own metrics are kept.')) removeBenchmark(run.id).then(() => go({ ...HOME, page: 'benchmarks' }), (e) => alert(String(e)));
  };
  return <p class="pad"><button disabled={!mayAct.value} title={mayAct.value ? undefined : NO_ACT} onClick={remove}>Delete this benchmark</button></p>;
}

function Runs({ runs }: { runs: Kept[] }) {
  const desks = useDesks(runs);
  useCatalogues(runs);
  const known = catalogues.value;
  const two = runs.length > 1;
  const own = useMemo(() => desks.map((d) => ownCharts(d, desks)), [desks]);
  const server = useMemo(() => desks.map((d, i) => (runs[i].instance ? serverCharts(d, runs[i].instance, known[runs[i].instance], hostOf(runs[i].instance), known[hostOf(runs[i].instance)]) : [])), [desks, known]);
  // Side by side a chart is in the same row for both.
  const rows = (lists: typeof own): typeof own => (two ? [...new Set(lists.flat().map((m) => m.id))].map((id) => lists.map((l) => l.find((m) => m.id === id)!)) : lists.map((l) => l));
  const grid = (lists: typeof own) => (
    <div class={two ? 'grid pair' : 'grid'}>
      {rows(lists).map((row) => row.map((m, i) => (m ? <Chart key={`${two ? i : ''}${m.id}`} model={m} desk={desks[two ? i : 0]} /> : <div key={`none${i}`} class="quiet">{' '}</div>)))}
    </div>
  );
  const unwatched = runs.filter((r) => !r.instance);
  return (
    <>
      <p class="crumb"><a href={LIST}>← all benchmarks</a></p>
      <header class={`page-head ${two ? 'pair' : ''}`}>{runs.map((r, i) => <About key={r.id} run={r} letter={two ? 'AB'[i] : ''} />)}</header>
      {two && <p class="sentence" data-versus>{versus(runs[0].result, runs[1].result)}</p>}
      <Beside run={runs[0]} />
      <section aria-labelledby="run"><h2 id="run">The benchmark</h2>{grid(own)}</section>
      <section aria-labelledby="server">
        <h2 id="server">The server during the run</h2>
        {unwatched.length > 0 && <p class="quiet">Risso does not watch {unwatched.map((r) => r.result.server).join(' and ')}.</p>}
        {grid(server)}
      </section>
      <Figures runs={runs} />
      <Trouble runs={runs} />
      <Environments runs={runs} />
      {!two && <Remove run={runs[0]} />}
    </>
  );
}

/** The page. */
export function Benchmark() {
  const { cls, beside } = view.value;
  const a = useAsked(cls, (s) => fetchBenchmark(cls, s));
  const b = useAsked(beside, (s) => fetchBenchmark(beside, s));
  const error = a.error ?? b.error;
  const runs = a.data && (beside === '' || b.data) ? [a.data, b.data].filter((r) => r !== null) : [];
  return (
    <main class="benchmark">
      {error && <p class="sentence">{error.status === 404 || error.status === 400 ? <>There is no benchmark {a.error ? cls : beside}.</> : error.message} <a href={LIST}>All benchmarks</a></p>}
      {!error && runs.length > 0 && <Runs runs={runs} />}
    </main>
  );
}
