import { describe, expect, it } from 'vitest';
import { heavyWait, waitColour, waitName, waitWords } from './waits';

const w = (value: string, seconds: number, calls = seconds) => ({ value, calls, seconds });

describe('waits', () => {
  it('are named in the sentence only when there are enough samples and they matter', () => {
    expect(waitWords([w('running', 25), w('row_lock', 75)])).toMatch(/^; 75\s% of its sampled time it waits for: row lock$/);
    expect(waitWords([w('row_lock', 4)])).toBe('');
    expect(waitWords([w('running', 80), w('io', 20)])).toBe('');
    expect(waitWords([w('running', 10), w('other', 90)])).toBe('');
    expect(waitWords([])).toBe('');
  });
  it('are marked in a list when they are a good part of the load', () => {
    expect(heavyWait(w('row_lock', 30), 100)).toBe(true);
    expect(heavyWait(w('row_lock', 10), 100)).toBe(false);
    expect(heavyWait(w('running', 90), 100)).toBe(false);
    expect(heavyWait(w('other', 90), 100)).toBe(false);
    expect(heavyWait(w('row_lock', 1), 1)).toBe(false);
  });
  it('have names and colours, also those that nobody knows yet', () => {
    expect([waitName('row_lock'), waitColour('row_lock')]).toEqual(['row lock', 'mauve']);
    expect([waitName('some_new'), waitColour('some_new')]).toEqual(['some new', 'pale']);
  });
});
