/** The page /server/ID/film: any kept second of a server, and what came before and after. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, fetchMoment, fetchMoments, serverNow, type MomentAnswer, type Moments } from '../api';
import { clock, when } from '../common/format';
import { fixed } from '../common/range';
import { replace, view } from '../common/router';
import { instanceOf } from '../common/store';
import { HOME, formatView } from '../common/view';
import { MomentView } from './Moment';
import { Player, indexAt, type Reel } from './Player';

const HALF = 300;
const MOST = 7200;
const KEPT = 400;

/** The part of time that a film shows: the link's, or some minutes around its moment. */
function windowOf(at: number, now: number): { from: number; to: number } {
  const { range } = view.value;
  if (!range.live && range.to - range.from <= MOST && at >= range.from && at <= range.to) return { from: range.from, to: Math.min(now, range.to) };
  const to = Math.min(now, at + HALF);
  return { from: to - 2 * HALF, to };
}

function reelOf(m: Moments): Reel {
  return { tick: m.tick ?? [], running: m.running ?? [], blocked: m.blocked ?? [], deadlock: m.deadlock ?? [], missing: m.missing ?? [] };
}

/** Seconds as they are asked for; those that were seen are kept for a while. */
function useMoment(id: string, at: number): [MomentAnswer | null, string] {
  const cache = useRef(new Map<number, MomentAnswer>());
  const [shown, setShown] = useState<MomentAnswer | null>(null);
  const [error, setError] = useState('');
  useEffect(() => {
    const known = cache.current.get(at);
    if (known) return setShown(known);
    const abort = new AbortController();
    fetchMoment(id, at, abort.signal).then((m) => {
      if (cache.current.size > KEPT) cache.current.clear();
      cache.current.set(at, m);
      setShown(m);
      setError('');
    }, (e: unknown) => !abort.signal.aborted && setError(e instanceof ApiError ? e.message : String(e)));
    return () => abort.abort();
  }, [id, at]);
  return [shown, error];
}

/** The page. */
export function Film() {
  const { id } = view.value;
  const at = Math.floor(view.value.at ?? serverNow() - 2);
  const [moments, setMoments] = useState<Moments | null>(null);
  const [failed, setFailed] = useState('');
  const outside = !moments || at < moments.from || at > moments.to;
  useEffect(() => {
    if (!outside) return;
    const { from, to } = windowOf(at, serverNow());
    const abort = new AbortController();
    fetchMoments(id, from, to, abort.signal).then((m) => (setMoments(m), setFailed('')), (e: unknown) => !abort.signal.aborted && setFailed(e instanceof ApiError ? [e.message, e.remedy].filter(Boolean).join(': ') : String(e)));
    return () => abort.abort();
  }, [id, outside, outside ? at : 0]);
  const reel = moments ? reelOf(moments) : null;
  const tick = reel && reel.tick.length > 0 ? reel.tick[indexAt(reel, at)] : at;
  const [answer, wrong] = useMoment(id, tick);
  const now = serverNow();
  const name = instanceOf(id)?.name ?? id;
  const seek = (t: number): void => replace({ at: t });
  return (
    <main class="film">
      <header class="page-head">
        <div class="title-line">
          <h1>{name} at {when(tick, now)}</h1>
          <p class="facts"><a href={formatView({ ...HOME, page: 'server', id, range: fixed(tick - HALF, Math.min(now, tick + HALF)), at: tick })}>charts</a>{moments?.oldest && <span>kept since {when(moments.oldest, now)}</span>}</p>
        </div>
      </header>
      {(failed || wrong) && <p class="bad" role="alert">{failed || wrong}</p>}
      {reel && reel.tick.length > 0 && <Player reel={reel} at={at} onSeek={seek} />}
      {reel && reel.tick.length === 0 && <p class="sentence">Nothing is kept of {name} around {clock(at)}{moments?.oldest ? `; the oldest second is of ${when(moments.oldest, now)}` : ''}.</p>}
      {answer?.moment && <MomentView m={answer.moment} />}
    </main>
  );
}
