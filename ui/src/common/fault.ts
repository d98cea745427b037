/** Errors of the page's own: after one, a part of it may stand still and show what is old. */
import { signal } from '@preact/signals';

/** What the first error said; empty while there was none. */
export const pageFault = signal('');

/** Takes errors that nobody caught. What browsers report without an exception, as of layouts that take two rounds, is none. */
export function watchFaults(): void {
  addEventListener('error', (e) => {
    if (e.error && !pageFault.value) pageFault.value = e.message;
  });
}
