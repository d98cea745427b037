/** The page /alerts: what rings and will ring, who was told, silences, receivers. */
import { useState } from 'preact/hooks';
import { NO_ACT, acknowledge, fetchAlertHistory, fetchAlerts, mayAct, serverNow, silence, type Alert, type AlertsNow, type Receiver } from '../api';
import { age, stamp, unix, utc, when } from '../common/format';
import { Moment, Remedy, StateMark, useAct } from '../common/parts';
import { usePolled } from '../common/poll';
import { ends, fixed } from '../common/range';
import { view } from '../common/router';
import { instanceOf } from '../common/store';
import { HOME, formatView } from '../common/view';
import { Receivers, Silences } from './Told';
import { OwnRules, Thresholds } from './Thresholds';
import { Timeline } from './Timeline';
import { alertsSentence, toldWords } from './words';

const AROUND = 300;
const MOST = 2000;

/** The charts around what an alert is about. */
export function linkToMoment(a: Pick<Alert, 'instance' | 'began' | 'ended'>, now: number): string {
  const began = unix(a.began);
  const to = Math.min(now, (a.ended ? unix(a.ended) : now) + AROUND);
  return formatView({ ...HOME, page: 'server', id: a.instance, range: fixed(began - AROUND, Math.max(to, began + AROUND)), at: Math.round(began) });
}

function SilenceForm({ a, onDone }: { a: Alert; onDone: () => void }) {
  const [time, setTime] = useState('2h');
  const [reason, setReason] = useState('');
  const [wide, setWide] = useState(false);
  const [error, busy, act] = useAct();
  const submit = (e: Event): void => {
    e.preventDefault();
    act(() => silence(wide ? { server: a.server } : { server: a.server, finding: a.finding, subject: a.subject }, time, reason).then(onDone));
  };
  return (
    <form class="silence-form" onSubmit={submit}>
      <label>what <select value={wide ? 'all' : 'this'} onChange={(e) => setWide(e.currentTarget.value === 'all')}>
        <option value="this">{a.finding}{a.subject ? ` about ${a.subject}` : ''} on {a.server}</option>
        <option value="all">everything on {a.server}</option>
      </select></label>
      <label>for <input class="short" value={time} onInput={(e) => setTime(e.currentTarget.value)} spellcheck={false} /></label>
      <label>because <input value={reason} onInput={(e) => setReason(e.currentTarget.value)} placeholder="reason" autocomplete="off" /></label>
      <button type="submit" disabled={busy || reason.trim() === ''} title={reason.trim() === '' ? 'A silence has a reason' : undefined}>Silence</button>
      {error && <span class="bad" role="alert">{error}</span>}
    </form>
  );
}

function Row({ a, receivers, now, onChange }: { a: Alert; receivers: Receiver[]; now: number; onChange: () => void }) {
  const [quiet, setQuiet] = useState(false);
  const [error, busy, act] = useAct();
  const barred = !mayAct.value;
  const told = toldWords(a, receivers, now);
  return (
    <li data-alert={a.key} class={a.phase}>
      <StateMark state={a.severity === 'info' ? 'ok' : a.severity} wordless />
      <div>
        <p><a class="where-to" href={linkToMoment(a, now)} title="Show the charts around this moment">{a.server}</a> {a.what}</p>
        <p class="quiet">
          <span>for {age(now - unix(a.began))}, since <Moment t={unix(a.began)} now={now} /></span>
          {a.flapping && <span class="held">comes and goes</span>}
          {a.times && a.times > 1 && <span>came {a.times} times</span>}
          {a.why && <span>{a.why}</span>}
          {a.affected && a.affected.length > 0 && <span title={a.affected.join(', ')}>{a.common ? `${a.common}: told for ` : 'explains what is wrong on '}{a.affected.length > 4 ? `${a.affected.length} others` : a.affected.join(', ')}</span>}
          {a.held && <span class="held">held: {a.held}</span>}
          {told && <span>{told}</span>}
          {a.acked && <span>acknowledged{a.by ? ` by ${a.by}` : ''} {when(unix(a.acked), now)}</span>}
        </p>
        {a.evidence && a.evidence.length > 0 && <details class="fold"><summary>evidence</summary><pre>{a.evidence.join('\n')}</pre></details>}
        <p class="acts">
          {a.remedy && <Remedy text={a.remedy} />}
          {a.phase === 'firing' && !a.acked && (
            <button disabled={busy || barred} title={barred ? NO_ACT : 'Somebody knows: it is not told again until it gets worse'} onClick={() => act(() => acknowledge(a.key).then(onChange))}>Acknowledge</button>
          )}
          <button disabled={barred} title={barred ? NO_ACT : undefined} aria-expanded={quiet} onClick={() => setQuiet(!quiet)}>Silence…</button>
          {error && <span class="bad" role="alert">{error}</span>}
        </p>
        {quiet && <SilenceForm a={a} onDone={() => (setQuiet(false), onChange())} />}
      </div>
    </li>
  );
}

/** The page. */
export function Alerts() {
  const { id, range } = view.value;
  const [all, setAll] = useState<AlertsNow | null>(null);
  const [history, setHistory] = useState<Alert[] | null>(null);
  const [turn, setTurn] = useState(0);
  usePolled(fetchAlerts, setAll, 2000, [turn]);
  const key = range.live ? range.span : `${range.from}-${range.to}`;
  usePolled(() => {
    const { from, to } = ends(view.value.range, serverNow());
    return fetchAlertHistory(from, to, MOST);
  }, setHistory, 5000, [key, turn]);
  const now = serverNow();
  if (!all) return <main class="alerts"><h1>Alerts</h1></main>;
  const here = (a: Alert): boolean => id === '' || a.instance === id;
  const seen: AlertsNow = { ...all, alerts: (all.alerts ?? []).filter(here) };
  const said = alertsSentence(seen);
  const receivers = all.receivers ?? [];
  const changed = (): void => setTurn(turn + 1);
  const group = (phase: Alert['phase'], name: string) => {
    const list = (seen.alerts ?? []).filter((a) => a.phase === phase);
    if (list.length === 0) return null;
    return (
      <section aria-labelledby={`s-${phase}`}>
        <h2 id={`s-${phase}`}>{name}</h2>
        <ul class="ringing">{list.map((a) => <Row key={a.key} a={a} receivers={receivers} now={now} onChange={changed} />)}</ul>
      </section>
    );
  };
  const { from, to } = ends(range, now);
  return (
    <main class="alerts">
      <header class="page-head">
        <h1>Alerts{id ? ` of ${instanceOf(id)?.name ?? id}` : ''}</h1>
        <p class={`sentence lead ${said.tone}`} aria-live="polite">{said.text}</p>
      </header>
      {group('firing', 'Firing')}
      {group('pending', 'Will ring if it lasts')}
      {group('resolved', 'Just ended')}
      <section aria-labelledby="s-history">
        <h2 id="s-history" title={`${stamp(from)} – ${stamp(to)} here\n${utc(from)} – ${utc(to)}`}>What rang</h2>
        {history && <Timeline list={history.filter(here)} from={from} to={to} now={now} />}
        {history && history.length >= MOST && <p class="quiet">These are the newest {MOST} that rang; there were more in this range.</p>}
      </section>
      <Silences list={all.silences ?? []} now={now} onChange={changed} />
      <Receivers list={receivers} now={now} onChange={changed} />
      <Thresholds />
      <OwnRules />
    </main>
  );
}
