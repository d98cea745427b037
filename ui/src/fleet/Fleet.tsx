/** The fleet: one row per instance, worst first. */
import { useState } from 'preact/hooks';
import { fetchSelf, serverNow, type Instance, type Self } from '../api';
import { age, exact, human, shortVersion } from '../common/format';
import { Since, Sparkline, StateMark, Stale } from '../common/parts';
import { usePolled } from '../common/poll';
import { go, replace, view } from '../common/router';
import { fleet } from '../common/store';
import { HOME, formatView } from '../common/view';
import { Tonight } from '../findings/Tonight';
import { STATES, choices, linesOf, type Line } from './lines';
import { fleetSentence } from './sentence';

const HEADS: [string, string, string][] = [
  ['', 'State', ''], ['name', 'Instance', ''], ['', 'What is going on', ''], ['qps', 'Questions/s', 'num'], ['threads', 'Running', 'num'],
  ['lag', 'Lag', 'num'], ['cpu', 'CPU', 'num'], ['version', 'Version', ''], ['role', 'Role', ''],
];

function linkOf(i: Instance): string {
  return formatView({ ...HOME, page: 'server', id: i.id });
}

/** The button that shows one by one what a cause explains. */
function Fold({ id, effects }: { id: string; effects: Instance[] }) {
  const { open } = view.value;
  const on = open.includes(id);
  const names = effects.map((i) => i.name);
  return (
    <button class="bare link fold-button" aria-expanded={on} title={names.join(', ')} onClick={() => go({ open: on ? open.filter((o) => o !== id) : [...open, id] })}>
      {on ? '▾' : '▸'} and because of it {names.length > 3 ? `${names.length} others` : names.join(', ')}
    </button>
  );
}

function Row({ i, now, effects, inner }: { i: Instance; now: number; effects: Instance[]; inner: boolean }) {
  const open = (e: MouseEvent): void => {
    if ((e.target as Element).closest('a,button') || getSelection()?.toString()) return;
    go({ ...HOME, page: 'server', id: i.id });
  };
  const dead = i.state === 'down';
  return (
    <tr class={`row ${i.state} ${i.kind}-row ${inner ? 'effect' : ''}`} data-instance={i.id} onClick={open}>
      <td class="c-state"><StateMark state={i.state} /></td>
      <td class="c-name"><a href={linkOf(i)} title={i.address && i.address !== i.name ? `${i.name}\n${i.address}` : i.name}>{i.name}</a>{i.address && i.address !== i.name && <small>{i.address}</small>}</td>
      <td class="c-words" title={i.words}>
        <span class={i.state === 'ok' ? 'quiet' : ''}>{i.words}</span>
        {i.state !== 'ok' && <Since t={i.since} words={i.words} now={now} />}
        {' '}<Stale seen={i.seen} now={now} />
        {effects.length > 0 && <Fold id={i.id} effects={effects} />}
      </td>
      <td class="c-qps num">
        <span class="spark-cell">{i.spark && i.spark.avg.some((v) => v !== null) && <Sparkline spark={i.spark} full={i.kind === 'host' ? 1 : undefined} />}</span>
        <b title={exact(i.qps, '/s')}>{i.kind === 'host' || (dead && i.qps === null) ? '' : human(i.qps)}</b>
      </td>
      <td class="c-threads num" title={exact(i.threads_running)}>{i.threads_running === null ? '' : human(i.threads_running)}</td>
      <td class="c-lag num" title={exact(i.lag, 's')}>{i.lag === null ? '' : human(i.lag, 's')}</td>
      <td class="c-cpu num" title={exact(i.cpu, '%')}>{i.cpu === null ? '' : human(i.cpu, '%')}</td>
      <td class="c-version" title={i.version}>{[i.flavour, shortVersion(i.version ?? '')].filter(Boolean).join(' ')}</td>
      <td class="c-role">{i.kind === 'host' ? 'host' : i.role}</td>
    </tr>
  );
}

function LineRow({ l, now }: { l: Line; now: number }) {
  switch (l.kind) {
    case 'instance': return <Row i={l.i} now={now} effects={l.effects} inner={l.of !== undefined} />;
    case 'group': return <tr class="group-row"><th colSpan={9} scope="rowgroup"><StateMark state={l.state} wordless /> {l.name} <small>{l.count}</small></th></tr>;
    case 'cause':
      return (
        <tr class={`row ${l.state} cause-row`} data-cause={l.key}>
          <td class="c-state"><StateMark state={l.state} /></td>
          <td class="c-name"><b title={l.because.name}>{l.because.name}</b><small>not watched</small></td>
          <td class="c-words" colSpan={7}><span>{l.because.what}</span><Fold id={l.key} effects={l.effects} /></td>
        </tr>
      );
  }
}

function Head() {
  const sort = view.value.sort;
  const turn = (c: string): void => {
    const numeric = ['qps', 'threads', 'lag', 'cpu'].includes(c);
    const order = numeric ? [`-${c}`, c, ''] : [c, `-${c}`, ''];
    go({ sort: order[(order.indexOf(sort) + 1) % 3] });
  };
  return (
    <thead>
      <tr>
        {HEADS.map(([c, name, cls]) => (
          <th key={name} scope="col" class={cls} aria-sort={sort === c && c ? 'ascending' : sort === `-${c}` ? 'descending' : undefined}>
            {c ? <button class="bare" onClick={() => turn(c)}>{name}<i>{sort === c ? ' ↑' : sort === `-${c}` ? ' ↓' : ''}</i></button> : name}
          </th>
        ))}
      </tr>
    </thead>
  );
}

function Empty() {
  return (
    <section class="empty-fleet">
      <p class="sentence">Nothing is watched yet.</p>
      <p>Start Risso with a server to watch; no agent is needed, and nothing is changed:</p>
      <pre>risso serve --dsn 'user:password@tcp(host:3306)/'</pre>
      <p>Or try it on a throw-away primary with two replicas under load:</p>
      <pre>script/demo</pre>
    </section>
  );
}

function Own() {
  const [self, setSelf] = useState<Self | null>(null);
  usePolled(fetchSelf, setSelf, 5000, []);
  if (!self) return <p class="own quiet">&nbsp;</p>;
  const parts = [
    self.cpu_cores === null ? '' : `${human(self.cpu_cores, '%')} of a core`,
    self.rss_bytes === null ? '' : `${human(self.rss_bytes, 'B')} of memory`,
    self.bytes_written_per_second === null ? '' : `${human(self.bytes_written_per_second, 'B/s')} written`,
    self.samples_per_second === null ? '' : `${human(self.samples_per_second)} values/s`,
    self.disk_bytes === null ? '' : `${human(self.disk_bytes, 'B')} on disk`,
    self.started > 0 ? `up ${age(serverNow() - self.started)}` : '',
  ].filter(Boolean);
  return <p class="own quiet">Risso {self.version} itself: {parts.join(' · ')}</p>;
}

function Filter({ list, shown, dense }: { list: Instance[]; shown: number; dense: boolean }) {
  const v = view.value;
  const { groups, flavours } = choices(list);
  const active = v.q || v.state || v.group || v.flavour;
  if (list.length < 6 && !active && groups.length === 0) return null;
  const select = (name: 'state' | 'group' | 'flavour', label: string, options: readonly (readonly [string, string])[]) => (
    <select aria-label={label} value={v[name]} onChange={(e) => go({ [name]: e.currentTarget.value })}>
      {options.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
    </select>
  );
  return (
    <div class="filter">
      <input type="search" value={v.q} placeholder="Filter by name, address, words" aria-label="Filter servers" spellcheck={false} onInput={(e) => replace({ q: e.currentTarget.value })} />
      {select('state', 'State', STATES)}
      {groups.length > 0 && select('group', 'Group', [['', 'all groups'], ...groups.map((g) => [g, g] as const)])}
      {flavours.length > 0 && select('flavour', 'Flavour', [['', 'all flavours'], ...flavours.map((f) => [f, f] as const)])}
      {(dense || groups.length > 0) && (
        <select aria-label="Order" value={v.sort} onChange={(e) => go({ sort: e.currentTarget.value })}>
          {ORDERS.filter(([value]) => (value === 'group' ? groups.length > 0 : true)).map(([value, text]) => <option key={value} value={value}>{text}</option>)}
        </select>
      )}
      {active && <span class="quiet">{shown} of {list.length} <button class="bare link" onClick={() => go({ q: '', state: '', group: '', flavour: '' })}>show all</button></span>}
    </div>
  );
}

const ORDERS: readonly [string, string][] = [
  ['', 'worst first'], ['group', 'by group'], ['name', 'by name'], ['-qps', 'most questions'], ['-threads', 'most running'], ['-lag', 'most lag'], ['-cpu', 'most CPU'],
];

// More lines than a screen has room for become short ones, side by side.
const DENSE_LINES = 18;
const DENSE_PX = 24;
const DENSE_WIDTH = 440;
const AROUND_PX = 178;

function columnsFor(lines: number): number {
  const room = Math.max(10, Math.floor((innerHeight - AROUND_PX) / DENSE_PX));
  return Math.max(1, Math.min(Math.floor((innerWidth - 40) / DENSE_WIDTH), Math.ceil(lines / room)));
}

/** The page /. */
export function Fleet() {
  const f = fleet.value;
  if (!f) return <main><h1 class="unseen">Servers</h1></main>;
  const list = f.instances ?? [];
  const said = fleetSentence(f);
  const lines = linesOf(list, view.value);
  const dense = lines.length > DENSE_LINES;
  return (
    <main>
      <h1 class="unseen">Servers</h1>
      {list.length === 0 ? <Empty /> : (
        <>
          <p class={`sentence lead ${said.tone}`} aria-live="polite">{said.text}</p>
          <Tonight id="" closed={dense} />
          <Filter list={list} shown={lines.filter((l) => l.kind === 'instance').length} dense={dense} />
          <table class={`fleet ${dense ? 'dense' : ''}`} aria-label="Instances">
            <Head />
            <tbody style={dense ? { columnCount: columnsFor(lines.length) } : undefined}>{lines.map((l) => <LineRow key={l.key} l={l} now={f.now} />)}</tbody>
          </table>
          {lines.length === 0 && <p class="quiet pad">Nothing fits the filter.</p>}
        </>
      )}
      <Own />
    </main>
  );
}
