/** Wait classes: their names and colours, which are those of the chart "Who waits for what". */
import type { Part } from '../api';
import type { Colour } from '../chart/palette';

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

/** Whether a list should say what a class waits for: not when it simply runs, or waits for hardly anything. */
export function heavyWait(wait: Part, seconds: number): boolean {
  return wait.value !== 'running' && wait.seconds >= NOTABLE * seconds && wait.seconds >= 2;
}
