import { describe, expect, it, vi } from 'vitest';
import type { QueryPlan } from '../api';

vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener: () => undefined }));
vi.stubGlobal('location', new URL('http://x/'));
const { joined, pretty } = await import('./Plans');

const plan = (instance: string, id: string, first: number, last: number, schema = 's'): QueryPlan => ({ instance, id, first, last, schema, origin: 'explain', text: '{}' });

describe('plans', () => {
  it('joins what servers share, and knows which are in use', () => {
    const got = joined([plan('a', 'old', 10, 20), plan('a', 'new', 30, 40), plan('b', 'old', 5, 50), plan('b', 'older', 1, 4)]);
    expect(got.map((p) => [p.id, p.instances, p.first, p.last, p.current])).toEqual([
      ['old', ['b', 'a'], 5, 50, true], ['new', ['a'], 30, 40, true], ['older', ['b'], 1, 4, false],
    ]);
    expect(joined([plan('a', 'x', 1, 2), plan('a', 'x', 1, 3, 't')])).toHaveLength(2);
  });
  it('indents JSON and leaves all else', () => {
    expect(pretty('{"a":[1]}')).toBe('{\n  "a": [\n    1\n  ]\n}');
    expect(pretty('-> Table scan on t')).toBe('-> Table scan on t');
  });
});
