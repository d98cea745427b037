import { describe, expect, it } from 'vitest';
import { around, diffTrees } from './diff';

const BEFORE = `#  cost  rows  step
1              query block #1
2     7    25  └─ nested loop
3     1    25     ├─ customer c ref region
4     6    27     └─ invoice i ref customer (customer_id)
                     │   where i.paid = 1`;
const AFTER = `#  cost   rows  step
1               query block #1
2    99      3  └─ nested loop
3     1     30     ├─ customer c ref region
4    98  30000     └─ invoice i scan
                      │   where i.paid = 0`;

describe('two plans', () => {
  it('marks steps that only one has, not figures or literals', () => {
    const [a, b] = diffTrees(BEFORE, AFTER);
    expect(a.filter((l) => l.differs).map((l) => l.text.trim())).toEqual(['4     6    27     └─ invoice i ref customer (customer_id)']);
    expect(b.filter((l) => l.differs).map((l) => l.text.trim())).toEqual(['4    98  30000     └─ invoice i scan']);
    expect(a.map((l) => l.text).join('\n')).toBe(BEFORE);
    expect(diffTrees(BEFORE, BEFORE).flat().some((l) => l.differs)).toBe(false);
    expect(diffTrees('', AFTER)[1].filter((l) => !l.differs)).toHaveLength(0);
  });
  it('tells what a call took before and after', () => {
    const time = [0, 60, 120, 180];
    expect(around(time, 60, [10, 10, 0, 20], [1, 3, 0, 8], 130, 600)).toEqual([0.2, 0.4]);
    expect(around(time, 60, [10, 10, null, 0], [1, 3, null, 0], 130, 600)).toEqual([0.2, null]);
    expect(around(time, 60, [10, 10, 10, 10], [1, 3, 4, 5], 120, 60)).toEqual([0.3, 0.4]);
  });
});
