/** The words in which charts are defined, and how a definition becomes a chart of an instance. */
import type { Metric } from '../api';
import type { ChartModel, Line } from '../chart/Chart';
import { keysOf, resolve, type Expr } from '../chart/expr';
import type { Feed } from '../chart/feed';
import { CYCLE, type Colour } from '../chart/palette';
import type { Unit } from '../common/format';

/** A key that different servers call differently: the first that exists is meant. */
export interface First {
  first: (string | RegExp)[];
}

/** One line with its own place. */
export interface LineDef {
  label: string;
  expr: Expr | First;
  colour?: Colour;
  /** seconds up to its own that each value covers, if more than one */
  covers?: number;
}

/** A line for each series of a family, such as one for each disk. */
export interface EachDef {
  /** metric name of the family */
  each: string;
  /** label that names the line */
  by: string;
  /** what the line shows, given the series' labels as they are in its key: {device="sda"} */
  expr: (labels: string) => Expr;
  /** put before the label's value where a chart has several families */
  prefix?: string;
  /** also series that never change */
  still?: boolean;
}

/** A chart as data. */
export interface ChartDef {
  id: string;
  section: string;
  title: string;
  unit: Unit;
  /** whose numbers: the server's (or host's) own, or those of the host a server runs on */
  of: 'server' | 'host';
  stacked?: boolean;
  top?: number;
  explain: string;
  source: string;
  lines: (LineDef | EachDef)[];
  limit?: { label: string; key: string };
  sum?: { label: string; expr: Expr };
  /** shown even while it is zero: that is news enough */
  always?: boolean;
  /** a key without which the chart says nothing, though some of its series exist */
  needs?: string;
}

const MAX_LINES = 10;

/** The series of one instance, by key and by name. */
export class Catalogue {
  private byKey = new Map<string, Metric>();
  private byName = new Map<string, Metric[]>();

  constructor(readonly metrics: Metric[]) {
    for (const m of metrics) {
      this.byKey.set(m.key, m);
      const list = this.byName.get(m.name);
      if (list) list.push(m);
      else this.byName.set(m.name, [m]);
    }
  }

  /** The series of a key. */
  get(key: string): Metric | undefined {
    return this.byKey.get(key);
  }

  /** Whether a key exists. */
  has = (key: string): boolean => this.byKey.has(key);

  /** All series of a metric name. */
  family(name: string): Metric[] {
    return this.byName.get(name) ?? [];
  }

  /** The first existing key among alternatives. */
  first(f: First): string | null {
    for (const k of f.first) {
      if (typeof k === 'string') {
        if (this.byKey.has(k)) return k;
        // A key without labels also means the only series of its name.
        const only = this.family(k);
        if (only.length > 0) return only[0].key;
      } else {
        const m = this.metrics.find((x) => k.test(x.key));
        if (m) return m.key;
      }
    }
    return null;
  }
}

function isFirst(e: Expr | First): e is First {
  return typeof e === 'object' && 'first' in e;
}

function isEach(l: LineDef | EachDef): l is EachDef {
  return 'each' in l;
}

// Loop and memory devices never wait for a disk, and the loopback network never for a wire.
const NOISE = /^(loop|ram|zram|sr|fd)\d|^lo$/;

function expand(def: ChartDef, l: LineDef | EachDef, c: Catalogue): Omit<Line, 'colour'>[] {
  if (!isEach(l)) {
    const key = isFirst(l.expr) ? c.first(l.expr) : l.expr;
    const expr = key === null ? null : resolve(key, c.has);
    return expr === null ? [] : [{ label: l.label, expr, covers: l.covers }];
  }
  const family = c.family(l.each).filter((m) => !NOISE.test(m.labels?.[l.by] ?? ''));
  // Unchanging series are most often devices without work; if none changes, all are shown.
  const moving = family.filter((m) => l.still || !m.constant);
  const out: Omit<Line, 'colour'>[] = [];
  for (const m of moving.length > 0 ? moving : family.slice(0, 1)) {
    const expr = resolve(l.expr(m.key.slice(m.name.length)), c.has);
    const name = m.labels?.[l.by] ?? m.key;
    if (expr !== null) out.push({ label: l.prefix ? `${l.prefix} ${name}` : name, expr });
  }
  return def.lines.length > 1 ? out.slice(0, MAX_LINES / 2) : out.slice(0, MAX_LINES);
}

/** The chart of a definition for an instance; null when none of its series exist there. */
export function build(def: ChartDef, c: Catalogue, feed: Feed): ChartModel | null {
  if (def.needs && !c.has(def.needs)) return null;
  const lines: Line[] = [];
  for (const l of def.lines) {
    for (const found of expand(def, l, c)) {
      const own = isEach(l) ? undefined : l.colour;
      lines.push({ ...found, colour: own ?? CYCLE[lines.length % CYCLE.length] });
    }
  }
  if (lines.length === 0) return null;
  // One line needs no colour to be distinguished: grey is normal.
  if (lines.length === 1 && !def.stacked) lines[0].colour = 'line';
  const sum = def.sum ? resolve(def.sum.expr, c.has) : null;
  return {
    id: def.id, title: def.title, unit: def.unit, lines, stacked: def.stacked ?? false, top: def.top,
    explain: def.explain, source: def.source, feed,
    limit: def.limit && c.has(def.limit.key) ? def.limit : undefined,
    sum: def.sum && sum !== null ? { label: def.sum.label, expr: sum } : undefined,
  };
}

/** Whether a chart would draw nothing but a line at zero: all its series have always been zero. */
export function isQuiet(m: ChartModel, c: Catalogue): boolean {
  return m.lines.every((l) => keysOf(l.expr).every((k) => {
    const metric = c.get(k);
    return metric?.constant === true && metric.last === 0;
  }));
}
