/** The fleet: one row per instance, worst first. */
import { useState } from 'preact/hooks';
import { fetchSelf, serverNow, type Instance, type Self } from '../api';
import { age, exact, human, shortVersion } from '../common/format';
import { sortInstances } from '../common/order';
import { Since, Sparkline, StateMark, Stale } from '../common/parts';
import { usePoll } from '../common/poll';
import { go, view } from '../common/router';
import { fleet } from '../common/store';
import { HOME, formatView } from '../common/view';
import { fleetSentence } from './sentence';

const HEADS: [string, string, string][] = [
  ['', 'State', ''], ['name', 'Instance', ''], ['', 'What is going on', ''], ['qps', 'Questions/s', 'num'], ['threads', 'Running', 'num'],
  ['lag', 'Lag', 'num'], ['cpu', 'CPU', 'num'], ['version', 'Version', ''], ['role', 'Role', ''],
];

function linkOf(i: Instance): string {
  return formatView({ ...HOME, page: 'server', id: i.id });
}

function Row({ i, now }: { i: Instance; now: number }) {
  const open = (e: MouseEvent): void => {
    if ((e.target as Element).closest('a,button') || getSelection()?.toString()) return;
    go({ ...HOME, page: 'server', id: i.id });
  };
  const dead = i.state === 'down';
  return (
    <tr class={`row ${i.state} ${i.kind}-row`} data-instance={i.id} onClick={open}>
      <td class="c-state"><StateMark state={i.state} /></td>
      <td class="c-name"><a href={linkOf(i)} title={i.name}>{i.name}</a>{i.address && i.address !== i.name && <small title={i.address}>{i.address}</small>}</td>
      <td class="c-words" title={i.words}>
        <span class={i.state === 'ok' ? 'quiet' : ''}>{i.words}</span>
        {i.state !== 'ok' && <Since t={i.since} words={i.words} now={now} />}
        {' '}<Stale seen={i.seen} now={now} />
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
  usePoll(async () => setSelf(await fetchSelf()), 5000, []);
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

/** The page /. */
export function Fleet() {
  const f = fleet.value;
  if (!f) return <main />;
  const list = f.instances ?? [];
  const said = fleetSentence(f);
  return (
    <main>
      {list.length === 0 ? <Empty /> : (
        <>
          <p class={`sentence lead ${said.tone}`} aria-live="polite">{said.text}</p>
          <table class="fleet" aria-label="Instances">
            <Head />
            <tbody>{sortInstances(list, view.value.sort).map((i) => <Row key={i.id} i={i} now={f.now} />)}</tbody>
          </table>
        </>
      )}
      <Own />
    </main>
  );
}
