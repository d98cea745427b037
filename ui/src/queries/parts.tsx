/** Small parts of the pages about statements. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { serverNow, type ApiError, type Part, type Span, type StatementSource, type Unavailable } from '../api';
import type { Colour } from '../chart/palette';
import { exact, human, thousands } from '../common/format';
import { Copy, Moment, Remedy } from '../common/parts';
import { view } from '../common/router';
import { instanceOf } from '../common/store';
import { formatView, type View } from '../common/view';
import { layout } from './sql';

/** Reads a number for a hover: exact, with its unit. */
export { exact };

/** The link of a class's page, from any page about statements. */
export function linkOfClass(id: string, change: Partial<View> = {}): string {
  return formatView({ ...view.value, page: 'query', cls: id, q: '', sort: '', schema: '', more: false, ...change });
}

/** A part of a whole as a bar with its figure. */
export function Share({ share, colour }: { share: number | null; colour?: Colour }) {
  const width = `${Math.max(0, Math.min(1, share ?? 0)) * 100}%`;
  return (
    <span class="share" title={share === null ? 'not known' : `${exact(share)} of the load`}>
      <span class="share-bar"><i class={colour ? `x-${colour}` : ''} style={{ width }} /></span>
      <b>{human(share, '%')}</b>
    </span>
  );
}

/** A word about a class, such as "new". */
export function Tag({ children, title }: { children: ComponentChildren; title: string }) {
  return <span class="tag" title={title}>{children}</span>;
}

/** A statement with each clause on its own line; its text is only ever text. */
export function Sql({ text }: { text: string }) {
  return <pre class="sql">{layout(text).map((p, i) => (p.keyword ? <b key={i}>{p.text}</b> : p.text))}</pre>;
}

const CUT_LINES = 6;
const CUT_CHARS = 700;

/** A text that may be long: its beginning, and all of it when asked for. */
export function Long({ text }: { text: string }) {
  const [open, setOpen] = useState(false);
  const lines = text.split('\n', CUT_LINES + 1);
  const cut = text.length > CUT_CHARS || lines.length > CUT_LINES;
  const shown = open || !cut ? text : `${lines.slice(0, CUT_LINES).join('\n').slice(0, CUT_CHARS)} …`;
  return (
    <>
      <pre class="sql plain">{shown}</pre>
      {cut && <button class="bare link" onClick={() => setOpen(!open)} aria-expanded={open}>{open ? 'less' : `all ${thousands(text.length)} characters`}</button>}
    </>
  );
}

/** No statements are kept: why, and what to do, calmly. */
export function NotKept({ said }: { said: Unavailable }) {
  return (
    <section class="calm" aria-label="Statements are not kept">
      <p class="sentence">There is no history of statements: {said.why}.</p>
      {said.remedy && (
        <>
          <p class="quiet">What mends it:</p>
          <div class="remedy-block"><code>{said.remedy}</code><Copy text={said.remedy} /></div>
        </>
      )}
      <p class="quiet">All other pages work as ever. One log can be read right away, without a history:</p>
      <div class="remedy-block"><code>risso digest /var/lib/mysql/slow.log</code><Copy text="risso digest /var/lib/mysql/slow.log" /></div>
    </section>
  );
}

/** A question that failed. What was there before stays on the screen below. */
export function Failed({ error }: { error: ApiError }) {
  return (
    <p class="failed" role="alert">
      {error.status === 0 ? 'Risso does not answer; asking again.' : <>Risso could not answer: {error.message}.{error.remedy && ` ${error.remedy}`}</>}
    </p>
  );
}

/** Which servers' statements are missing, why, and the remedy. */
export function Sources({ list }: { list: StatementSource[] }) {
  const bad = list.flatMap((s) => {
    const name = instanceOf(s.instance)?.name ?? s.instance;
    if (!s.working) return [{ key: s.instance, what: name, why: s.why || 'statements are not read yet', remedy: s.remedy ?? '' }];
    return (s.notes ?? []).map((n) => ({ key: `${s.instance} ${n.what}`, what: `${name}: ${n.what}`, why: n.why, remedy: n.remedy }));
  });
  if (bad.length === 0) return null;
  return (
    <details class="gaps" open={bad.length === 1}>
      <summary>Not all is seen{bad.length === 1 ? '' : `, for ${bad.length} reasons`}: {bad.map((b) => b.what).join(', ')}</summary>
      <ul>{bad.map((b) => <li key={b.key}><b>{b.what}</b> – {b.why}{b.remedy && <>. <Remedy text={b.remedy} /></>}</li>)}</ul>
    </details>
  );
}

/** What the hatched parts of the charts above are; first is the earliest minute kept: before it Risso was not recording yet. */
export function Holes({ list: all, first }: { list: Span[]; first: number }) {
  if (all.length === 0) return null;
  const now = serverNow();
  const list = all.filter((h) => h.to > first).map((h) => ({ from: Math.max(h.from, first), to: h.to }));
  const early = all.some((h) => h.from < first);
  const seconds = list.reduce((s, h) => s + h.to - h.from, 0);
  const one = list.length === 1 ? list[0] : null;
  return (
    <p class="quiet small holes" data-holes={list.length}>
      <i class="hatch" /> not read
      {list.length > 0 && (
        <>
          {' '}{one ? <>from <Moment t={one.from} now={now} /> to <Moment t={one.to} now={now} /></> : <>{list.length} times, {human(seconds, 's')} in all</>}:
          {' '}Risso did not run, or the server did not answer. Figures per second take that time for idle.
        </>
      )}
      {early && <> {list.length > 0 ? 'Before' : 'before'} <Moment t={first} now={now} />, when Risso began to look.</>}
    </p>
  );
}

/** Who or what made a class's load: a bar for each value. */
export function Parts({ title, list, name, sampled = false }: { title: string; list: Part[]; name: (value: string) => string; sampled?: boolean }) {
  if (list.length === 0) return null;
  const all = list.reduce((s, p) => s + p.seconds, 0) || 1;
  return (
    <table class="list parts" aria-label={title}>
      <thead><tr><th scope="col">{title}</th><th scope="col">Share of load</th><th scope="col" class="num">{sampled ? 'Samples' : 'Calls'}</th><th scope="col" class="num">{sampled ? 'Time' : 'Average'}</th></tr></thead>
      <tbody>
        {list.slice(0, 12).map((p) => (
          <tr key={p.value}>
            <td>{name(p.value)}</td>
            <td><Share share={p.seconds / all} /></td>
            <td class="num" title={exact(p.calls)}>{human(p.calls)}</td>
            <td class="num">{human(sampled ? p.seconds : p.calls > 0 ? p.seconds / p.calls : null, 's')}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
