/** The pages /queries and /server/ID/queries: which statements make the load, and what changed. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { fetchChanges, fetchQueries, fetchSchemas, serverNow, type Flip, type Part, type Queries as Answered, type QueryChanges, type Span } from '../api';
import type { Colour } from '../chart/palette';
import { age, clock, counted, human, stamp } from '../common/format';
import { go, replace, view } from '../common/router';
import { fleet } from '../common/store';
import { formatView, type Versus } from '../common/view';
import { Header } from '../server/Header';
import { useDetail } from '../server/Server';
import { useAnswer, useMinutes } from './answers';
import { Changes } from './Changes';
import { colours, columnOf, knownPoints, sortRows } from './list';
import { LoadChart } from './LoadChart';
import { Failed, NotKept, Sources, linkOfClass } from './parts';
import { Table } from './Table';
import { bestVersus, earlier, known, lengthOf } from './window';
import { nameOf } from './sql';
import { loadSentence, nameOfChange, news, newsWords, totalWords } from './words';

const NONE: string[] = [];
const LIMIT = 50;
const LONG_LIMIT = 500;
const POINTS = 120;
const TYPING_MS = 250;
const VERSUS: [Versus, string][] = [['before', 'the time before'], ['day', 'yesterday'], ['week', 'last week']];

function useLater<T>(value: T, ms: number): T {
  const [late, setLate] = useState(value);
  useEffect(() => {
    const t = setTimeout(() => setLate(value), ms);
    return () => clearTimeout(t);
  }, [value]);
  return late;
}

// Whole quarters of an hour: a live range then asks again only now and then.
function schemaSpan(span: Span): Span {
  const step = 900;
  return { from: Math.floor(span.from / step) * step, to: Math.ceil(span.to / step) * step };
}

/** The head of the fleet's page: a server's page has its own. */
function FleetHead() {
  const n = (fleet.value?.instances ?? []).filter((i) => i.kind === 'server').length;
  return <header class="page-head"><div class="title-line"><h1>Queries</h1><p class="facts"><span>{n === 1 ? 'one server' : `all ${n} servers`}</span></p></div></header>;
}

function ServerHead({ id }: { id: string }) {
  const detail = useDetail(id);
  return <Header id={id} detail={detail} onChart={() => go({ page: 'server' })} />;
}

interface Compared {
  vs: Versus;
  before: Span;
  after: Span;
  data: QueryChanges | null;
}

/** What is most important, in words. */
function Sentence({ heavy, span, compared }: { heavy: Answered; span: Span; compared: Compared | null }) {
  const shares = (heavy.classes ?? []).map((c) => c.share);
  const c = compared?.data;
  const flipped = (heavy.classes ?? []).find((x) => (x.flips ?? 0) > 0);
  const top = c ? news(c.changes ?? [], c.a, c.b, compared.before, compared.after) : null;
  return (
    <p class="sentence" aria-live="polite" data-sentence>
      {loadSentence(shares, heavy.count, heavy.total, lengthOf(span))}{' '}
      {top && compared && <><a href={linkOfClass(top.id)}>{nameOfChange(top)}</a> {newsWords(top, compared.vs, compared.before)}</>}
      {!top && flipped && <>The plan of <a href={linkOfClass(flipped.id)}>{nameOf(flipped.fingerprint, flipped.verb, flipped.tables)}</a> flipped. </>}
      {c && !top && compared && c.b.calls > 0 && <span class="quiet">{totalWords(c.a, c.b, compared.vs, compared.before, compared.after)}</span>}
    </p>
  );
}

// The comparison knows of flips, too; only those of the range itself are marked in the list.
function flipsOf(c: Compared | null, span: Span): Map<string, number> {
  const count = (list: Flip[] | null): number => (list ?? []).filter((f) => f.time >= span.from && f.time <= span.to).length;
  return new Map((c?.data?.changes ?? []).map((x) => [x.id, count(x.flips)]));
}

/** Which question the list answers: top, or what changed against when. */
function Modes({ span, first }: { span: Span; first: number }) {
  const v = view.value;
  const to = (vs: Versus): string => formatView({ ...v, vs, sort: '', more: false });
  return (
    <nav class="modes" aria-label="What to show">
      <a href={to('')} aria-current={v.vs === '' ? 'page' : undefined}>Top</a>
      <span class="quiet">what changed against</span>
      {VERSUS.map(([vs, name]) => {
        const there = earlier(span, vs, first) !== null;
        return <a key={vs} href={to(vs)} class={there ? '' : 'off'} aria-current={v.vs === vs ? 'page' : undefined} title={there ? '' : 'No statements are kept from then'}>{name}</a>;
      })}
    </nav>
  );
}

function countWords(found: number, of: number, filtered: boolean): string {
  if (!filtered) return `${found} of ${counted(of, 'class', 'classes')}`;
  return found === LIMIT || found === LONG_LIMIT ? `the ${found} heaviest of those found, among ${of}` : `${found} found among ${of}`;
}

function Filter({ data, found, schemas }: { data: Answered | null; found: number | null; schemas: Part[] }) {
  const { q, schema } = view.value;
  return (
    <>
      <input type="search" value={q} placeholder="Filter: text, table, ID or DIGEST" title="Part of a statement, a table, or its ID: Risso’s, that of pt-query-digest, or the server’s DIGEST" aria-label="Filter statements" onInput={(e) => replace({ q: e.currentTarget.value })} spellcheck={false} />
      {(schemas.filter((s) => s.value !== '').length > 1 || schema) && (
        <select aria-label="Schema" value={schema} onChange={(e) => go({ schema: e.currentTarget.value })}>
          <option value="">all schemas</option>
          {schema && !schemas.some((s) => s.value === schema) && <option value={schema}>{schema}</option>}
          {schemas.filter((s) => s.value !== '').map((s) => <option key={s.value} value={s.value}>{s.value}</option>)}
        </select>
      )}
      <span class="quiet">{data && found !== null ? countWords(found, data.count, q !== '' || schema !== '') : ''}</span>
    </>
  );
}

function Period({ span, data }: { span: Span; data: Answered }) {
  const now = serverNow();
  const sameDay = stamp(span.from).slice(0, 10) === stamp(now).slice(0, 10);
  const t = (x: number): string => (sameDay ? clock(x).slice(0, 5) : stamp(x).slice(0, 16));
  const late = data.first > data.from;
  return (
    <p class="quiet period">
      {late ? `Statements are kept since ${t(span.from)}, for ${age(lengthOf(span))}: figures are of that time, to ${t(span.to)}.` : `Whole minutes from ${t(span.from)} to ${t(span.to)}.`}
      {data.classes && data.classes.some((c) => c.latency === null) && ' A p95 is known for the heaviest classes of each minute (MySQL 8.0 and newer); sorted by it, classes without one come last.'}
    </p>
  );
}

/** The page. */
export function Queries() {
  const { id, sort, vs, q, schema, more } = view.value;
  const span = useMinutes();
  const search = useLater(q.trim(), TYPING_MS);
  const limit = more ? LONG_LIMIT : LIMIT;
  const ask = { ...span, instance: id, order: columnOf(sort), limit, search, schema, points: POINTS };
  const top = useAnswer(JSON.stringify(ask), (s) => fetchQueries(ask, s));
  const plain = ask.order === 'load' && search === '' && schema === '';
  // The sentence is about all statements, whatever the list shows.
  const whole = { ...ask, order: 'load', limit: LIMIT, search: '', schema: '', points: 1 };
  const heavy = useAnswer(plain ? '' : JSON.stringify(whole), (s) => fetchQueries(whole, s));

  const data = top.data?.available ? top.data : null;
  const said = plain ? data : heavy.data?.available ? heavy.data : data;
  const first = said?.first ?? 0;
  const against = vs || (said ? bestVersus(known(span, first), first) : '');
  const after = known(span, first);
  const before = against ? earlier(after, against, first) : null;
  const key = before && against ? JSON.stringify([id, schema, before, after]) : '';
  const changes = useAnswer(key, (s) => fetchChanges(before!, after, id, schema, limit, s));
  const changed = changes.data?.available ? changes.data : null;
  const compared = before && against ? { vs: against, before, after, data: changed } : null;

  // Which schemas there are hardly changes: asked for once a range, not each minute.
  const wide = schemaSpan(span);
  const schemas = useAnswer(data ? JSON.stringify([id, wide]) : '', (s) => fetchSchemas(wide, id, s));

  const palette = useRef(new Map<string, Colour>());
  const rows = useMemo(() => sortRows(data?.classes ?? [], sort), [data, sort]);
  const tinted = useMemo(() => (palette.current = colours(data?.classes ?? [], palette.current)), [data]);
  const points = useMemo(() => (data ? knownPoints(data, data.classes ?? [], serverNow()) : { read: [], holes: [] }), [data]);
  const gone = top.data && !top.data.available ? top.data : null;
  // Figures per second are of the range that was answered, not of the one being asked for.
  const shown = data ? known({ from: data.from, to: data.to }, data.first) : after;
  const working = (data?.sources ?? []).some((s) => s.working);

  return (
    <main class="queries">
      {id ? <ServerHead id={id} /> : <FleetHead />}
      {gone ? <NotKept said={gone} /> : (
        <>
          {said && said.first === 0 ? <p class="sentence" data-sentence>No statements are known yet.</p> : said ? <Sentence heavy={said} span={known({ from: said.from, to: said.to }, said.first)} compared={compared} /> : <p class="sentence">&nbsp;</p>}
          {data?.sources && <Sources list={data.sources} />}
          {top.error && <Failed error={top.error} />}
          <div class="filter">
            <Modes span={after} first={first} />
            <Filter data={data} found={vs === '' ? rows.length : null} schemas={schemas.data ?? []} />
          </div>
          {vs === '' && data && data.count > 0 && <LoadChart data={data} rows={rows} tinted={tinted} points={points} />}
          {vs === '' && rows.length > 0 && <Table data={data!} rows={rows} span={shown} tinted={tinted} column={columnOf(sort)} flips={flipsOf(compared, span)} fleetWide={id === ''} waiting={top.waiting} points={points} />}
          {vs === '' && data && rows.length >= LIMIT && !more && data.count > rows.length && (
            <p class="pad"><a class="link" href={formatView({ ...view.value, more: true })}>More of the {human(data.count)} classes</a></p>
          )}
          {vs === '' && data && rows.length === 0 && <Nothing data={data} search={q || schema} working={working} />}
          {vs === '' && data && data.count > 0 && <Period span={shown} data={data} />}
          {vs !== '' && <Changes vs={vs} compared={compared} error={changes.error} waiting={changes.waiting} ready={said !== null} listed={search === '' ? NONE : rows.map((r) => r.id)} />}
        </>
      )}
    </main>
  );
}

function Nothing({ data, search, working }: { data: Answered; search: string; working: boolean }) {
  if (search && data.count > 0) {
    return <p class="quiet pad">No class of statements among {data.count} has “{search}” in it. <button class="bare link" onClick={() => go({ q: '', schema: '' })}>Show all</button></p>;
  }
  if (data.first === 0) {
    return <p class="quiet pad">{working ? 'The first come when the first whole minute has passed.' : 'They come when at least one server tells them; what keeps each from it stands above.'}</p>;
  }
  return <p class="quiet pad">Nothing ran in this range. Statements are kept since {stamp(data.first)}.</p>;
}

