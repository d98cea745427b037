/** What a server's data takes on its disks. */
import { get } from './http';
import { type Trouble } from './watch';

/** A size on disk: how long files are, and what the file system has given for them. */
export interface Taken {
  file_bytes: number;
  allocated_bytes: number;
}

/** One of the largest tables. */
export interface SizedTable extends Taken {
  schema: string;
  name: string;
  engine: string;
  row_format: string;
  rows: number | null;
  free_bytes: number | null;
  bytes_per_row: number | null;
  partition_count: number;
  indexes: { name: string; bytes: number; as_of?: string }[] | null;
}

/** What belongs to no single table. */
export interface SizedSpace extends Taken {
  kind: string;
  name: string;
  free_bytes: number | null;
  note?: string;
}

/** A box of the treemap, in units of its width and height. */
export interface SizeBox {
  x: number;
  y: number;
  w: number;
  h: number;
  name: string;
  title: string;
  tone: 'table' | 'index' | 'space' | 'log' | 'rest';
  depth: number;
  label: string;
}

/** All of it. */
export interface SizeReport {
  server: string;
  at: string;
  source: 'files' | 'estimates';
  total: Taken;
  schemas: ({ name: string; tables: number } & Taken)[] | null;
  tables: SizedTable[] | null;
  rest: { tables: number } & Taken;
  spaces: SizedSpace[] | null;
  words: string[] | null;
  unknown: Trouble[] | null;
  cost: { seconds: number; statements: number; tables: number };
  boxes: SizeBox[];
  width: number;
  height: number;
}

/** Reads the sizes of a server; they are at most ten minutes old, with fresh they are read now. */
export const fetchSizes = (instance: string, fresh: boolean, signal?: AbortSignal): Promise<SizeReport> =>
  get('/api/size', [['instance', instance], ['fresh', fresh ? 1 : 0]], signal);
