/** One second of a server: who did what, who waited for whom. */
import type { Deadlock, LockWait, Moment, Session } from '../api';
import { human } from '../common/format';
import { Remedy } from '../common/parts';
import { inUnit } from './units';
import { momentSentence, trees, waitWords, type Node } from './tree';

const WAIT_WORDS: Record<string, string> = { row_lock: 'row lock', metadata_lock: 'metadata lock', table_lock: 'table lock', tmp_disk_table: 'table on disk' };
const waitName = (w: string): string => WAIT_WORDS[w] ?? w;

const who = (s: { id: number; user?: string; host?: string }): string => `${s.id}${s.user ? ` ${s.user}${s.host ? `@${s.host}` : ''}` : ''}`;

function Branch({ n, m }: { n: Node; m: Moment }) {
  const s = (m.sessions ?? []).find((x) => x.id === n.id);
  const as = s ?? (m.locks ?? []).find((l) => l.blocker.id === n.id)?.blocker ?? { id: n.id };
  const root = !n.wait ? (m.blockers ?? []).find((b) => b.id === n.id) : undefined;
  return (
    <li>
      <p>
        <b>{who(as)}</b>
        {n.wait && <span> waits for {waitWords(n.wait)}{s ? ` for ${human(s.seconds, 's')}` : ''}</span>}
        {!n.wait && <span> keeps {n.count} waiting{as.transaction ? `, ${human(as.transaction, 's')} in a transaction` : ''}{as.command === 'Sleep' ? ', idle' : ''}</span>}
        {as.statement && <code class="sql">{as.statement}</code>}
        {root?.ends && <Remedy text={root.ends} />}
      </p>
      {n.under.length > 0 && <ul>{n.under.map((u, k) => <Branch key={k} n={u} m={m} />)}</ul>}
    </li>
  );
}

/** Who waits for whom. */
export function LockTree({ m }: { m: Moment }) {
  const roots = trees(m.locks ?? []);
  if (roots.length === 0) return null;
  return (
    <section aria-labelledby="s-locks">
      <h2 id="s-locks">Who waits for whom</h2>
      <ul class="lock-tree">{roots.map((n) => <Branch key={n.id} n={n} m={m} />)}</ul>
    </section>
  );
}

function SessionRow({ s, lock }: { s: Session; lock?: LockWait }) {
  return (
    <tr class={s.blocker ? 'waits' : ''} data-session={s.id}>
      <td class="num">{s.id}</td>
      <td>{s.user}{s.host && <span class="quiet">@{s.host}</span>}</td>
      <td>{s.schema}</td>
      <td class="num">{human(s.seconds, 's')}</td>
      <td class="num">{s.transaction ? human(s.transaction, 's') : ''}</td>
      <td>{waitName(lock?.kind ?? s.wait)}{s.blocker ? ` ← ${s.blocker}` : ''}</td>
      <td class="c-sql">{s.statement ? <code>{s.statement}</code> : <span class="quiet">{s.state || s.command}</span>}</td>
    </tr>
  );
}

/** The sessions of a second. */
export function Sessions({ m }: { m: Moment }) {
  const list = m.sessions ?? [];
  return (
    <section aria-labelledby="s-sessions">
      <h2 id="s-sessions">Sessions</h2>
      {list.length === 0 ? <p class="quiet">No statement ran in this second, and no transaction was open.</p> : (
        <div class="wide-table" tabIndex={0} role="group" aria-labelledby="s-sessions">
          <table class="list sessions">
            <thead><tr><th scope="col" class="num">ID</th><th scope="col">Who</th><th scope="col">Schema</th><th scope="col" class="num">For</th><th scope="col" class="num">Transaction</th><th scope="col">Waits for</th><th scope="col">Statement</th></tr></thead>
            <tbody>{list.map((s) => <SessionRow key={s.id} s={s} lock={(m.locks ?? []).find((l) => l.waiter === s.id)} />)}</tbody>
          </table>
        </div>
      )}
      <p class="quiet">{m.connected} connected, {m.sleeping} of them idle{m.more ? `; ${m.more} more ran and are not listed` : ''}.</p>
    </section>
  );
}

/** A deadlock drawn: what each transaction held, and what it waited for. */
export function DeadlockDrawing({ d }: { d: Deadlock }) {
  const list = d.transactions ?? [];
  return (
    <div class="deadlock">
      <ol>
        {list.map((t, i) => (
          <li key={t.name} class={t.victim ? 'victim' : ''}>
            <p><b>{t.name}</b> {t.session ? who({ id: t.session, user: t.user, host: t.host }) : ''}{t.victim && <span class="bad"> ✕ rolled back</span>}</p>
            {t.statement && <code class="sql">{t.statement}</code>}
            <dl>
              {(t.holds ?? []).length > 0 && <div><dt>holds</dt><dd>{t.holds!.map((h) => <span key={h}>{h}</span>)}</dd></div>}
              {(t.waits ?? []).length > 0 && <div><dt>waits for</dt><dd>{t.waits!.map((h) => <span key={h}>{h}</span>)}</dd></div>}
            </dl>
            {list.length > 1 && <p class="to" aria-hidden="true">{i < list.length - 1 ? `waits for ${list[i + 1].name} →` : `waits for ${list[0].name} ↩`}</p>}
          </li>
        ))}
      </ol>
      {d.text && <details class="fold"><summary>as InnoDB tells it</summary><pre tabIndex={0}>{d.text}</pre></details>}
    </div>
  );
}

const NUMBERS: [string, string, string][] = [
  ['questions_per_second', 'questions', '/s'], ['threads_running', 'running', ''], ['row_lock_waits', 'row lock waits', ''], ['history_list', 'history list', ''],
  ['replication_lag', 'lag', 's'], ['cpu_busy', 'CPU', '%'], ['io_pressure', 'IO pressure', '%'],
];

/** All of a second. */
export function MomentView({ m }: { m: Moment }) {
  const said = momentSentence(m);
  const numbers = m.numbers ?? {};
  return (
    <div class="moment">
      <p class={`sentence ${said.tone}`}>{said.text}</p>
      <p class="facts">{NUMBERS.filter(([k]) => numbers[k] !== undefined).map(([k, name, unit]) => <span key={k}>{name} {inUnit(numbers[k], unit)}</span>)}</p>
      <LockTree m={m} />
      {!m.down && <Sessions m={m} />}
      {m.deadlock && m.deadlock.tick === m.tick && <section><h2>Deadlock</h2><DeadlockDrawing d={m.deadlock} /></section>}
    </div>
  );
}
