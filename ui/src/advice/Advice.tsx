/** The page /advice: what is wrong before it hurts, with the statements that mend it. */
import { useState } from 'preact/hooks';
import { NO_ACT, decideAdvice, fetchAdvice, lookForAdvice, mayAct, serverNow, type AdviceAnswer, type AdviceServer, type Advised, type Decision } from '../api';
import { age, counted, unix } from '../common/format';
import { Copy, Moment, Remedy, StateMark, useAct } from '../common/parts';
import { usePolled } from '../common/poll';
import { go, replace, view } from '../common/router';
import { fleet, instanceOf } from '../common/store';
import { HOME, formatView } from '../common/view';
import { DecideForm, type How } from './Decide';
import { adviceSentence, costWords, decisionWords, groups, keyOf, lookWords, nextWords, onWords, silenceWords, sureWords } from './words';

const CALM_MS = 15_000;
const BUSY_MS = 1000;

function Undo({ d, onChange }: { d: Decision; onChange: () => void }) {
  const [error, busy, act] = useAct();
  return (
    <>
      <button disabled={busy || !mayAct.value} title={mayAct.value ? 'It is advice again' : NO_ACT} onClick={() => act(() => decideAdvice('undo', { number: d.number }).then(onChange))}>Undo</button>
      {error && <span class="bad" role="alert">{error}</span>}
    </>
  );
}

/** A statement as it can be run, with its copy button. */
function Statement({ text }: { text: string }) {
  return <div class="block"><pre tabIndex={0}>{text}</pre><Copy text={text} /></div>;
}

function Body({ f, now, onChange }: { f: Advised; now: number; onChange: () => void }) {
  const [how, setHow] = useState<How | ''>('');
  const barred = !mayAct.value;
  const line = (head: string, what: preact.ComponentChildren) => (what ? <><dt>{head}</dt><dd>{what}</dd></> : null);
  const done = (): void => (setHow(''), onChange());
  const cost = costWords(f.cost);
  return (
    <div class="a-more">
      <dl>
        {f.decision && line('decided', decisionWords(f.decision, now))}
        {line('why', f.why)}
        {line('seen', (f.evidence ?? []).length > 0 && <ul>{f.evidence!.map((e) => <li key={e}>{e}</li>)}</ul>)}
        {line('first', f.advice)}
        {line('run', f.statement && <Statement text={f.statement} />)}
        {line('does', f.effect)}
        {line('undo', f.undo && <Statement text={f.undo} />)}
        {line('sure', sureWords(f))}
        {line('costs', cost)}
        {line('risk', f.cost.risk)}
        {line('on', <ul class="places">{f.on.map((p) => (
          <li key={p.instance}><a class="link" href={formatView({ ...HOME, page: 'server', id: p.instance })}>{p.name}</a> <span class="quiet">{p.ended ? <>ended <Moment t={unix(p.ended)} now={now} /></> : <>since <Moment t={unix(p.since)} now={now} />{p.unsure && <>, last seen <Moment t={unix(p.seen)} now={now} />: it could not be looked for since</>}</>}</span></li>
        ))}</ul>)}
      </dl>
      {f.state !== 'gone' && (
        <p class="acts">
          {(['accept', 'postpone', 'silence'] as const).map((h) => (
            <button key={h} disabled={barred} title={barred ? NO_ACT : undefined} aria-expanded={how === h} onClick={() => setHow(how === h ? '' : h)}>{h.charAt(0).toUpperCase() + h.slice(1)}…</button>
          ))}
          {f.decision && <Undo d={f.decision} onChange={onChange} />}
        </p>
      )}
      {how && <DecideForm key={how} f={f} how={how} onDone={done} />}
    </div>
  );
}

// Arrows move between the rows, as in the list of queries.
function onArrow(e: KeyboardEvent): void {
  if (e.key !== 'ArrowDown' && e.key !== 'ArrowUp') return;
  const all = [...document.querySelectorAll<HTMLElement>('.advised > li > details > summary')];
  const next = all[all.indexOf(e.currentTarget as HTMLElement) + (e.key === 'ArrowDown' ? 1 : -1)];
  if (!next) return;
  e.preventDefault();
  next.focus();
}

function Row({ f, all, now, onChange }: { f: Advised; all: number; now: number; onChange: () => void }) {
  const key = keyOf(f);
  const open = view.value.open.includes(key);
  const toggle = (e: Event): void => {
    const is = (e.currentTarget as HTMLDetailsElement).open;
    const others = view.value.open.filter((k) => k !== key);
    if (is !== view.value.open.includes(key)) replace({ open: is ? [...others, key] : others });
  };
  return (
    <li data-advice={`${f.id} ${f.object ?? ''}`.trim()}>
      <details open={open} onToggle={toggle}>
        <summary onKeyDown={onArrow}>
          <StateMark state={f.severity === 'info' ? 'ok' : f.severity} wordless />
          <span class="a-what">{f.what}</span>
          <span class="a-kind quiet">{f.state !== 'open' && `${f.state} · `}{f.id}</span>
          <span class="a-on quiet">{onWords(f, all)}</span>
          <span class="a-since quiet">{f.since ? age(now - unix(f.since)) : ''}</span>
        </summary>
        {open && <Body f={f} now={now} onChange={onChange} />}
      </details>
    </li>
  );
}

function Filters({ a }: { a: AdviceAnswer | null }) {
  const v = view.value;
  const servers = (fleet.value?.instances ?? []).filter((i) => i.kind === 'server');
  const names = [...new Set(servers.map((i) => i.group).filter((g): g is string => !!g))].sort();
  const kinds = [...new Set([...(a?.kinds ?? []).map((k) => k.id), ...(v.kind ? [v.kind] : [])])].sort();
  const select = (label: string, value: string, options: readonly (readonly [string, string])[], on: (x: string) => void) => (
    <select aria-label={label} value={value} onChange={(e) => on(e.currentTarget.value)}>{options.map(([k, name]) => <option key={k} value={k}>{name}</option>)}</select>
  );
  return (
    <div class="filters" role="search" aria-label="Filter advice">
      <input type="search" value={v.q} placeholder="Filter by name or words" aria-label="Filter advice by text" spellcheck={false} onInput={(e) => replace({ q: e.currentTarget.value })} />
      {select('Severity', v.state, [['', 'all severities'], ['warning', 'warnings and worse'], ['critical', 'critical']], (x) => go({ state: x }))}
      {select('Kind', v.kind, [['', 'all kinds'], ...kinds.map((k) => [k, k] as const)], (x) => go({ kind: x }))}
      {servers.length > 1 && select('Server', v.id, [['', 'all servers'], ...servers.map((i) => [i.id, i.name] as const)], (x) => go({ id: x }))}
      {names.length > 0 && !v.id && select('Group', v.group, [['', 'all groups'], ...names.map((g) => [g, g] as const)], (x) => go({ group: x }))}
      {select('Order', v.sort, [['', 'by severity'], ['kind', 'by kind']], (x) => go({ sort: x }))}
    </div>
  );
}

function ServerRow({ s, a, now, onChange }: { s: AdviceServer; a: AdviceAnswer; now: number; onChange: () => void }) {
  const [error, busy, act] = useAct();
  const looking = a.looking?.instance === s.instance;
  return (
    <li data-looked={s.instance}>
      <div>
        <p><b>{s.name}</b> <span class={s.error ? 'bad' : 'quiet'}>{looking ? `is being looked at: ${counted(a.looking!.tables, 'table')} so far` : `${lookWords(s, now)}; ${nextWords(s, now)}`}</span></p>
        {(s.missing ?? []).length > 0 && (
          <details class="fold"><summary>not looked at: {s.missing!.map((m) => m.what).join(', ')}</summary>
            <ul>{s.missing!.map((m) => <li key={m.what}>{m.what}: {m.why}{m.remedy && <> <Remedy text={m.remedy} /></>}</li>)}</ul>
          </details>
        )}
      </div>
      <button disabled={busy || looking || s.queued || !mayAct.value} title={mayAct.value ? undefined : NO_ACT} aria-label={`Look now: ${s.name}`} onClick={() => act(() => lookForAdvice(s.instance).then(onChange))}>Look now</button>
      {error && <span class="bad" role="alert">{error}</span>}
    </li>
  );
}

/** What somebody decided about, or what is gone: folded away, counted. */
function Folded({ name, state, ask, all, now, onChange, turn }: { name: string; state: 'decided' | 'gone'; ask: Parameters<typeof fetchAdvice>[0]; all: number; now: number; onChange: () => void; turn: number }) {
  const [open, setOpen] = useState(false);
  const [list, setList] = useState<Advised[] | null>(null);
  usePolled(async () => (open ? (await fetchAdvice({ ...ask, state })).findings : null), (got) => got && setList(got), CALM_MS, [open, turn, JSON.stringify(ask)]);
  return (
    <details class="fold away" open={open} onToggle={(e) => setOpen((e.currentTarget as HTMLDetailsElement).open)} data-folded={state}>
      <summary>{name}</summary>
      {list && <ul class="advised">{list.map((f) => <Row key={keyOf(f)} f={f} all={all} now={now} onChange={onChange} />)}</ul>}
    </details>
  );
}

/** The page. */
export function Advice() {
  const v = view.value;
  const [a, setA] = useState<AdviceAnswer | null>(null);
  const [turn, setTurn] = useState(0);
  const severity = v.state === 'warning' || v.state === 'critical' ? v.state : '';
  const ask = { instance: v.id, group: v.id ? '' : v.group, kind: v.kind, severity, q: v.q };
  const key = JSON.stringify(ask);
  const busy = !!a && (!!a.looking || a.servers.some((s) => s.queued));
  usePolled(() => fetchAdvice(ask), setA, busy ? BUSY_MS : CALM_MS, [key, turn, busy]);
  const now = serverNow();
  const changed = (): void => setTurn((t) => t + 1);
  const title = `Advice${v.id ? ` for ${instanceOf(v.id)?.name ?? v.id}` : ''}`;
  if (!a) return <main class="advice"><header class="page-head"><h1>{title}</h1></header><Filters a={a} /></main>;
  const said = adviceSentence(a, v.q !== '' || v.kind !== '' || severity !== '' || v.group !== '');
  const all = a.servers.length;
  return (
    <main class="advice">
      <header class="page-head">
        <h1>{title}</h1>
        <p class={`sentence lead ${said.tone}`} aria-live="polite">{said.text}</p>
      </header>
      <Filters a={a} />
      {groups(a.findings, a.kinds, v.sort === 'kind').map((g) => (
        <section key={g.key} aria-label={g.name}>
          <h2>{g.name} <span class="quiet">{g.list.length}</span></h2>
          <ul class="advised">{g.list.map((f) => <Row key={keyOf(f)} f={f} all={all} now={now} onChange={changed} />)}</ul>
        </section>
      ))}
      {a.left > 0 && <p class="quiet">These are the worst {counted(a.findings.length, 'finding')}; {counted(a.left, 'more', 'more')} fit. Filter to see them.</p>}
      {a.counts.decided > 0 && <Folded name={`${counted(a.counts.decided, 'finding')} accepted, postponed or silenced`} state="decided" ask={ask} all={all} now={now} onChange={changed} turn={turn} />}
      {a.counts.gone > 0 && <Folded name={`${counted(a.counts.gone, 'finding')} ended in the last 90 days`} state="gone" ask={ask} all={all} now={now} onChange={changed} turn={turn} />}
      {a.silences.length > 0 && (
        <section aria-labelledby="s-silenced">
          <h2 id="s-silenced">Silenced</h2>
          <ul class="looked">{a.silences.map((d) => <li key={d.number} data-silenced={d.finding}><div><p>{silenceWords(d)} <span class="quiet">{decisionWords(d, now)}</span></p></div><Undo d={d} onChange={changed} /></li>)}</ul>
        </section>
      )}
      <section aria-labelledby="s-looked">
        <h2 id="s-looked">Looked at</h2>
        <ul class="looked">{a.servers.map((s) => <ServerRow key={s.instance} s={s} a={a} now={now} onChange={changed} />)}</ul>
      </section>
    </main>
  );
}
