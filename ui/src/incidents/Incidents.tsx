/** The page /incidents: what stalled or rang for a capture, the newest first. */
import { useState } from 'preact/hooks';
import { ApiError, fetchIncidents, serverNow, type Incident } from '../api';
import { age, counted, unix } from '../common/format';
import { Moment, StateMark } from '../common/parts';
import { usePoll } from '../common/poll';
import { ends } from '../common/range';
import { view } from '../common/router';
import { instanceOf } from '../common/store';
import { HOME, formatView } from '../common/view';

/** The page. */
export function Incidents() {
  const { id, range } = view.value;
  const [list, setList] = useState<Incident[] | null>(null);
  const [error, setError] = useState('');
  const key = range.live ? range.span : `${range.from}-${range.to}`;
  usePoll(async (still) => {
    const { from, to } = ends(view.value.range, serverNow());
    try {
      const got = await fetchIncidents(id, from, to);
      if (!still()) return;
      setList(got);
      setError('');
    } catch (e) {
      if (still()) setError(e instanceof ApiError ? e.message : String(e));
    }
  }, 5000, [id, key]);
  const now = serverNow();
  const open = (list ?? []).filter((i) => !i.ended);
  const film = id && instanceOf(id)?.kind !== 'host' ? formatView({ ...HOME, page: 'film', id }) : '';
  return (
    <main class="incidents">
      <header class="page-head">
        <h1>Incidents{id ? ` of ${instanceOf(id)?.name ?? id}` : ''}</h1>
        <p class={`sentence lead ${open.length > 0 ? 'critical' : 'ok'}`} aria-live="polite">
          {!list ? '\u00a0' : list.length === 0 ? 'Nothing stalled in this range.' : open.length > 0 ? open[0].title : `${counted(list.length, 'incident')} in this range; none goes on.`}
          {film && <> <a class="link" href={film}>replay the last minutes</a></>}
        </p>
      </header>
      {error && <p class="bad" role="alert">{error}</p>}
      {list && list.length > 0 && (
        <ul class="incident-list">
          {list.map((i) => (
            <li key={i.id} data-incident={i.id}>
              <StateMark state={i.severity === 'info' ? 'ok' : i.severity} wordless />
              <span class="t-when"><Moment t={unix(i.began)} now={now} /></span>
              <span class="t-long">{i.ended ? age(unix(i.ended) - unix(i.began)) : `${age(now - unix(i.began))} so far`}</span>
              <a href={formatView({ ...HOME, page: 'incident', cls: i.id })}>{i.title}</a>
              <span class="quiet">{i.why === 'alert' ? `an alert asked${i.finding ? `: ${i.finding}` : ''}` : ''}{i.cut ? ` not whole: ${i.cut}` : ''}</span>
            </li>
          ))}
        </ul>
      )}
    </main>
  );
}
