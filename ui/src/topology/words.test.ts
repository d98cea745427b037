import { describe, expect, test } from 'vitest';
import type { Picture, TopologyAnswer, TopologyChange, TopologyNode } from '../api';
import { fieldOf, fit, lead, nodeLabel, nodeLines, ofField, step, troubled } from './words';

const node = (name: string, more: Partial<TopologyNode> = {}): TopologyNode => ({
  id: name, name, instance: name, role: 'replica', state: 'ok', since: '2026-11-28T03:00:00Z', words: ['read-only', '0 s behind', 'mariadb 10.11.14'], seen: true, writable: false, x: 0, y: 0, width: 204, height: 58, ...more,
});
const picture = (nodes: TopologyNode[], more: Partial<Picture> = {}): Picture => ({ time: '2026-11-28T03:12:00Z', state: 'ok', words: 'All is well.', nodes, links: [], boxes: [], surprises: [], width: 100, height: 100, ...more });
const answer = (more: Partial<TopologyAnswer>): TopologyAnswer => ({ at: '', known: true, every: 10, topology: null, ...more });

test('the sentence is that of the topology, or why it is not known', () => {
  expect(lead(answer({ topology: picture([], { state: 'critical', words: 'db3: does not apply.' }) }))).toEqual({ tone: 'critical', text: 'db3: does not apply.' });
  expect(lead(answer({ topology: picture([], { state: 'unknown' }) })).tone).toBe('ok');
  expect(lead(answer({ known: false, why: 'risso serve did not look from 03:00 to 04:00' }))).toEqual({ tone: 'warning', text: 'Not known: risso serve did not look from 03:00 to 04:00.' });
});

test('those that need attention come worst first, the unseen before the others', () => {
  const p = picture([node('a'), node('w', { state: 'warning' }), node('c', { state: 'critical' }), node('d', { state: 'critical', seen: false }), node('u', { state: 'unknown' })]);
  expect(troubled(p).map((n) => n.name)).toEqual(['d', 'c', 'w']);
});

describe('what is written into a server', () => {
  test.each([[58, ['read-only', '0 s behind, mariadb 10.11.14']], [40, ['read-only']], [24, []]])('%i pixels high', (height, lines) => {
    expect(nodeLines(node('a', { height }))).toEqual(lines);
  });
  test('text is cut by characters, not within one', () => {
    expect(fit('12345678', 60, 6)).toBe('12345678');
    expect(fit('🐬🐬🐬🐬🐬🐬', 30, 6)).toBe('🐬🐬🐬🐬…');
  });
});

test('a screen reader hears state, words and with whom it replicates', () => {
  const p = picture([node('db1', { words: ['writable'] }), node('db2', { state: 'critical', words: ['stopped'], instance: undefined })], { links: [{ source: 0, replica: 1, kind: 'stopped', state: 'warning', words: 'stopped', path: '' }] });
  expect(nodeLabel(p, 0)).toBe('db1: ok, writable, 1 replica');
  expect(nodeLabel(p, 1)).toBe('db2: critical, stopped, replicates from db1, not watched');
});

test('steps go to the change before and after, over gaps', () => {
  const at = (s: number): string => new Date(s * 1000).toISOString();
  const changes: TopologyChange[] = [{ time: at(300), until: at(400), words: [] }, { time: at(250), until: at(300), gap: true, words: [] }, { time: at(200), until: at(250), words: [] }, { time: at(100.5), until: at(190), words: [] }];
  expect(step(changes, null, false)).toBe(300);
  expect(step(changes, 300, false)).toBe(200);
  expect(step(changes, 250, false)).toBe(200);
  expect(step(changes, 101, false)).toBeNull();
  expect(step(changes, 101, true)).toBe(200);
  expect(step(changes, 300, true)).toBeNull();
  expect(step(changes, null, true)).toBeNull();
});

test('a field for date and time says the moment that it shows', () => {
  const t = Math.floor(new Date(2026, 10, 28, 3, 12, 5).getTime() / 1000);
  expect(fieldOf(t)).toBe('2026-11-28T03:12:05');
  expect(ofField(fieldOf(t))).toBe(t);
  expect(ofField('')).toBeNull();
  expect(ofField('soon')).toBeNull();
});
