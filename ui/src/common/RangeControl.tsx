/** The control of time: live windows, a fixed range typed or pasted, steps and zooms. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { serverNow } from '../api';
import { currentDesk } from './desk';
import { human, stamp, utc, when } from './format';
import { toggleLive } from './keys';
import { PRESETS, ends, fixed, pan, parseTime, spanText, zoom, type Range } from './range';
import { go, view } from './router';

function Fixed({ range, onDone }: { range: Range; onDone: () => void }) {
  const now = serverNow();
  const { from, to } = ends(range, now);
  const [a, setA] = useState(stamp(from));
  const [b, setB] = useState(range.live ? 'now' : stamp(to));
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.select(), []);
  const [x, y] = [parseTime(a, now), parseTime(b, now)];
  const wrong = x === null ? a : y === null ? b : x === y ? 'an empty range' : '';
  const submit = (e: Event): void => {
    e.preventDefault();
    if (x === null || y === null || wrong) return;
    go({ range: fixed(x, y) });
    onDone();
  };
  return (
    <form class="pop range-form" onSubmit={submit} onKeyDown={(e) => e.key === 'Escape' && onDone()}>
      <label>from <input ref={first} value={a} onInput={(e) => setA(e.currentTarget.value)} spellcheck={false} aria-invalid={x === null} /></label>
      <label>to <input value={b} onInput={(e) => setB(e.currentTarget.value)} spellcheck={false} aria-invalid={y === null} /></label>
      <button type="submit" disabled={wrong !== ''}>Show</button>
      <p class="quiet">{wrong ? <>I do not understand: {wrong}</> : <>{human(Math.abs(y! - x!), 's')} · {utc(Math.min(x!, y!))}</>}</p>
      <p class="quiet">2026-11-21 10:30, 10:30:05, -2h, now, unix seconds, or a time with its zone</p>
    </form>
  );
}

/** Chooses what part of time the page shows. */
export function RangeControl() {
  const { range } = view.value;
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const away = (e: Event): void => {
      if (!box.current?.contains(e.target as Node)) setOpen(false);
    };
    document.addEventListener('pointerdown', away);
    return () => document.removeEventListener('pointerdown', away);
  }, [open]);
  const now = serverNow();
  const { from, to } = ends(range, now);
  const known = range.live && PRESETS.some(([, s]) => s === range.span);
  const step = (part: number): void => go({ range: pan(view.value.range, part, serverNow()) }, 'pan');
  const scale = (f: number): void => (currentDesk.value ? currentDesk.value.scale(f) : go({ range: zoom(view.value.range, f, serverNow()) }, 'zoom'));
  const label = range.live ? `last ${spanText(range.span)}` : `${when(from, now)} – ${when(to, now).slice(stamp(from).slice(0, 10) === stamp(to).slice(0, 10) ? -8 : 0)}`;
  return (
    <div class="range" ref={box} role="group" aria-label="Time">
      <button class={`live ${range.live ? 'on' : ''}`} aria-pressed={range.live} onClick={toggleLive} title={range.live ? 'Pause (l)' : 'Back to live (l)'}>live</button>
      <span class="presets">
        {PRESETS.map(([name, span]) => (
          <button key={name} aria-pressed={range.live && range.span === span} onClick={() => go({ range: { live: true, span } })}>{name}</button>
        ))}
      </span>
      <button class={`ends ${known ? '' : 'on'}`} onClick={() => setOpen(!open)} aria-expanded={open}
        title={`${stamp(from)} – ${stamp(to)} here\n${utc(from)} – ${utc(to)}`}>{known ? 'from – to' : label}</button>
      <span class="steps">
        <button onClick={() => step(-0.5)} aria-label="Earlier" title="Earlier (←)">‹</button>
        <button onClick={() => step(0.5)} aria-label="Later" title="Later (→)" disabled={range.live}>›</button>
        <button onClick={() => scale(2)} aria-label="Zoom out" title="Zoom out (−)">−</button>
        <button onClick={() => scale(0.5)} aria-label="Zoom in" title="Zoom in (+)">+</button>
      </span>
      {open && <Fixed range={range} onDone={() => setOpen(false)} />}
    </div>
  );
}
