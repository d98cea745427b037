/** The keyboard. Keys act only while no field has the focus. */
import { signal } from '@preact/signals';
import { serverNow } from '../api';
import { currentDesk } from './desk';
import { fixed, ends, liveLike } from './range';
import { go, replace, view } from './router';
import { toggleTheme } from './theme';
import { HOME, rangeOn, type Page } from './view';

/** Whether the list of keys is on the screen. */
export const helpOpen = signal(false);

/** The keys as the help shows them. */
export const KEYS: readonly [string, string][] = [
  ['/', 'search a server, chart, metric or variable'],
  ['← →', 'move in time by a quarter of what is shown'],
  ['+ −', 'zoom in and out, around the cursor'],
  ['drag', 'zoom into a part, in all charts at once'],
  ['double click, Esc', 'zoom back out'],
  ['click', 'pin the cursor at a moment; click again to remove it'],
  ['l', 'live, or pause'],
  ['g f', 'fleet'],
  ['g t', 'topology: who replicates from whom'],
  ['g g', 'groups: who is the primary, and who would follow'],
  ['g s', 'go to a server by name'],
  ['g c', 'charts of this server'],
  ['g m', 'metrics'],
  ['g v', 'variables'],
  ['g e', 'events'],
  ['g q', 'queries of this server, or of the fleet'],
  ['g b', 'benchmarks of this server, or of the fleet'],
  ['g p', 'protection of this server, or of the fleet'],
  ['g d', 'advice for this server, or for the fleet'],
  ['g a', 'alerts of this server, or of the fleet'],
  ['g i', 'incidents of this server, or of the fleet'],
  ['↑ ↓, Enter', 'in the list of queries: move, open'],
  ['t', 'dark or light'],
  ['?', 'these keys'],
];

const GO: Record<string, Page> = { c: 'server', m: 'metrics', v: 'variables', e: 'events' };
// Pages of an instance that are also there for the fleet.
const FOR_ALL: Record<string, Page> = { q: 'queries', b: 'benchmarks', p: 'protect', d: 'advice', a: 'alerts', i: 'incidents' };
const CHORD_MS = 1200;

let chordAt = -Infinity;

/** Puts the caret into the search field. */
export function focusSearch(): void {
  document.querySelector<HTMLInputElement>('#search')?.focus();
}

/** Turns a live range into a fixed one and back. */
export function toggleLive(): void {
  const r = view.value.range;
  const { from, to } = ends(r, serverNow());
  go({ range: r.live ? fixed(from, to) : liveLike(r) });
}

function chord(key: string): boolean {
  const { id } = view.value;
  if (key === 'f') go(HOME);
  else if (key === 't') go({ ...HOME, page: 'topology' });
  else if (key === 'g') go({ ...HOME, page: 'groups' });
  else if (key === 's') focusSearch();
  else if (FOR_ALL[key]) go({ page: FOR_ALL[key], range: rangeOn(view.value, FOR_ALL[key]), q: '', sort: '', cls: '', pins: [] });
  else if (GO[key] && id) go({ page: GO[key], range: rangeOn(view.value, GO[key]), q: '', sort: '', cls: '' });
  else return false;
  return true;
}

function escape(): void {
  if (helpOpen.value) helpOpen.value = false;
  else if (view.value.at !== null) replace({ at: null });
  else currentDesk.value?.back();
}

function act(key: string): boolean {
  const desk = currentDesk.value;
  switch (key) {
    case '/': focusSearch(); return true;
    case '?': helpOpen.value = !helpOpen.value; return true;
    case 't': toggleTheme(); return true;
    case 'l': toggleLive(); return true;
    case 'Escape': escape(); return true;
    case 'ArrowLeft': desk?.pan(-0.25); return desk !== null;
    case 'ArrowRight': desk?.pan(0.25); return desk !== null;
    case '+': case '=': desk?.scale(0.5); return desk !== null;
    case '-': case '−': desk?.scale(2); return desk !== null;
    default: return false;
  }
}

function onKey(e: KeyboardEvent): void {
  if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
  const el = e.target as HTMLElement;
  if (el.closest?.('input,textarea,select,[contenteditable]')) return;
  const now = performance.now();
  if (now - chordAt < CHORD_MS) {
    chordAt = -Infinity;
    if (chord(e.key)) return e.preventDefault();
  }
  if (e.key === 'g') chordAt = now;
  else if (act(e.key)) e.preventDefault();
}

/** Listens to the keyboard until the returned function is called. */
export function startKeys(): () => void {
  addEventListener('keydown', onKey);
  return () => removeEventListener('keydown', onKey);
}
