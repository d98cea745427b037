/** The current view as a signal, kept in step with the address bar. */
import { signal } from '@preact/signals';
import { formatView, parseView, type View } from './view';

/** The view on the screen. */
export const view = signal<View>(parseView(location.pathname, location.search));

/** What a step was, kept with it in the browser's history. */
type Step = 'zoom' | 'pan' | '';

const stepHere = (): Step => (history.state as { kind?: Step } | null)?.kind ?? '';

let lastKind = '';
let lastTime = 0;

/** Goes to a view; Back returns from it. Steps of one kind within a second count as one. */
export function go(change: Partial<View>, kind: Step = ''): void {
  const now = performance.now();
  const same = kind !== '' && kind === lastKind && now - lastTime < 1000;
  lastKind = kind;
  lastTime = now;
  if (same) return replace(change);
  const next = { ...view.value, ...change };
  const url = formatView(next);
  if (url === location.pathname + location.search) return;
  const leaves = next.page !== view.value.page || next.id !== view.value.id || next.cls !== view.value.cls;
  history.pushState({ kind }, '', url);
  view.value = next;
  if (leaves) scrollTo(0, 0);
}

/** Changes the view without a step for Back. */
export function replace(change: Partial<View>): void {
  const next = { ...view.value, ...change };
  history.replaceState(history.state, '', formatView(next));
  view.value = next;
}

/** Leaves the last zoom, if the range on the screen came from one. */
export function unzoom(): boolean {
  if (stepHere() === '') return false;
  history.back();
  return true;
}

/** Follows links inside of the page without reloading it. */
export function startRouter(): void {
  addEventListener('popstate', () => (view.value = parseView(location.pathname, location.search)));
  document.addEventListener('click', (e) => {
    if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    const a = (e.target as Element).closest?.('a');
    if (!a || a.target || a.origin !== location.origin || a.pathname.startsWith('/api/') || a.hash) return;
    e.preventDefault();
    go(parseView(a.pathname, a.search));
  });
}
