/** A film: a slider over seconds, a strip that shows how much went on in each, play and steps. */
import { useEffect, useState } from 'preact/hooks';
import type { Missing } from '../api';
import { clock, stamp, utc } from '../common/format';
import { Strip } from './Strip';

/** What is known of each second of a film; the arrays are parallel. */
export interface Reel {
  tick: number[];
  running: number[];
  blocked: number[];
  deadlock: number[];
  missing: Missing[];
}

/** The last kept second up to a moment, as an index; the first if there is none. */
export function indexAt(reel: Reel, t: number): number {
  let lo = 0;
  for (let hi = reel.tick.length - 1; lo < hi;) {
    const mid = (lo + hi + 1) >> 1;
    if (reel.tick[mid] <= t) lo = mid;
    else hi = mid - 1;
  }
  return lo;
}

const SPEEDS = [1, 4, 20];

interface Props {
  reel: Reel;
  at: number;
  onSeek: (t: number) => void;
}

/** The controls. */
export function Player({ reel, at, onSeek }: Props) {
  const [speed, setSpeed] = useState(0);
  const i = indexAt(reel, at);
  const n = reel.tick.length;
  const shown = reel.tick[i];
  useEffect(() => {
    if (speed === 0) return;
    if (i >= n - 1) {
      setSpeed(0);
      return;
    }
    // At the speed of the clock, gaps and all, but none is waited for longer than a second.
    const t = setTimeout(() => onSeek(reel.tick[i + 1]), Math.min(1, reel.tick[i + 1] - shown) * 1000 / speed);
    return () => clearTimeout(t);
  }, [speed, i, n]);
  const seek = (k: number): void => onSeek(reel.tick[Math.max(0, Math.min(n - 1, k))]);
  const gap = reel.missing.find((g) => at >= g.from && at < g.to);
  return (
    <div class="player">
      <Strip reel={reel} at={shown} onSeek={onSeek} />
      <input type="range" min={0} max={n - 1} value={i} aria-label="Second" aria-valuetext={clock(shown)} onInput={(e) => (setSpeed(0), seek(Number(e.currentTarget.value)))} />
      <div class="controls">
        <button onClick={() => setSpeed(speed ? 0 : SPEEDS[0])} aria-pressed={speed > 0}>{speed ? 'Pause' : 'Play'}</button>
        {SPEEDS.map((s) => <button key={s} aria-pressed={speed === s} onClick={() => setSpeed(speed === s ? 0 : s)}>{s}×</button>)}
        <button onClick={() => seek(i - 1)} disabled={i === 0} aria-label="A second earlier">‹</button>
        <button onClick={() => seek(i + 1)} disabled={i >= n - 1} aria-label="A second later">›</button>
        <time dateTime={new Date(shown * 1000).toISOString()} title={`${stamp(shown)} here\n${utc(shown)}`}>{clock(shown)}</time>
        {gap && <span class="stale">{gap.why}; what follows is of {clock(shown)}</span>}
        <span class="quiet">{n} seconds from {clock(reel.tick[0])} to {clock(reel.tick[n - 1])}{reel.missing.length > 0 ? `; ${reel.missing.length === 1 ? 'one part is' : `${reel.missing.length} parts are`} missing` : ''}</span>
      </div>
    </div>
  );
}
