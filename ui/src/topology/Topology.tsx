/** The page /topology: who replicates from whom, who is behind, where it is broken; now, or at an earlier moment. */
import { useState } from 'preact/hooks';
import { fetchTopology, fetchTopologyChanges, serverNow, type Picture, type TopologyAnswer, type TopologyChange, type TopologyNode } from '../api';
import { age, clock, counted, stamp, unix } from '../common/format';
import { Moment, Remedy, StateMark } from '../common/parts';
import { usePolled } from '../common/poll';
import { go, view } from '../common/router';
import { HOME, formatView } from '../common/view';
import { Drawing } from './Drawing';
import { fieldOf, lead, ofField, step, troubled } from './words';


const LIVE_MS = 2000;
const PAST_MS = 60_000;
const CHANGES_MS = 10_000;
const DAY = 86_400;
const MOST_CHANGES = 200;

/** Live, or a moment: the steps lead from change to change. */
function TimeControl({ at, changes }: { at: number | null; changes: TopologyChange[] }) {
  const back = step(changes, at, false);
  const on = step(changes, at, true);
  const now = serverNow();
  return (
    <div class="t-time" role="group" aria-label="Time">
      <button disabled={back === null} onClick={() => go({ at: back })} title="To the change before">← change</button>
      <input type="datetime-local" step="1" aria-label="Show the topology as it was at" value={fieldOf(at ?? now)} max={fieldOf(now)} onChange={(e) => {
        const t = ofField(e.currentTarget.value);
        if (t !== null) go({ at: t });
      }} />
      <button disabled={on === null} onClick={() => go({ at: on })} title="To the next change">change →</button>
      <button aria-pressed={at === null} disabled={at === null} onClick={() => go({ at: null })}>Live</button>
    </div>
  );
}

/** What was diagnosed: the sentence, what it was seen by and what was not seen, and what to do. */
function Diagnosis({ f }: { f: NonNullable<TopologyNode['findings']>[number] }) {
  return (
    <p class={`t-found ${f.severity}`} data-finding={f.id}>
      <code>{f.id}</code> {f.what}
      {f.because ? <span class="quiet"> – follows from {f.because}</span> : <>{f.why && <span class="quiet"> – {f.why}</span>}{f.remedy && <span class="t-next">what to do: <Remedy text={f.remedy} /></span>}</>}
    </p>
  );
}

/** What is known of a server that has no page of its own, or that needs attention. */
function Server({ n, now, live }: { n: TopologyNode; now: number; live: boolean }) {
  const name = n.instance ? <a class="link" href={formatView({ ...HOME, page: 'server', id: n.instance })}>{n.name}</a> : <b>{n.name}</b>;
  return (
    <li data-server={n.name}>
      <StateMark state={n.state === 'unknown' ? 'new' : n.state} wordless />
      <div>
        {name} <span>{n.words.join(', ')}</span>
        {n.state !== 'ok' && live && <span class="quiet"> – for {age(now - unix(n.since))}</span>}
        {!n.instance && <span class="quiet"> – not watched{(n.told_by ?? []).length > 0 && `, known from ${n.told_by!.join(', ')}`}</span>}
        {!n.seen && n.why_text && <p class="quiet">{n.why_text}</p>}
        {(n.findings ?? []).map((f) => <Diagnosis key={`${f.id} ${f.subject ?? ''}`} f={f} />)}
      </div>
    </li>
  );
}

/** The servers that need attention, and the one that was chosen in the drawing. */
function Servers({ p, chosen, now, live }: { p: Picture; chosen: string; now: number; live: boolean }) {
  const bad = troubled(p);
  const picked = p.nodes.find((n) => n.id === chosen && !bad.includes(n));
  const odd = p.surprises ?? [];
  if (bad.length === 0 && !picked && odd.length === 0 && !p.left) return null;
  return (
    <section aria-label="Servers that need attention" class="t-servers">
      <ul class="findings">
        {picked && <Server n={picked} now={now} live={live} />}
        {bad.map((n) => <Server key={n.id} n={n} now={now} live={live} />)}
        {odd.map((s) => <li key={s}><StateMark state="warning" wordless /><div>{s}</div></li>)}
        {!!p.left && <li><StateMark state="warning" wordless /><div>{counted(p.left, 'further address', 'further addresses')} that servers tell of {p.left === 1 ? 'was' : 'were'} not asked: there are too many.</div></li>}
      </ul>
    </section>
  );
}

/** What changed, each a link to that moment. */
function Changes({ list, left, at, now }: { list: TopologyChange[]; left: boolean; at: number | null; now: number }) {
  return (
    <section aria-label="What changed" class="t-changes">
      <h2>What changed in the last day</h2>
      {list.length === 0 && <p class="quiet">Nothing is kept yet.</p>}
      <ul>
        {list.map((c) => {
          const from = Math.ceil(unix(c.time));
          const here = at !== null && !c.gap && at >= from && at <= Math.ceil(unix(c.until));
          return (
            <li key={`${c.time} ${c.gap}`} class={c.gap ? 't-gap' : here ? 't-here' : ''} data-gap={c.gap ? '' : undefined}>
              {c.gap ? <Moment t={unix(c.time)} now={now} /> : <a class="link" href={formatView({ ...HOME, page: 'topology', at: from })} aria-current={here ? 'true' : undefined}><Moment t={unix(c.time)} now={now} /></a>}
              <span>{(c.words ?? []).join('; ')}</span>
            </li>
          );
        })}
      </ul>
      {left && <p class="quiet">There are more that are older: choose a time to see them.</p>}
    </section>
  );
}

/** Words about the time that is shown. */
function When({ a, at, now }: { a: TopologyAnswer; at: number | null; now: number }) {
  if (!a.known || !a.topology) {
    return (
      <p class="quiet">
        {a.before && <>known before: <a class="link" href={formatView({ ...HOME, page: 'topology', at: Math.floor(unix(a.before)) })}>{stamp(unix(a.before))}</a></>}
        {a.before && a.after && ' · '}
        {a.after && <>known after: <a class="link" href={formatView({ ...HOME, page: 'topology', at: Math.ceil(unix(a.after)) })}>{stamp(unix(a.after))}</a></>}
      </p>
    );
  }
  if (at !== null) return <p class="quiet">as it was from <Moment t={unix(a.from!)} now={now} /> to <Moment t={unix(a.until!)} now={now} />; how far replicas were behind then is on their pages</p>;
  const old = now - unix(a.topology.time);
  return <p class="quiet">looked at {clock(unix(a.topology.time))}{old > 3 * a.every && <span class="stale"> {age(old)} old</span>}{a.from && unix(a.from) > 0 && <>, the same since <Moment t={unix(a.from)} now={now} /></>}</p>;
}

/** The page. */
export function Topology() {
  const { at } = view.value;
  const [a, setA] = useState<TopologyAnswer | null>(null);
  const [shown, setShown] = useState<number | null>(at);
  const [chosen, setChosen] = useState('');
  const [changes, setChanges] = useState<{ changes: TopologyChange[]; left: boolean }>({ changes: [], left: false });
  usePolled(() => fetchTopology(at), (got) => {
    setA(got);
    setShown(at);
  }, at === null ? LIVE_MS : PAST_MS, [at]);
  usePolled(() => {
    const now = serverNow();
    const to = at === null ? now : Math.min(now, at + DAY / 2);
    return fetchTopologyChanges(to - DAY, to, MOST_CHANGES);
  }, setChanges, CHANGES_MS, [at]);
  const now = serverNow();
  const time = <TimeControl at={at} changes={changes.changes} />;
  if (!a || shown !== at) return <main class="topology"><header class="page-head"><h1>Topology</h1></header>{time}</main>;
  const said = lead(a);
  return (
    <main class="topology">
      <header class="page-head">
        <h1>Topology</h1>
        <p class={`sentence lead ${said.tone}`} aria-live="polite">{said.text}</p>
        <When a={a} at={at} now={now} />
      </header>
      {time}
      {a.topology && <Servers p={a.topology} chosen={chosen} now={now} live={at === null} />}
      {a.topology && <Drawing p={a.topology} chosen={chosen} onChoose={(id) => setChosen(id === chosen ? '' : id)} />}
      <Changes list={changes.changes} left={changes.left} at={at} now={now} />
    </main>
  );
}
