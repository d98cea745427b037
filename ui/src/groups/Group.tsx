/** One group: its members, who would follow, its policy, what was changed, and changing it. */
import { useState } from 'preact/hooks';
import { fetchForecast, fetchGroupChanges, mayFailOver, NO_FAILOVER, type GroupChange, type GroupForecast, type GroupOrder, type GroupStanding, type Standing } from '../api';
import { age, unix } from '../common/format';
import { Moment, Remedy, StateMark } from '../common/parts';
import { usePoll, usePolled } from '../common/poll';
import { fleet } from '../common/store';
import { HOME, formatView } from '../common/view';
import { Ask, type Wish } from './Ask';
import { Changes, Steps } from './Changes';
import { barredAs, candidateWords, fenceWords, forecastWords, groupSaid, holderOf, lagWords, memberState, policyWords, primaryOf, seenOf, seenWords, viewWords, type Said } from './words';

const FORECAST_MS = 4000;
const CHANGES_MS = 4000;
const FAST_MS = 700; // while the primary is being changed
const LAST = 15;
const OLD_LOOK = 5; // seconds

function Sentences({ list }: { list: Said[] }) {
  return <ul class="findings">{list.map((s) => <li key={s.text}><StateMark state={s.tone} wordless /><div>{s.text}</div></li>)}</ul>;
}

function Members({ s, f, now, wants, busy }: { s: GroupStanding; f: GroupForecast | null; now: number; wants: (w: Wish) => void; busy: string }) {
  const centers = s.group.members.some((m) => m.center);
  return (
    <table class="g-members" aria-label={`Members of ${s.group.name}`}>
      <thead><tr><th scope="col">Status</th><th scope="col">Server</th><th scope="col">Last look</th><th scope="col" class="num">Behind</th><th scope="col" class="num">Weight</th><th scope="col">{centers ? 'Center, rule' : 'Rule'}</th><th scope="col"><span class="unseen">Change it</span></th></tr></thead>
      <tbody>
        {s.group.members.map((m) => {
          const seen = seenOf(s, m.name);
          const old = seen ? now - unix(seen.at) : 0;
          const watched = fleet.value?.instances?.find((i) => i.address === m.address);
          const barred = mayFailOver.value ? busy || barredAs(f, m.name) : NO_FAILOVER;
          return (
            <tr key={m.name} data-member={m.name} data-status={m.status}>
              <td class="g-status"><StateMark state={memberState(m, seen)} wordless /><b>{m.status}</b><small>since <Moment t={unix(m.since)} now={now} /></small></td>
              <td class="g-name">{watched ? <a class="link" href={formatView({ ...HOME, page: 'server', id: watched.id })}>{m.name}</a> : <b>{m.name}</b>}<small>{m.address}</small></td>
              <td class="g-look">{seenWords(m, seen)}{old > OLD_LOOK && <span class="stale">{age(old)} old</span>}{m.fault && <small class="bad">{m.fault}</small>}{m.errant && <small>only it has <code>{m.errant}</code></small>}{m.back && <small>becomes SECONDARY when it has caught up</small>}</td>
              <td class="num g-lag">{lagWords(m, seen)}</td>
              <td class="num g-weight">{m.weight}</td>
              <td class="g-rule">{[m.center, m.rule].filter(Boolean).join(', ')}</td>
              <td class="g-acts">
                {m.status !== 'PRIMARY' && <button disabled={barred !== ''} title={barred || undefined} onClick={() => wants({ order: { do: 'switchover', group: s.group.name, to: m.name } })} aria-label={`Switch over to ${m.name}`}>Switch over…</button>}
                <button disabled={!mayFailOver.value} title={mayFailOver.value ? undefined : NO_FAILOVER} onClick={() => wants({ group: s.group.name, member: m })} aria-label={`Change ${m.name}`}>Change…</button>
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function Ready({ s, f, unasked, now, wants }: { s: GroupStanding; f: GroupForecast | null; unasked: string; now: number; wants: (o: GroupOrder) => void }) {
  const [accept, setAccept] = useState(false);
  if (!f) return <section aria-labelledby="g-ready"><h2 id="g-ready">If the primary died now</h2><p class={unasked ? 'bad' : 'quiet'}>{unasked ? `The members could not be asked: ${unasked}` : 'The members are being asked…'}</p></section>;
  const loss = (f.choice.refused ?? []).some((r) => r.code === 'loss');
  const why = !mayFailOver.value ? NO_FAILOVER : f.alive ? 'The primary answers: switch over instead' : '';
  return (
    <section aria-labelledby="g-ready" data-winner={f.choice.winner}>
      <h2 id="g-ready">{f.alive ? 'If the primary died now' : 'The primary does not answer'}</h2>
      <Sentences list={forecastWords(f, (name) => seenOf(s, name))} />
      <ul class="g-candidates">
        {(f.choice.candidates ?? []).map((c) => (
          <li key={c.name} data-candidate={c.name}>
            <b>{c.name}</b> <span class={(c.refused ?? []).length > 0 ? '' : 'quiet'}>{candidateWords(c)}</span>
            {(c.refused ?? []).filter((r) => r.remedy).map((r) => <Remedy key={r.code} text={r.remedy!} />)}
          </li>
        ))}
        {(f.choice.refused ?? []).map((r) => <li key={r.code}><b>{s.group.name}</b> <span>{r.why}</span>{r.remedy && <Remedy text={r.remedy} />}</li>)}
        {(f.agents ?? []).map((a) => <li key={`agent ${a.member}`}><b>agent of {a.member}</b> <span class={a.error ? '' : 'quiet'}>{a.error ?? `sees its server; it claims to be the primary: ${a.report?.claims ?? 'not known'}`}</span></li>)}
      </ul>
      {f.plan.length > 0 && <details class="fold"><summary>what a failover would do</summary><ol class="g-plan">{f.plan.map((p, i) => <li key={i}>{p}</li>)}</ol></details>}
      <p class="g-acts">
        {loss && <label><input type="checkbox" checked={accept} onChange={(e) => setAccept(e.currentTarget.checked)} /> accept that transactions are lost</label>}
        <button disabled={why !== ''} title={why || undefined} onClick={() => wants({ do: 'failover', group: s.group.name, ...(accept ? { accept_loss: true } : {}) })}>Fail over…</button>
        <span class="quiet">{[mayFailOver.value && why, `asked ${age(now - unix(f.asked))} ago`].filter(Boolean).join('; ')}</span>
      </p>
    </section>
  );
}

function Policy({ s, automatic, now, wants }: { s: GroupStanding; automatic: boolean; now: number; wants: (o: GroupOrder) => void }) {
  const { group: g } = s;
  const barred = !mayFailOver.value;
  const why = barred ? NO_FAILOVER : undefined;
  return (
    <section aria-labelledby="g-policy">
      <h2 id="g-policy">Policy</h2>
      <ul class="g-policy">{policyWords(g.policy, g.active, automatic, g.failed, now).map((w) => <li key={w}>{w}</li>)}</ul>
      <p class="g-acts">
        <button disabled={barred} title={why} onClick={() => wants({ do: 'policy', group: g.name, automatic: !g.policy.automatic })}>{g.policy.automatic ? 'Fail over by hand only…' : 'Fail over automatically…'}</button>
        <button disabled={barred} title={why} onClick={() => wants({ do: 'policy', group: g.name, active: !g.active })}>{g.active ? 'Leave it alone…' : 'Look after it…'}</button>
      </p>
    </section>
  );
}

function Wrong({ list }: { list: NonNullable<GroupStanding['seen']>['findings'] }) {
  if (list.length === 0) return null;
  return (
    <section class="g-wrong" aria-labelledby="g-wrong">
      <h2 id="g-wrong">What is wrong</h2>
      <ul class="findings">
        {list.map((f) => (
          <li key={`${f.id} ${f.subject ?? ''}`} data-finding={f.id}>
            <StateMark state={f.severity === 'info' ? 'ok' : f.severity} wordless />
            <div><b>{f.what}</b> {f.why && <span class="quiet">{f.why}</span>} {f.remedy && <Remedy text={f.remedy} />}</div>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** All of one group. */
export function GroupRoom({ s, a, now, onChange }: { s: GroupStanding; a: Standing; now: number; onChange: () => void }) {
  const { group: g } = s;
  const [forecast, setForecast] = useState<GroupForecast | null>(null);
  const [unasked, setUnasked] = useState('');
  const [changes, setChanges] = useState<GroupChange[]>([]);
  const [wish, setWish] = useState<Wish | null>(null);
  const holder = holderOf(s, now);
  usePoll(async (still) => {
    try {
      const got = await fetchForecast(g.name);
      if (!still()) return;
      setForecast(got);
      setUnasked('');
    } catch (e) {
      if (!still()) return;
      setForecast(null); // an old one would be taken for what is so now
      setUnasked(e instanceof Error ? e.message : String(e));
    }
  }, FORECAST_MS, [g.epoch, s.seen?.state]);
  usePolled(() => fetchGroupChanges(g.name, LAST), setChanges, holder ? FAST_MS : CHANGES_MS, [g.epoch, holder !== '']);
  const said = groupSaid(s, a.automatic, now);
  const p = primaryOf(s);
  const running = changes.find((c) => !c.ended);
  const wants = (order: GroupOrder): void => setWish({ order });
  return (
    <section aria-labelledby="g-name" class="g-group" data-group={g.name} data-epoch={g.epoch} data-primary={p?.name ?? ''}>
      <header class="page-head">
        <div class="title-line">
          <h2 id="g-name" class="g-title">{g.name}</h2>
          <p class="facts">
            <span>{p ? <>primary <b>{p.name}</b> since <Moment t={unix(g.since)} now={now} /></> : 'no primary'}</span>
            <span>epoch {g.epoch}</span>
            {g.about && <span>{g.about}</span>}
            {holder && <span class="held" title={`until ${g.lease.until}`}>being changed by {holder}, epoch {g.lease.epoch}</span>}
          </p>
        </div>
        <p class={`sentence ${said.tone}`} aria-live="polite"><StateMark state={said.tone} wordless /> {said.text}</p>
        {!mayFailOver.value && <p class="quiet" data-barred>{NO_FAILOVER}</p>}
      </header>
      <Wrong list={s.seen?.findings ?? []} />
      {running && <div class="g-running"><Steps list={running.steps} /></div>}
      <Members s={s} f={forecast} now={now} wants={setWish} busy={holder ? `${holder} is changing the group` : ''} />
      <div class="g-two">
        <Ready s={s} f={forecast} unasked={unasked} now={now} wants={wants} />
        <div>
          <section aria-labelledby="g-clients"><h2 id="g-clients">Where clients go</h2><Sentences list={[viewWords(s), ...fenceWords(s)]} /></section>
          <Policy s={s} automatic={a.automatic} now={now} wants={wants} />
        </div>
      </div>
      <Changes list={changes} now={now} />
      {wish && <Ask wish={wish} onClose={() => setWish(null)} onDone={onChange} />}
    </section>
  );
}
