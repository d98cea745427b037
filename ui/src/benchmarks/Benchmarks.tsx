/** The pages /benchmarks and /server/ID/benchmarks: the runs that are kept. */
import { fetchBenchmarks, serverNow, type BenchmarkRow } from '../api';
import { count, exact, human, shortVersion, thousands, unix } from '../common/format';
import { Moment, Remedy } from '../common/parts';
import { go, view } from '../common/router';
import { instanceOf } from '../common/store';
import { HOME, formatView } from '../common/view';
import { Header } from '../server/Header';
import { useDetail } from '../server/Server';
import { useAsked } from './ask';

function ServerHead({ id }: { id: string }) {
  const detail = useDetail(id);
  return <Header id={id} detail={detail} onChart={() => go({ page: 'server' })} />;
}

const link = (b: BenchmarkRow): string => formatView({ ...HOME, page: 'benchmark', cls: String(b.id) });

function Row({ b, many }: { b: BenchmarkRow; many: boolean }) {
  const open = (e: MouseEvent): void => {
    if (!(e.target as Element).closest('a')) go({ ...HOME, page: 'benchmark', cls: String(b.id) });
  };
  return (
    <tr class="row" onClick={open} data-benchmark={b.id}>
      <td><a href={link(b)}><Moment t={unix(b.began)} now={serverNow()} /></a></td>
      <td><a class="link" href={link(b)}>{b.workload}</a>{b.interrupted && <span class="quiet"> ended early</span>}</td>
      {many && <td>{b.instance ? (instanceOf(b.instance)?.name ?? b.instance) : <span class="quiet" title="Risso does not watch this server">{b.server}</span>}</td>}
      <td>{shortVersion(b.version)}</td>
      <td class="num">{b.threads}</td>
      <td class="num">{b.rate > 0 ? `${count(b.rate)}/s` : <span class="quiet">full</span>}</td>
      <td class="num" title={exact(b.transactions_per_second, '/s')}><b>{count(b.transactions_per_second)}/s</b></td>
      <td class="num" title={exact(b.p95, 's')}>{human(b.p95, 's')}</td>
      <td class="num" title={exact(b.p99, 's')}>{human(b.p99, 's')}</td>
      <td class={`num ${b.errors > 0 ? 'bad' : 'quiet'}`}>{thousands(b.errors)}</td>
      <td class={`num ${b.outage > 0 ? 'bad' : 'quiet'}`}>{human(b.outage, 's')}</td>
    </tr>
  );
}

/** The page. */
export function Benchmarks() {
  const { id } = view.value;
  const { data, error } = useAsked(`list ${id}`, (s) => fetchBenchmarks(id, s));
  return (
    <main class="benchmarks">
      {id ? <ServerHead id={id} /> : <header class="page-head"><div class="title-line"><h1>Benchmarks</h1></div></header>}
      {error && !data && <p class="failed">{error.message}</p>}
      {data?.length === 0 && <p class="sentence">No benchmarks yet. This runs one and keeps it here: <Remedy text="risso bench run point_select --dsn … --record" /></p>}
      {data && data.length > 0 && (
        <div class="scroll">
          <table class="list">
            <thead>
              <tr><th>began</th><th>workload</th>{!id && <th>server</th>}<th>version</th><th class="num">threads</th><th class="num">rate</th><th class="num">transactions</th><th class="num">p95</th><th class="num">p99</th><th class="num">errors</th><th class="num">no success</th></tr>
            </thead>
            <tbody>{data.map((b) => <Row key={b.id} b={b} many={!id} />)}</tbody>
          </table>
        </div>
      )}
    </main>
  );
}
