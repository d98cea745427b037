/** The page of one class of statements: what it is, its history, who runs it, samples, plans. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { fetchEvents, fetchQueries, fetchQuery, serverNow, type Query as Answered, type QuerySample, type Span } from '../api';
import { Chart } from '../chart/Chart';
import type { Mark } from '../chart/paint';
import { exact, human, stamp } from '../common/format';
import { Copy, Moment, Remedy } from '../common/parts';
import { view } from '../common/router';
import { fleet, instanceOf } from '../common/store';
import { formatView } from '../common/view';
import { toMark } from '../server/board';
import { useAnswer, useMinutes } from './answers';
import { chartsOf } from './charts';
import { type GivenDesk, useDesk } from './desk';
import { Failed, Holes, Long, NotKept, Parts, Sources, Sql } from './parts';
import { Plans, planName } from './Plans';
import { knownSteps, lastRun, toChart } from './series';
import { NO_ROOM, nameOf } from './sql';
import { around } from './diff';
import { Blockers, Waits } from './Waits';
import { waitWords } from './waits';
import { bestVersus, earlier, known, lengthOf, versusWords } from './window';
import { againstWords, flipWords, loadOf } from './words';

/** Plan flips, and what else happened to the server, as marks in the charts. */
function useMarks(desk: GivenDesk, q: Answered | null, id: string): void {
  const key = q ? `${id} ${q.from} ${q.to} ${q.flips?.length ?? 0}` : '';
  useEffect(() => {
    if (!q) return;
    let ended = false;
    const flips: Mark[] = (q.flips ?? []).map((f) => ({ t: f.time, tone: 'warning', text: `plan flipped on ${instanceOf(f.instance)?.name ?? f.instance}: ${planName(f.old)} → ${planName(f.new)}` }));
    desk.mark(flips);
    // What happened to one server may be why; a fleet has too much of it.
    const of = id || (q.by_instance?.length === 1 ? q.by_instance[0].value : '');
    if (of) {
      fetchEvents(of, q.from, q.to).then((list) => {
        if (!ended) desk.mark([...list.filter((e) => e.kind !== 'plan').map(toMark), ...flips].sort((a, b) => a.t - b.t));
      }, () => undefined); // charts without marks are still charts
    }
    return () => void (ended = true);
  }, [key]);
}

function Sentence({ q, share, against, vs }: { q: Answered; share: number | null; against: string; vs: string }) {
  const seconds = lengthOf(q);
  if (q.total.calls === 0) {
    return <p class="sentence" data-sentence>It did not run in this range; last seen <Moment t={q.last_seen} now={serverNow()} />.</p>;
  }
  const flips = flipWords((q.flips ?? []).filter((f) => f.time >= q.from && f.time <= q.to));
  return (
    <p class="sentence" aria-live="polite" data-sentence>
      It makes {share === null ? '' : `${human(share, '%')} of the load: `}{human(loadOf(q.total, seconds), 's/s')}, {human(q.total.calls / seconds)} calls/s at {human(q.total.avg, 's')}
      {q.latency && <>, 95 of 100 under {human(q.latency.p95, 's')}</>}
      {against && <>; {against} than {vs}</>}{flips && <>; {flips}</>}{waitWords(q.waits ?? [])}.
    </p>
  );
}

const DIGEST_SQL = (digest: string): string => `SELECT * FROM performance_schema.events_statements_summary_by_digest WHERE DIGEST = '${digest}'`;

/** The name of the class, here and elsewhere. */
function Names({ q }: { q: Answered }) {
  const digests = [...new Map((q.digests ?? []).filter((d) => d.digest !== '').map((d) => [d.digest, d])).values()];
  return (
    <dl class="names">
      <div><dt>class</dt><dd><code>{q.id}</code><Copy text={q.id} /></dd></div>
      {q.pt_id && <div><dt>pt-query-digest</dt><dd><code>{q.pt_id}</code><Copy text={q.pt_id} /></dd></div>}
      {digests.slice(0, 4).map((d) => (
        <div key={d.digest}>
          <dt>server’s DIGEST</dt>
          {/* A DIGEST is hex digits; anything else is shown, but not put into a command. */}
          <dd><code>{d.digest}</code><Copy text={d.digest} />{/^[0-9a-f]+$/i.test(d.digest) && <Copy text={DIGEST_SQL(d.digest)} label="copy as query" />}</dd>
        </div>
      ))}
      {digests.length > 4 && <div><dt /><dd class="quiet">and {digests.length - 4} more DIGESTs on other servers</dd></div>}
      {q.tables && <div><dt>tables</dt><dd>{q.tables.split(',').join(', ')}</dd></div>}
      <div><dt>seen</dt><dd><Moment t={q.first_seen} now={serverNow()} /> to <Moment t={lastRun(q)} now={serverNow()} /></dd></div>
    </dl>
  );
}

function Sample({ s, many }: { s: QuerySample; many: boolean }) {
  const who = [s.user && s.host ? `${s.user}@${s.host}` : s.user, s.schema, many ? (instanceOf(s.instance)?.name ?? s.instance) : ''].filter(Boolean).join(', ');
  return (
    <li class="sample">
      <p><Moment t={s.time} now={serverNow()} /> <b title={exact(s.seconds, 's')}>{human(s.seconds, 's')}</b> <span class="quiet">{who}</span> <Copy text={s.text} label="copy" /></p>
      <Long text={s.text} />
    </li>
  );
}

function Samples({ list, plain }: { list: QuerySample[]; plain: boolean }) {
  const many = new Set(list.map((s) => s.instance)).size > 1;
  const [all, setAll] = useState(false);
  const sorted = [...list].sort((a, b) => b.time - a.time);
  return (
    <section aria-labelledby="samples">
      <h2 id="samples">Samples</h2>
      {list.length === 0 && <p class="quiet">No sample is kept. {plain ? 'This statement has no literals: each call looks as above.' : 'The server gives one only now and then; MySQL 8 and later do.'}</p>}
      <ul class="samples">{sorted.slice(0, all ? undefined : 8).map((s) => <Sample key={`${s.instance}${s.time}${s.text}`} s={s} many={many} />)}</ul>
      {!all && list.length > 8 && <button class="bare link" onClick={() => setAll(true)}>all {list.length} samples</button>}
    </section>
  );
}

function useBuckets(root: { current: HTMLElement | null }): number {
  const [n, setN] = useState(300);
  useLayoutEffect(() => {
    const o = new ResizeObserver((e) => {
      const width = e[0].contentRect.width;
      setN(Math.min(600, Math.max(120, Math.round(width / Math.max(1, Math.floor(width / 400)) / 60) * 60)));
    });
    if (root.current) o.observe(root.current);
    return () => o.disconnect();
  }, []);
  return n;
}

/** What the class makes of all load, and since when statements are kept. */
function useShare(id: string, span: Span): { total: number | null; first: number } {
  const ask = { ...span, instance: id, order: 'load', limit: 1, search: '', schema: '', points: 1 };
  const a = useAnswer(JSON.stringify(ask), (s) => fetchQueries(ask, s)).data;
  return a?.available ? { total: a.total.seconds, first: a.first } : { total: null, first: 0 };
}

/** The page. */
export function Query() {
  const { id, cls } = view.value;
  const root = useRef<HTMLElement>(null);
  const span = useMinutes();
  const points = useBuckets(root);
  const desk = useDesk();
  const share = useShare(id, span);
  const answer = useAnswer(JSON.stringify([cls, id, span, points]), (s) => fetchQuery(cls, id, span, points, s));
  const q = answer.data?.available ? answer.data : null;
  const after = known(span, share.first);
  const vs = share.first > 0 ? bestVersus(after, share.first) : '';
  const before = vs ? earlier(after, vs, share.first) : null;
  const past = useAnswer(before ? JSON.stringify([cls, id, before]) : '', (s) => fetchQuery(cls, id, before!, 1, s));
  const then = past.data?.available ? past.data : null;

  const steps = useMemo(() => (q ? knownSteps(q, serverNow()) : null), [q]);
  useEffect(() => {
    if (q && steps) desk.show(toChart(q, share.first, steps), q, steps.holes);
  }, [q, steps, share.first]);
  useMarks(desk, q, id);
  const models = useMemo(() => (q ? chartsOf(q, desk.feed) : []), [q && chartsOf(q, desk.feed).map((m) => m.id + m.lines.length).join()]);
  const gone = answer.data && !answer.data.available ? answer.data : null;
  const unknown = answer.error?.status === 404 || answer.error?.status === 400;
  const name = q ? (q.id === NO_ROOM ? 'All statements for which the table of digests had no room' : nameOf(q.fingerprint, q.verb, q.tables)) : cls;
  const list = formatView({ ...view.value, page: 'queries', cls: '', at: null });
  const measured = q ? { ...q, ...known({ from: q.from, to: q.to }, share.first) } : null;

  return (
    <main class="query" ref={root}>
      <p class="crumb"><a href={list}>← all statements{id ? ` of ${instanceOf(id)?.name ?? id}` : ''}</a></p>
      {gone && <NotKept said={gone} />}
      {unknown && <p class="sentence">No class of statements is called {cls}{id ? ' on this server' : ''}. <a href={list}>All statements</a></p>}
      {answer.error && !unknown && <Failed error={answer.error} />}
      {q && measured && (
        <>
          <header class="page-head">
            <div class="title-line">
              <h1>{name}</h1>
              <p class="facts"><span>{id ? (instanceOf(id)?.name ?? id) : servers(q)}</span>{id && (fleet.value?.instances?.length ?? 0) > 1 && <a href={formatView({ ...view.value, id: '' })}>on all servers</a>}</p>
            </div>
            <Sentence q={measured} share={share.total ? q.total.seconds / share.total : null} vs={before ? versusWords(vs, before) : ''} against={then && before ? againstWords(then.total, q.total, before, after) : ''} />
            {q.sources && <Sources list={q.sources.filter((s) => id !== '' || (q.digests ?? []).some((d) => d.instance === s.instance))} />}
          </header>
          {q.id === NO_ROOM ? <Overflow /> : <div class="statement"><Sql text={q.fingerprint} /><Copy text={q.fingerprint} label="copy statement" /></div>}
          <Names q={q} />
          <section aria-labelledby="history">
            <h2 id="history">History</h2>
            <div class="grid">{models.map((m) => <Chart key={m.id} model={m} desk={desk} />)}</div>
            {steps && <Holes list={steps.holes} first={share.first} />}
          </section>
          <section aria-labelledby="who">
            <h2 id="who">Who runs it</h2>
            <div class="whos">
              <Parts title="Server" list={q.by_instance ?? []} name={(v) => instanceOf(v)?.name ?? v} />
              <Parts title="Schema" list={q.by_schema ?? []} name={(v) => v || 'none'} />
              <Parts title="User" list={q.by_user ?? []} name={(v) => v || 'not known'} sampled={q.by_user_from === 'activity' || q.by_user_from === 'samples'} />
              <Parts title="Host" list={q.by_host ?? []} name={(v) => v || 'not known'} sampled />
            </div>
            {(q.by_user_from === 'activity' || (q.by_host ?? []).length > 0) && <p class="quiet small">{q.by_user_from === 'activity' ? 'Users and hosts' : 'Hosts'}: sampled once a second.</p>}
          </section>
          <Waits list={q.waits ?? []} note={q.activity?.note ?? ''} />
          <Blockers list={q.blocked_by ?? []} />
          <Plans cls={q.id} plans={q.plans ?? []} flips={q.flips ?? []} notes={notesOf(q)} around={onePlace(q) ? (at) => around(q.series.time, q.step, q.series.calls_per_second ?? [], q.series.load ?? [], at, 1800) : null} />
          <Samples list={q.samples ?? []} plain={!/[?]/.test(q.fingerprint)} />
        </>
      )}
    </main>
  );
}

// A flip is of one schema of one server: figures of several together do not show what it did.
function onePlace(q: Answered): boolean {
  return (q.by_instance ?? []).length <= 1 && (q.by_schema ?? []).length <= 1;
}

// Why plans of this class may be missing.
function notesOf(q: Answered): string[] {
  if (q.plan_note) return [q.plan_note];
  const here = new Set((q.by_instance ?? []).map((p) => p.value));
  return (q.sources ?? []).filter((s) => here.has(s.instance)).map((s) => (s.plans === false ? `On ${s.instance} none are taken` : s.plan_note ? `On ${s.instance}: ${s.plan_note}` : '')).filter(Boolean);
}

function servers(q: Answered): string {
  const n = q.by_instance?.length ?? 0;
  return n === 1 ? (instanceOf(q.by_instance![0].value)?.name ?? q.by_instance![0].value) : n > 1 ? `${n} servers` : `since ${stamp(q.first_seen)}`;
}

function Overflow() {
  return <p class="quiet">The server counts here what it cannot tell apart any more. More room: <Remedy text="SET PERSIST_ONLY performance_schema_digests_size = 20000" /> and a restart, or <Remedy text="TRUNCATE TABLE performance_schema.events_statements_summary_by_digest" /> to begin anew.</p>;
}
