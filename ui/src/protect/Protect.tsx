/** The page /protect: how every server is protected, the worst first. */
import { useState } from 'preact/hooks';
import { fetchProtect, serverNow, type Protected } from '../api';
import { age, human, stamp, utc } from '../common/format';
import { Copy, Remedy, StateMark } from '../common/parts';
import { usePolled } from '../common/poll';
import { go } from '../common/router';
import { HOME, formatView } from '../common/view';
import { Progress } from './parts';
import { configBlock, protectSentence, until, windowText } from './words';

const linkOf = (s: Protected): string => formatView({ ...HOME, page: 'protect', id: s.id });
const both = (t: number): string => `${stamp(t)} here\n${utc(t)}`;

function Row({ s, now }: { s: Protected; now: number }) {
  const open = (e: MouseEvent): void => {
    if ((e.target as Element).closest('a,button') || getSelection()?.toString()) return;
    go({ ...HOME, page: 'protect', id: s.id });
  };
  const runs = (s.running ?? []).filter((r) => r.kind !== 'mirror');
  const b = s.last_backup;
  // Other critical things are named, the rest is counted.
  const also = (s.findings ?? []).slice(1).filter((f) => f.severity === 'critical').slice(0, 3);
  const more = (s.findings ?? []).length - 1 - also.length;
  return (
    <tr class={`row ${s.state}`} data-protected={s.id} onClick={open}>
      <td class="c-state"><StateMark state={s.state} /></td>
      <td class="c-name"><a href={linkOf(s)} title={s.name}>{s.name}</a>{s.address && s.address !== s.name && <small title={s.address}>{s.address}</small>}</td>
      <td class="c-words">
        <span class={s.state === 'ok' ? 'quiet' : ''}>{s.words}</span>
        {also.map((f) => <small key={f.id} class="also">{f.what}</small>)}
        {more > 0 && <span class="quiet"> and {more} more</span>}
        {runs.map((r) => <Progress key={r.job} r={r} now={now} />)}
      </td>
      <td class="c-last">{b ? <span title={both(b.began)}>{age(now - b.began)} ago</span> : s.source ? <span class="quiet">of {s.source}</span> : <b class="bad">never</b>}{b && <small>{human(b.bytes, 'B')}</small>}</td>
      <td class="c-proven">{s.proven_at ? <span title={both(s.proven_at)}>{age(now - s.proven_at)} ago</span> : s.source ? <span class="quiet">of {s.source}</span> : <b class={b ? 'unproven' : 'bad'}>never</b>}</td>
      <td class="c-window">{s.window ? <span title={`${both(s.window.from)}\nto\n${both(s.window.to)}`}>{windowText(s.window, now)}</span> : <span class="quiet">{b ? 'backups only' : ''}</span>}</td>
      <td class="c-recovery num" title="seconds from nothing to a server with the data, as measured by the last successful drill">{s.recovery ? human(s.recovery, 's') : ''}</td>
      <td class="c-due">{s.next?.due ? <span title={both(s.next.due)}>{s.next.kind} {until(s.next.due, now)}</span> : <span class="quiet">{s.plan ? 'by hand' : s.source ? '' : 'nothing planned'}</span>}</td>
    </tr>
  );
}

/** Nothing is protected: how to begin. */
export function Begin({ name, byHand }: { name: string; byHand: boolean }) {
  const block = configBlock(name);
  return (
    <section class="begin">
      {byHand && <p>To take a backup now: <Remedy text={`risso backup --dsn … --to /backup/${name.replace(/[^\w.-]+/g, '-')}`} /></p>}
      <p>{byHand ? 'Or let' : 'Let'} this Risso do it on a schedule. Add to the file that <code>risso serve --config</code> reads; it takes effect within seconds. Without <code>--config</code>, restart it with:</p>
      <div class="block"><pre tabIndex={0}>{block}</pre><Copy text={block} /></div>
    </section>
  );
}

/** The page. */
export function Protect() {
  const [list, setList] = useState<Protected[] | null>(null);
  const busy = (list ?? []).some((s) => (s.running ?? []).some((r) => r.kind !== 'mirror'));
  usePolled(fetchProtect, setList, busy ? 1000 : 3000, [busy]);
  const now = serverNow();
  if (!list) return <main class="protect" />;
  if (list.length === 0) {
    return (
      <main class="protect">
        <header class="page-head"><h1>Protect</h1></header>
        <p class="sentence">No server is watched, so none is protected. <Remedy text="risso serve --dsn 'user:password@tcp(host:3306)/'" /></p>
      </main>
    );
  }
  const said = protectSentence(list, now);
  const bare = list.every((s) => !s.plan);
  return (
    <main class="protect">
      <header class="page-head">
        <h1>Protect</h1>
        <p class={`sentence lead ${said.tone} ${said.tone === 'ok' ? '' : 'loud'}`} aria-live="polite">{said.text}</p>
      </header>
      <table class="fleet protected" aria-label="Servers">
        <thead>
          <tr><th scope="col">State</th><th scope="col">Server</th><th scope="col">What is going on</th><th scope="col">Last backup</th><th scope="col">Last proven</th><th scope="col">Any moment of</th><th scope="col" class="num">Recovery</th><th scope="col">Next</th></tr>
        </thead>
        <tbody>{list.map((s) => <Row key={s.id} s={s} now={now} />)}</tbody>
      </table>
      {bare && <Begin name={list[0].name} byHand />}
    </main>
  );
}
