/** Who is told, and what is not. */
import { useState } from 'preact/hooks';
import { NO_ACT, endSilence, mayAct, silence, testReceiver, type Receiver, type Silence } from '../api';
import { stamp, unix, utc } from '../common/format';
import { Moment, StateMark, useAct } from '../common/parts';
import { matchWords, receiverWords, silenceLeft } from './words';

function SilenceRow({ s, now, onChange }: { s: Silence; now: number; onChange: () => void }) {
  const [error, busy, act] = useAct();
  return (
    <li data-silence={s.id}>
      <div>
        <p>{matchWords(s.match)}: {s.reason}</p>
        <p class="quiet"><span title={`until ${stamp(unix(s.end))} here\n${utc(unix(s.end))}`}>until <Moment t={unix(s.end)} now={now} />, {silenceLeft(s, now)}</span>{s.by && <span>by {s.by}</span>}</p>
      </div>
      <button disabled={busy || !mayAct.value} title={mayAct.value ? undefined : NO_ACT} onClick={() => act(() => endSilence(s.id).then(onChange))}>End it</button>
      {error && <span class="bad" role="alert">{error}</span>}
    </li>
  );
}

function NewSilence({ onChange }: { onChange: () => void }) {
  const [f, setF] = useState({ server: '', group: '', finding: '', time: '2h', reason: '' });
  const [error, busy, act] = useAct();
  const field = (name: keyof typeof f, label: string, placeholder: string) => (
    <label>{label} <input class={name === 'time' ? 'short' : ''} value={f[name]} placeholder={placeholder} onInput={(e) => setF({ ...f, [name]: e.currentTarget.value })} spellcheck={false} autocomplete="off" /></label>
  );
  const submit = (e: Event): void => {
    e.preventDefault();
    act(() => silence({ server: f.server || undefined, group: f.group || undefined, finding: f.finding || undefined }, f.time, f.reason).then(() => (setF({ ...f, reason: '' }), onChange())));
  };
  return (
    <details class="fold">
      <summary>Silence something else</summary>
      <form class="silence-form" onSubmit={submit}>
        {field('server', 'server', 'shop-*')}{field('group', 'group', 'shop')}{field('finding', 'finding', 'lock.*')}{field('time', 'for', '2h')}{field('reason', 'because', 'reason')}
        <button type="submit" disabled={busy || !mayAct.value || f.reason.trim() === ''} title={mayAct.value ? 'What is left empty fits all, but one must be there; * fits any part of a name' : NO_ACT}>Silence</button>
        {error && <span class="bad" role="alert">{error}</span>}
      </form>
    </details>
  );
}

/** What is silenced, and until when. */
export function Silences({ list, now, onChange }: { list: Silence[]; now: number; onChange: () => void }) {
  return (
    <section aria-labelledby="s-silences">
      <h2 id="s-silences">Silences</h2>
      {list.length === 0 ? <p class="quiet">Nothing is silenced.</p> : <ul class="silences">{list.map((s) => <SilenceRow key={s.id} s={s} now={now} onChange={onChange} />)}</ul>}
      <NewSilence onChange={onChange} />
    </section>
  );
}

function ReceiverRow({ r, now, onChange }: { r: Receiver; now: number; onChange: () => void }) {
  const [error, busy, act] = useAct();
  const [sent, setSent] = useState(false);
  const messages = r.messages ?? [];
  return (
    <li data-receiver={r.name}>
      <StateMark state={r.failing ? 'critical' : r.waiting > 0 ? 'warning' : 'ok'} wordless />
      <div>
        <p><b>{r.name}</b> <span class={r.failing ? 'bad' : 'quiet'}>{receiverWords(r, now)}</span></p>
        {messages.length > 0 && (
          <details class="fold">
            <summary>last messages</summary>
            <ul>
              {messages.map((m) => (
                <li key={m.id}><Moment t={unix(m.made)} now={now} /> {m.title} <span class={m.delivered ? 'quiet' : 'bad'}>{m.delivered ? 'delivered' : m.dropped ? 'given up' : m.tries > 0 ? `tried ${m.tries === 1 ? 'once' : `${m.tries} times`}` : 'waits'}{m.error && !m.delivered ? `: ${m.error}` : ''}</span></li>
              ))}
            </ul>
          </details>
        )}
      </div>
      <button disabled={busy || !mayAct.value} title={mayAct.value ? undefined : NO_ACT} onClick={() => (setSent(false), act(() => testReceiver(r.name).then(() => (setSent(true), onChange()))))}>{busy ? 'sending' : 'Send a test'}</button>
      {sent && <span class="quiet" role="status">delivered</span>}
      {error && <span class="bad" role="alert">{error}</span>}
    </li>
  );
}

/** Who is told, and whether messages arrive. */
export function Receivers({ list, now, onChange }: { list: Receiver[]; now: number; onChange: () => void }) {
  return (
    <section aria-labelledby="s-receivers">
      <h2 id="s-receivers">Receivers</h2>
      {list.length === 0 && (
        <>
          <p class="quiet">Nobody is told. Add to the file that <code>risso serve --config</code> reads:</p>
          <pre>{'alerts:\n  receivers:\n    - name: oncall\n      webhook: {url_file: /etc/risso/hook.url}'}</pre>
        </>
      )}
      <ul class="receivers">{list.map((r) => <ReceiverRow key={r.name} r={r} now={now} onChange={onChange} />)}</ul>
    </section>
  );
}
