/** Dark or light: the system's choice until the viewer makes one. */
import { signal } from '@preact/signals';
import { forgetColours } from '../chart/palette';

/** Counts theme changes, for what draws its colours itself. */
export const themeChanges = signal(0);

const system = matchMedia('(prefers-color-scheme: dark)');

/** The theme in use. */
export function theme(): 'dark' | 'light' {
  const set = document.documentElement.dataset.theme;
  return set === 'dark' || set === 'light' ? set : system.matches ? 'dark' : 'light';
}

/** Switches to the other theme and remembers it. */
export function toggleTheme(): void {
  const next = theme() === 'dark' ? 'light' : 'dark';
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem('risso.theme', next);
  } catch {
    // Storage is off: the choice lasts as long as the page.
  }
  changed();
}

function changed(): void {
  forgetColours();
  themeChanges.value++;
}

/** Follows the system's theme. */
export function startTheme(): void {
  system.addEventListener('change', changed);
}
