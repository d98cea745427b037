/** The page /groups: who is the primary of each group, who would follow, what was changed and what that cost; and changing it. */
import { useState } from 'preact/hooks';
import { fetchControllers, fetchStanding, serverNow, type Controller, type Standing } from '../api';
import { unix } from '../common/format';
import { Moment, Remedy, StateMark } from '../common/parts';
import { usePolled } from '../common/poll';
import { view } from '../common/router';
import { HOME, formatView } from '../common/view';
import { GroupRoom } from './Group';
import { controllerWords, groupSaid, lead, primaryOf } from './words';

const LIVE_MS = 1000;
const CONTROLLERS_MS = 5000;

function List({ a, chosen, now }: { a: Standing; chosen: string; now: number }) {
  return (
    <table class="g-list" aria-label="Groups">
      <thead><tr><th scope="col">Group</th><th scope="col">What is going on</th><th scope="col">Primary</th><th scope="col">Since</th><th scope="col" class="num">Epoch</th></tr></thead>
      <tbody>
        {a.groups.map((s) => {
          const said = groupSaid(s, a.automatic, now);
          return (
            <tr key={s.group.name} data-listed={s.group.name} class={s.group.name === chosen ? 'chosen' : ''}>
              <td><StateMark state={said.tone} wordless /> <a class="link" href={formatView({ ...HOME, page: 'groups', cls: s.group.name })} aria-current={s.group.name === chosen ? 'true' : undefined}>{s.group.name}</a></td>
              <td>{said.text}</td>
              <td>{primaryOf(s)?.name ?? 'none'}</td>
              <td><Moment t={unix(s.group.since)} now={now} /></td>
              <td class="num">{s.group.epoch}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function Controllers({ self, list }: { self: string; list: Controller[] }) {
  if (list.length === 0) return null;
  return (
    <section aria-labelledby="g-controllers">
      <h2 id="g-controllers">Controllers</h2>
      <ul class="findings">
        {list.map((c) => (
          <li key={c.name} data-controller={c.name}>
            <StateMark state={c.error ? 'down' : c.trouble ? 'warning' : 'ok'} wordless />
            <div><b>{c.url ? <a class="link" href={c.url} target="_blank" rel="noreferrer">{c.name}</a> : c.name}</b> <span>{controllerWords(c)}</span>{c.name === self && <span class="quiet">this page is its</span>}</div>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The page. */
export function Groups() {
  const { cls } = view.value;
  const [a, setA] = useState<Standing | null>(null);
  const [turn, setTurn] = useState(0);
  const [controllers, setControllers] = useState<{ self: string; members: Controller[] }>({ self: '', members: [] });
  usePolled(fetchStanding, setA, LIVE_MS, [turn]);
  usePolled(fetchControllers, setControllers, CONTROLLERS_MS, []);
  const now = serverNow();
  if (!a) return <main class="groups"><h1>Groups</h1></main>;
  if (a.groups.length === 0) {
    return (
      <main class="groups">
        <header class="page-head"><h1>Groups</h1></header>
        <p class="sentence">There is no group yet: a group is a primary and the servers that replicate from it, and can be switched over and failed over. <Remedy text="risso group create shop --dsn 'db1=…' --dsn 'db2=…' --dsn 'db3=…'" /></p>
      </main>
    );
  }
  const said = lead(a, now);
  const chosen = a.groups.find((s) => s.group.name === cls) ?? (cls === '' ? a.groups[0] : undefined);
  return (
    <main class="groups">
      <header class="page-head">
        <h1>Groups</h1>
        {a.groups.length > 1 && <p class={`sentence lead ${said.tone}`}>{said.text}</p>}
      </header>
      {(a.groups.length > 1 || !chosen) && <List a={a} chosen={chosen?.group.name ?? ''} now={now} />}
      {chosen ? <GroupRoom key={chosen.group.name} s={chosen} a={a} now={now} onChange={() => setTurn(turn + 1)} /> : <p class="sentence">There is no group {cls}.</p>}
      <Controllers self={controllers.self} list={controllers.members} />
    </main>
  );
}
