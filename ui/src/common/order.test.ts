import { describe, expect, it } from 'vitest';
import type { Instance } from '../api';
import { fleetSentence } from '../fleet/sentence';
import { sortInstances } from './order';

const make = (name: string, over: Partial<Instance> = {}): Instance => ({
  id: name, name, kind: 'server', address: '', state: 'ok', words: '', since: 0, seen: 0, qps: null, threads_running: null, lag: null,
  cpu: null, findings: [], ...over,
});
const names = (list: Instance[]): string[] => list.map((i) => i.name);

describe('worst first', () => {
  it('puts down before critical before warning, hosts last among equals, the primary before its replicas', () => {
    const list = [
      make('host', { kind: 'host' }), make('db10', { role: 'replica' }), make('db2', { role: 'replica' }), make('p', { role: 'primary' }),
      make('w', { state: 'warning' }), make('c', { state: 'critical' }), make('hc', { state: 'critical', kind: 'host' }), make('d', { state: 'down' }),
    ];
    expect(names(sortInstances(list, ''))).toEqual(['d', 'c', 'hc', 'w', 'p', 'db2', 'db10', 'host']);
  });

  it('sorts by a column, what has no number last', () => {
    const list = [make('a', { qps: 5 }), make('b'), make('c', { qps: 50 })];
    expect(names(sortInstances(list, 'qps'))).toEqual(['a', 'c', 'b']);
    expect(names(sortInstances(list, '-qps'))).toEqual(['c', 'a', 'b']);
    expect(names(sortInstances(list, '-name'))).toEqual(['c', 'b', 'a']);
  });

  it('does not change what it is given', () => {
    const list = [make('b'), make('a')];
    sortInstances(list, 'name');
    expect(names(list)).toEqual(['b', 'a']);
  });
});

describe('the sentence', () => {
  const say = (instances: Instance[]): string => fleetSentence({ now: 0, version: '', instances }).text.replaceAll('\u00a0', ' ');
  it('is quiet about health', () => {
    expect(say([make('a', { qps: 1000 }), make('b', { qps: 240 }), make('h', { kind: 'host' })])).toBe('2 servers and 1 host are well, answering 1.24 k questions per second.');
    expect(say([make('a', { qps: 3 })])).toBe('1 server is well, answering 3 questions per second.');
  });
  it('names the worst and counts the rest', () => {
    const said = fleetSentence({ now: 0, version: '', instances: [make('a', { state: 'warning', words: 'slow' }), make('b', { state: 'down', words: 'refused' }), make('c')] });
    expect(said).toEqual({ tone: 'critical', text: 'b: refused. 1 other of 3 needs attention, too.' });
  });
});
