/** How much went on in each second of a film, in one glance. */
import { clock } from '../common/format';
import { indexAt, type Reel } from './Player';

const WIDTH = 1000;
const HEIGHT = 56;

/** A place on a drawing, to a tenth. */
export const tenth = (v: number): number => Math.round(v * 10) / 10;

/** Sessions that ran, those that waited for a lock, deadlocks, and what is not kept. A click goes there. */
export function Strip({ reel, at, onSeek }: { reel: Reel; at: number; onSeek: (t: number) => void }) {
  const { tick, running, blocked, deadlock, missing } = reel;
  const from = tick[0];
  const to = tick[tick.length - 1] + 1;
  const x = (t: number): number => ((t - from) / Math.max(1, to - from)) * WIDTH;
  const top = Math.max(4, ...running.map((r, i) => Math.max(r, blocked[i] ?? 0)));
  const y = (v: number): number => HEIGHT - 2 - (v / top) * (HEIGHT - 6);
  const bars = (values: number[]): string => tick.map((t, i) => ((values[i] ?? 0) > 0 ? `M${tenth(x(t))} ${HEIGHT - 1}V${tenth(y(values[i]))}H${tenth(x(t + 1))}V${HEIGHT - 1}Z` : '')).join('');
  const click = (e: MouseEvent): void => {
    const box = (e.currentTarget as Element).getBoundingClientRect();
    onSeek(tick[indexAt(reel, from + ((e.clientX - box.left) / box.width) * (to - from))]);
  };
  return (
    <figure class="strip">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" onClick={click} aria-hidden="true">
        <path class="s-running" d={bars(running)} />
        <path class="s-blocked" d={bars(blocked)} />
        {missing.map((g) => <rect key={g.from} class="s-missing" x={x(Math.max(from, g.from))} y="0" width={Math.max(1, x(Math.min(to, g.to)) - x(Math.max(from, g.from)))} height={HEIGHT} />)}
        {tick.map((t, i) => (deadlock[i] ? <path key={t} class="s-dead" d={`M${x(t)} 0l-6 9h12z`} /> : null))}
        <path class="s-at" d={`M${tenth(x(at + 0.5))} 0V${HEIGHT}`} />
      </svg>
      <figcaption class="quiet"><span>{clock(from)}</span><span><i class="dot s-running" /> running <i class="dot s-blocked" /> waiting for a lock{deadlock.some(Boolean) && ' ▾ deadlock'}</span><span>{clock(to - 1)}</span></figcaption>
    </figure>
  );
}
