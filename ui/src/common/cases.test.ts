import { expect, it } from 'vitest';
import cases from '../../../internal/digits/testdata/cases.json';
import * as format from './format';

// What the page has no use for.
const ELSEWHERE = new Set(['shift', 'change', 'chance']);

const RULES: Record<string, (v: number | null) => string> = {
  three: format.three, number: format.number, rate: format.rate, count: format.count, bytes: format.bytes, seconds: format.seconds, age: format.age,
  percent: format.percent, ratio: format.ratio, thousands: (v) => format.thousands(v!), row: (v) => format.counted(v!, 'row'),
};

// The same table as Go's: a quantity has one text wherever it is shown. Only the page keeps a number and its unit on one line.
it.each(Object.entries(cases as unknown as Record<string, [number | null, string][]>).filter(([name]) => !ELSEWHERE.has(name)))('%s', (name, table) => {
  expect(table.map(([v]) => [v, RULES[name](v).replaceAll('\u00a0', ' ')])).toEqual(table);
});
