/** The page /incidents/ID: what happened, as a story on a time line, and the film of it. */
import { useEffect, useState } from 'preact/hooks';
import { ApiError, fetchIncident, serverNow, type IncidentDetail, type Step } from '../api';
import { clock, stamp, unix, utc } from '../common/format';
import { Moment, StateMark } from '../common/parts';
import { fixed } from '../common/range';
import { replace, view } from '../common/router';
import { HOME, formatView } from '../common/view';
import { DeadlockDrawing, MomentView } from './Moment';
import { Player, indexAt, type Reel } from './Player';
import { tenth } from './Strip';
import { inUnit } from './units';

const KIND: Record<string, string> = { before: 'before', begin: 'it begins', blocker: 'who blocks', deadlock: 'deadlock', number: 'a number', event: 'a change', end: 'it ends', gap: 'not seen' };
const POLL_MS = 3000;

function reelOf(d: IncidentDetail): Reel {
  const list = d.moments ?? [];
  return {
    tick: list.map((m) => m.tick),
    running: list.map((m) => (m.sessions ?? []).filter((s) => s.wait !== 'idle').length + (m.more ?? 0)),
    blocked: list.map((m) => (m.locks ?? []).length),
    deadlock: list.map((m) => (m.deadlock?.tick === m.tick ? 1 : 0)),
    missing: d.missing ?? [],
  };
}

function Story({ steps, onSeek }: { steps: Step[]; onSeek: (t: number) => void }) {
  return (
    <ol class="story">
      {steps.map((s, i) => (
        <li key={i} class={s.severity ?? ''}>
          <button class="bare link" title={`${stamp(unix(s.at))} here\n${utc(unix(s.at))}`} onClick={() => onSeek(Math.floor(unix(s.at)))}>{clock(unix(s.at))}</button>
          <span class="quiet">{KIND[s.kind] ?? s.kind}</span>
          <span>{s.severity && s.severity !== 'info' && <StateMark state={s.severity} wordless />} {s.text}</span>
        </li>
      ))}
    </ol>
  );
}

const W = 300;
const H = 44;

// A small line of a number, with the incident's own time shaded.
function Small({ l, d, at }: { l: NonNullable<IncidentDetail['lines']>[number]; d: IncidentDetail; at: number }) {
  const n = Math.max(2, l.values.length);
  const top = Math.max(...l.values.map((v) => v ?? 0)) || 1; // what never was above nothing is left out
  const x = (t: number): number => ((t - d.from) / Math.max(1, d.to - d.from)) * W;
  const path = l.values.map((v, i) => (v === null ? '' : `${i === 0 || l.values[i - 1] === null ? 'M' : 'L'}${tenth((i / (n - 1)) * W)} ${tenth(H - 2 - (v / top) * (H - 4))}`)).join('');
  const begin = x(unix(d.incident.began));
  const end = d.incident.ended ? x(unix(d.incident.ended)) : W;
  const here = l.values[Math.round(at - d.from)];
  return (
    <figure class="mini">
      <figcaption><b>{l.name}</b> <span>{inUnit(here, l.unit)}</span> <span class="quiet">most {inUnit(top, l.unit)}</span></figcaption>
      <svg viewBox={`0 0 ${W} ${H}`} preserveAspectRatio="none" aria-hidden="true">
        <rect class={`shade ${d.incident.severity}`} x={begin} y="0" width={Math.max(1, end - begin)} height={H} />
        <path class="spark-line" d={path} />
        <path class="s-at" d={`M${tenth(x(at))} 0V${H}`} />
      </svg>
    </figure>
  );
}

/** The page. */
export function Incident() {
  const { cls } = view.value;
  const [d, setD] = useState<IncidentDetail | null>(null);
  const [error, setError] = useState('');
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    const load = (): void => {
      fetchIncident(cls, abort.signal).then((got) => {
        setD(got);
        setError('');
        if (!got.incident.ended) timer = window.setTimeout(load, POLL_MS);
      }, (e: unknown) => {
        if (abort.signal.aborted) return;
        setError(e instanceof ApiError ? [e.message, e.remedy].filter(Boolean).join(': ') : String(e));
      });
    };
    load();
    return () => (abort.abort(), clearTimeout(timer));
  }, [cls]);
  if (error && !d) return <main class="incidents"><h1>Incident</h1><p class="sentence">{error}. <a href={formatView({ ...HOME, page: 'incidents' })}>All incidents</a></p></main>;
  if (!d) return <main class="incidents"><h1>Incident</h1></main>;
  const i = d.incident;
  const reel = reelOf(d);
  const began = Math.floor(unix(i.began));
  const at = view.value.at ?? began + 2;
  const seek = (t: number): void => replace({ at: t });
  const m = reel.tick.length > 0 ? d.moments![indexAt(reel, at)] : null;
  // That of the second on the screen is drawn there.
  const others = (d.deadlocks ?? []).filter((x) => x.tick !== m?.tick);
  const now = serverNow();
  const file = `/api/incident.html?id=${encodeURIComponent(i.id)}`;
  return (
    <main class="incidents">
      <header class="page-head">
        <div class="title-line">
          <h1>{i.server}, <Moment t={began} now={now} /></h1>
          <p class="facts">
            <a href={formatView({ ...HOME, page: 'server', id: i.instance, range: fixed(d.from - 60, d.to + 60), at: began })}>charts</a>
            <a href={file} download title="Literals in statements are left out">one HTML file</a>
            <a href={`${file}&literals=true`} download>with literals</a>
          </p>
        </div>
        <p class={`sentence ${i.severity === 'info' ? '' : i.severity}`}>{d.story.first}</p>
        {d.story.ended && <p>{d.story.ended}</p>}
        {i.cut && <p class="quiet">It was not kept whole: {i.cut}.</p>}
      </header>
      <section aria-labelledby="s-story"><h2 id="s-story">What happened</h2><Story steps={d.story.steps ?? []} onSeek={seek} /></section>
      {(d.lines ?? []).length > 0 && <div class="minis">{d.lines!.filter((l) => l.values.some((v) => v)).map((l) => <Small key={l.key} l={l} d={d} at={at} />)}</div>}
      <section aria-labelledby="s-film">
        <h2 id="s-film">Second by second</h2>
        {m ? <><Player reel={reel} at={at} onSeek={seek} /><MomentView m={m} /></> : <p class="quiet">No second of it was kept.</p>}
      </section>
      {others.length > 0 && <section aria-labelledby="s-dead"><h2 id="s-dead">Deadlocks at other seconds</h2>{others.map((x) => <DeadlockDrawing key={x.tick} d={x} />)}</section>}
      {(d.changed ?? []).length > 0 && (
        <section aria-labelledby="s-changed">
          <h2 id="s-changed">What changed in the hour before</h2>
          <ul class="changed">{d.changed!.map((e) => <li key={e.id}><Moment t={unix(e.time)} now={now} /> {e.text || `${e.subject ?? e.kind}: ${e.old ?? ''} → ${e.new ?? ''}`}</li>)}</ul>
        </section>
      )}
      {d.innodb && <details class="fold"><summary>InnoDB status at the beginning</summary><pre tabIndex={0}>{d.innodb}</pre></details>}
    </main>
  );
}
