/** A server's backups, drills and the window that can be restored, on one axis. */
import type { ProtectDetail, Span } from '../api';
import { stamp } from '../common/format';
import { replace, view } from '../common/router';
import { left, ticks, timelineOf, type Point } from './timeline';
import { windowText } from './words';

function Lane({ name, list, from, to, onPick }: { name: string; list: Point[]; from: number; to: number; onPick: (key: string) => void }) {
  return (
    <div class={`lane ${name}`}>
      <span class="lane-name">{name}</span>
      <div class="track">
        {list.map((p) => (
          <button key={p.key} class={`mark ${p.tone}`} tabIndex={-1} style={{ left: left(p.t, from, to) }} title={p.title} aria-label={p.title} data-mark={p.key} onClick={() => onPick(p.key)} />
        ))}
        {list.length === 0 && <span class="quiet none">none</span>}
      </div>
    </div>
  );
}

function Window({ w, from, to, now, mirrored }: { w: Span | null; from: number; to: number; now: number; mirrored: boolean }) {
  return (
    <div class="lane window">
      <span class="lane-name">any moment</span>
      <div class="track">
        {w && w.to > from && (
          <i class="pitr" style={{ left: left(w.from, from, to), right: `calc(100% - ${left(w.to, from, to)})` }} title={`${stamp(w.from)} to ${stamp(w.to)}: any moment can be restored`} />
        )}
        {!w && <span class="quiet none">{mirrored ? 'not yet: a backup and its binary logs are needed' : 'no: binary logs are not mirrored, so only the backups themselves can be restored'}</span>}
        {w && <span class="unseen">{windowText(w, now)}</span>}
      </div>
    </div>
  );
}

/** The timeline; onPick leads to a thing's row. */
export function Timeline({ d, now, onPick }: { d: ProtectDetail; now: number; onPick: (key: string) => void }) {
  const t = timelineOf(d, now, view.value.more);
  const at = { from: t.from, to: t.to, onPick };
  return (
    <section class="timeline" aria-labelledby="timeline">
      <h2 id="timeline">Timeline{(t.older || view.value.more) && <button class="bare link" onClick={() => replace({ more: !view.value.more })}>{view.value.more ? 'the last weeks' : 'all of it'}</button>}</h2>
      <div class="lanes">
        <Window w={d.server.window} from={t.from} to={t.to} now={now} mirrored={d.server.plan?.mirror ?? false} />
        <Lane name="backups" list={t.backups} {...at} />
        <Lane name="drills" list={t.drills} {...at} />
        {t.others.length > 0 && <Lane name="others" list={t.others} {...at} />}
        <div class="lane axis" aria-hidden="true">
          <span class="lane-name" />
          <div class="track">
            {ticks(t.from, t.to).map((x) => <span key={x.t} class="tick" style={{ left: left(x.t, t.from, t.to) }}>{x.text}</span>)}
          </div>
        </div>
        <div class="lane over" aria-hidden="true">
          <span class="lane-name" />
          <div class="track">
            <i class="now" style={{ left: left(now, t.from, t.to) }} title="now" />
            {t.due.map((x) => <i key={x.t} class="due" style={{ left: left(x.t, t.from, t.to) }} title={x.title} />)}
          </div>
        </div>
      </div>
      <p class="key quiet" aria-hidden="true"><span><i class="mark good" />proven, good</span><span><i class="mark plain" />not proven, done</span><span><i class="mark bad" />failed</span><span><i class="now" />now</span>{t.due.length > 0 && <span><i class="due" />due</span>}</p>
    </section>
  );
}
