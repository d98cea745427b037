/** What differs between two plans' trees: lines that only one of them has. */

/** A line of a tree, and whether the other tree has none like it. */
export interface TreeLine {
  text: string;
  differs: boolean;
}

// Figures and literals differ between any two readings: a line is its step.
function stepOf(line: string, column: number): string {
  return line.slice(column).replace(/[│├└─\s]+/g, ' ').replace(/\b\d[\d,.]*\b/g, '?').trim();
}

const MOST = 400;

/** Marks the lines of both trees that have no partner in the other, by the longest common run of steps. */
export function diffTrees(a: string, b: string): [TreeLine[], TreeLine[]] {
  const split = (t: string): { lines: string[]; keys: string[] } => {
    const lines = t.split('\n').slice(0, MOST);
    const column = Math.max(0, lines[0]?.indexOf('step') ?? 0);
    return { lines, keys: lines.map((l) => stepOf(l, column)) };
  };
  const [x, y] = [split(a), split(b)];
  const [n, m] = [x.keys.length, y.keys.length];
  const best = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) best[i][j] = x.keys[i] === y.keys[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  }
  const [left, right]: [TreeLine[], TreeLine[]] = [x.lines.map((text) => ({ text, differs: true })), y.lines.map((text) => ({ text, differs: true }))];
  for (let i = 0, j = 0; i < n && j < m; ) {
    if (x.keys[i] === y.keys[j]) left[i++].differs = right[j++].differs = false;
    else if (best[i + 1][j] >= best[i][j + 1]) i++;
    else j++;
  }
  return [left, right];
}

/** Mean seconds of a call before and after a moment, up to a number of seconds away; null where nothing ran. */
export function around(time: number[], step: number, rate: (number | null)[], load: (number | null)[], at: number, reach: number): [number | null, number | null] {
  const mean = (inside: (t: number) => boolean): number | null => {
    let calls = 0;
    let seconds = 0;
    time.forEach((t, i) => {
      if (!inside(t) || rate[i] === null || load[i] === null) return;
      calls += rate[i]!;
      seconds += load[i]!;
    });
    return calls > 0 ? seconds / calls : null;
  };
  return [mean((t) => t + step <= at && t >= at - reach), mean((t) => t >= at && t < at + reach)];
}
