/** The units of moments: percentages are of 100 there. */
import { human, percent, type Unit } from '../common/format';

const NAMES: Record<string, Unit> = { bytes: 'B', 'bytes/s': 'B/s', seconds: 's', s: 's', '/s': '/s' };

/** A number in the unit that an answer names. */
export function inUnit(v: number | null | undefined, unit = ''): string {
  if (unit === '%') return percent(v === null || v === undefined ? v : v / 100);
  return human(v, NAMES[unit] ?? '');
}
