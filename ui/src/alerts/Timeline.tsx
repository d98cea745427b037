/** What rang, as lines on a clock. */
import type { Alert } from '../api';
import { age, clock, day, human, stamp, unix } from '../common/format';
import { StateMark } from '../common/parts';
import { linkToMoment } from './Alerts';
import { laneWords, lanes } from './words';

const TICKS = 6;
// A bar that is too short to see would say that nothing was.
const LEAST = 0.5;

function tick(t: number, span: number): string {
  return span > 2 * 86400 ? day(t).slice(5) : clock(t).slice(0, 5);
}

/** One line for each server and reason, one bar for each time. */
export function Timeline({ list, from, to, now }: { list: Alert[]; from: number; to: number; now: number }) {
  const rows = lanes(list);
  if (rows.length === 0) return <p class="quiet">Nothing rang in these {human(to - from, 's')}.</p>;
  const place = (t: number): number => Math.min(100, Math.max(0, ((t - from) / (to - from)) * 100));
  return (
    <table class="rang" aria-label="What rang">
      <thead>
        <tr>
          <th scope="col">Server</th><th scope="col">What</th><th scope="col">How long</th>
          <th scope="col" class="clock"><span class="unseen">When</span>{Array.from({ length: TICKS }, (_, i) => <i key={i} style={{ left: `${(i / TICKS) * 100}%` }} aria-hidden="true">{tick(from + ((to - from) * i) / TICKS, to - from)}</i>)}</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((l) => (
          <tr key={l.key}>
            <td class="c-name"><StateMark state={l.severity === 'info' ? 'ok' : l.severity} wordless /> <a href={linkToMoment(l.alerts[0], now)}>{l.server}</a></td>
            <td class="c-what"><span title={l.what}>{l.what}</span></td>
            <td class="c-long">{laneWords(l, now)}</td>
            <td class="track">
              {l.alerts.map((a) => {
                const begin = unix(a.began);
                const end = a.ended ? unix(a.ended) : now;
                return <i key={`${a.key}${a.began}`} class={`span ${a.severity}`} style={{ left: `${Math.min(100 - LEAST, place(begin))}%`, width: `${Math.max(LEAST, place(end) - place(begin))}%` }}
                  title={`${stamp(begin)}, ${age(end - begin)}${a.ended ? '' : ' so far'}\n${a.what}`} />;
              })}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
