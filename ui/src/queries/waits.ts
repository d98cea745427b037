/** Wait classes: their names and colours, which are those of the chart "Who waits for what". */
import type { Part } from '../api';
import type { Colour } from '../chart/palette';
import { human } from '../common/format';

const CLASSES: Record<string, [string, Colour]> = {
  running: ['running', 'blue'], io: ['I/O', 'teal'], commit: ['commit', 'violet'], row_lock: ['row lock', 'mauve'], metadata_lock: ['metadata lock', 'rose'],
  table_lock: ['table lock', 'brown'], network: ['network', 'sky'], semisync: ['semisync', 'green'], replication: ['replication', 'olive'],
  tmp_disk_table: ['temporary table on disk', 'line'], other: ['other', 'slate'],
};

/** A wait class as people read it. */
export function waitName(value: string): string {
  return CLASSES[value]?.[0] ?? value.replaceAll('_', ' ');
}

/** The colour of a wait class, the same everywhere. */
export function waitColour(value: string): Colour {
  return CLASSES[value]?.[1] ?? 'pale';
}

const NOTABLE = 0.2;

/** Whether a list should say what a class waits for: not when it simply runs, waits for nothing that has a name, or for hardly anything. */
export function heavyWait(wait: Part, seconds: number): boolean {
  return wait.value !== 'running' && wait.value !== 'other' && wait.seconds >= NOTABLE * seconds && wait.seconds >= 2;
}

const MOSTLY = 0.3;
const FEW = 5;

/** The end of a class's sentence when it waits much, such as "; 83 % of its sampled time it waits for: row lock". */
export function waitWords(waits: Part[]): string {
  const all = waits.reduce((s, w) => s + w.seconds, 0);
  const calls = waits.reduce((s, w) => s + w.calls, 0);
  const top = waits.filter((w) => w.value !== 'running' && w.value !== 'other').sort((a, b) => b.seconds - a.seconds)[0];
  if (!top || calls < FEW || top.seconds < MOSTLY * all) return '';
  return `; ${human(top.seconds / all, '%')} of its sampled time it waits for: ${waitName(top.value)}`;
}
