/** The head of a server's pages: what is happening, in a sentence, what is wrong, what is missing. */
import { serverNow, type InstanceDetail } from '../api';
import { age, human, shortVersion } from '../common/format';
import { AdviceLine } from '../advice/Line';
import { Findings, Gaps, Remedy, Since, StateMark, Stale } from '../common/parts';
import { view } from '../common/router';
import { instanceOf } from '../common/store';
import { formatView, rangeOn, type Page } from '../common/view';

const TABS: [Page, string][] = [['server', 'Charts'], ['queries', 'Queries'], ['metrics', 'Metrics'], ['variables', 'Variables'], ['events', 'Events'], ['sizes', 'Sizes'], ['alerts', 'Alerts'], ['incidents', 'Incidents'], ['benchmarks', 'Benchmarks'], ['protect', 'Protect'], ['advice', 'Advice']];

interface Props {
  id: string;
  detail: InstanceDetail | 'missing' | null;
  onChart: (id: string) => void;
}

/** The facts that a DBA looks for first, in words; all others are among the variables. */
export function tellFacts(facts: Record<string, string>): string[] {
  const out: string[] = [];
  const pool = Number(facts['innodb_buffer_pool_size']);
  if (pool > 0) out.push(`buffer pool ${human(pool, 'B')}`);
  const on = (k: string): boolean => facts[k] === 'ON' || facts[k] === '1';
  if (on('super_read_only') || on('read_only')) out.push('read only');
  for (const [k, v] of Object.entries(facts)) {
    if (!/^[a-z]+(_[a-z]+)*$/.test(k) || k === 'cores') out.push(`${k} ${v}`);
  }
  return out;
}

/** Name, sentence, findings, gaps and facts of an instance. */
export function Header({ id, detail: seen, onChart }: Props) {
  if (seen === 'missing') {
    return <p class="sentence">Risso watches nothing called {id}. <a href="/">All instances</a></p>;
  }
  const detail = seen;
  const d = detail ?? instanceOf(id) ?? null;
  const now = serverNow();
  const host = detail?.host || detail?.host_id;
  const hostName = host ? (instanceOf(host)?.name ?? host) : '';
  const findings = detail?.findings ?? [];
  // The sentence is most often the first finding's: then its remedy is next to it, not repeated below.
  const said = findings.find((f) => f.what === d?.words);
  return (
    <header class="page-head">
      <div class="title-line">
        <h1>{d?.name ?? id}</h1>
        {d && <StateMark state={d.state} />}
        {d && <Stale seen={d.seen} now={now} />}
        <p class="facts">
          {d && [
            [d.flavour, shortVersion(d.version ?? '')].filter(Boolean).join(' '), d.role, d.address !== d.name ? d.address : '',
            detail?.uptime ? `up ${age(detail.uptime)}` : '',
          ].filter(Boolean).map((t) => <span key={t}>{t}</span>)}
          {host && host !== id && <span>on <a href={formatView({ ...view.value, page: 'server', id: host, pins: [] })}>{hostName}</a></span>}
          {detail?.facts && tellFacts(detail.facts).map((t) => <span key={t}>{t}</span>)}
        </p>
      </div>
      <p class={`sentence ${d?.state ?? ''}`} aria-live="polite">
        {d ? d.words : '\u00a0'}
        {d && <Since t={d.since} words={d.words} now={now} />}
        {detail?.down.remedy && !said?.remedy && <span class="quiet">. {detail.down.remedy}</span>}
        {said?.chart && <> <button class="bare link" onClick={() => onChart(said.chart!)}>chart</button></>}
        {said?.id.startsWith('protect.') && <> <a class="link" href={formatView({ ...view.value, page: 'protect', q: '', sort: '', pins: [] })}>protect</a></>}
        {said?.id.startsWith('advice.') && <> <a class="link" href={formatView({ ...view.value, page: 'advice', q: '', sort: '', pins: [] })}>advice</a></>}
        {said?.remedy && <> <Remedy text={said.remedy} /></>}
      </p>
      <Findings list={findings.filter((f) => f !== said)} now={now} onChart={onChart} />
      {d?.kind === 'server' && view.value.page === 'server' && <AdviceLine id={id} />}
      {detail && <Gaps list={detail.gaps ?? []} />}
    </header>
  );
}

/** The pages of an instance, for the bar on top. */
export function Tabs() {
  const v = view.value;
  const here = v.page === 'query' ? 'queries' : v.page === 'incident' || v.page === 'film' ? 'incidents' : v.page;
  return (
    <nav class="tabs" aria-label="Pages of this instance">
      {TABS.filter(([page]) => (page !== 'queries' && page !== 'protect' && page !== 'sizes' && page !== 'advice') || instanceOf(v.id)?.kind !== 'host').map(([page, name]) => (
        <a key={page} href={formatView({ ...v, page, range: rangeOn(v, page), cls: '', q: '', sort: '' })} aria-current={here === page ? 'page' : undefined}>{name}</a>
      ))}
    </nav>
  );
}
