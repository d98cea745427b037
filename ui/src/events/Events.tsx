/** What happened in the range: the marks of the charts, as a list. */
import { useState } from 'preact/hooks';
import { ApiError, fetchAfter, fetchEvents, serverNow, type After, type Event } from '../api';
import { unix } from '../common/format';
import { Moment, StateMark } from '../common/parts';
import { usePolled } from '../common/poll';
import { ends, fixed } from '../common/range';
import { go, replace, view } from '../common/router';
import { formatView } from '../common/view';
import { normalise } from '../search/fuzzy';
import { Header } from '../server/Header';
import { toMark } from '../server/board';
import { useDetail } from '../server/Server';

const AROUND = 300;

// A deployment or a note: something that people did, after which other things may have changed.
const isMark = (e: Event): boolean => e.kind === 'deploy' || e.kind === 'note';

function Changed({ e }: { e: Event }) {
  const [after, setAfter] = useState<After | string | null>(null);
  const load = (): void => void fetchAfter(e.id).then(setAfter, (err: unknown) => setAfter(err instanceof ApiError ? err.message : String(err)));
  return (
    <details class="fold after" onToggle={(t) => t.currentTarget.open && load()}>
      <summary>what changed after it</summary>
      {typeof after === 'string' && <p class="bad">{after}</p>}
      {after !== null && typeof after === 'object' && (
        <ul>
          {(after.servers ?? []).map((s) => <li key={s.instance}><b>{s.name}</b> {s.enough ? (s.words ?? []).join('; ') : (s.why ?? 'too little is known')}</li>)}
          {!after.complete && <li class="quiet">{after.after.minutes} of {after.before.minutes} minutes after it are over.</li>}
        </ul>
      )}
    </details>
  );
}

/** The page /server/ID/events. */
export function Events() {
  const { id, range, q } = view.value;
  const detail = useDetail(id);
  const [list, setList] = useState<Event[] | null>(null);
  const key = range.live ? range.span : `${range.from}-${range.to}`;
  usePolled(async () => {
    const { from, to } = ends(view.value.range, serverNow());
    return (await fetchEvents(id, from, to)).reverse();
  }, setList, 3000, [id, key]);
  const now = serverNow();
  const words = normalise(q).split(' ').filter(Boolean);
  const shown = (list ?? []).filter((e) => words.every((w) => normalise(`${e.kind} ${e.subject ?? ''} ${e.text}`).includes(w)));
  return (
    <main>
      <Header id={id} detail={detail} onChart={() => go({ page: 'server' })} />
      <div class="filter">
        <input type="search" value={q} placeholder="Filter events" aria-label="Filter events" onInput={(e) => replace({ q: e.currentTarget.value })} spellcheck={false} />
        <span class="quiet">{list ? `${shown.length} in this range` : ''}</span>
      </div>
      {shown.length > 0 && (
        <table class="list events" aria-label="Events">
          <thead><tr><th scope="col">Time</th><th scope="col">Kind</th><th scope="col">What happened</th></tr></thead>
          <tbody>
            {shown.map((e) => {
              const t = unix(e.time);
              const there = formatView({ ...view.value, page: 'server', range: fixed(t - AROUND, t + AROUND), at: Math.round(t), q: '', sort: '' });
              return (
                <tr key={`${e.id}-${e.time}`}>
                  <td class="c-time"><a href={there} title="Show the charts around this moment"><Moment t={t} now={now} /></a></td>
                  <td class="c-kind">{e.severity !== 'info' && <StateMark state={e.severity} wordless />} {e.kind}</td>
                  <td>{toMark(e).text}{isMark(e) && <Changed e={e} />}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
      {list && list.length === 0 && <p class="quiet">Nothing happened in this range: no variable changed, no restart, no lost connection.</p>}
    </main>
  );
}
