import { describe, expect, it } from 'vitest';
import type { Because, Instance } from '../api';
import { choices, linesOf, type Wanted } from './lines';
import { fleetSentence } from './sentence';

const server = (name: string, over: Partial<Instance> = {}): Instance => ({
  id: name, name, kind: 'server', address: `${name}:3306`, flavour: 'MariaDB', state: 'ok', words: 'healthy', since: 0, seen: 0,
  qps: 1, threads_running: 1, lag: null, cpu: null, findings: [], ...over,
});
const because = (over: Partial<Because> = {}): Because => ({ instance: 'db1', name: 'db1', finding: 'server.down', what: 'db1 is down', explains: [], all: true, ...over });
const wanted = (over: Partial<Wanted> = {}): Wanted => ({ q: '', state: '', group: '', flavour: '', sort: '', open: [], ...over });
const replicas = (n: number, b: Because): Instance[] => Array.from({ length: n }, (_, k) => server(`r${k + 1}`, { state: 'critical', words: 'cannot connect', because: [b] }));
const keys = (list: Instance[], w: Wanted): string[] => linesOf(list, w).map((l) => l.key);

describe('one cause', () => {
  const down = server('db1', { state: 'down', words: 'refuses connections' });
  it('is one line with its 20 replicas, which opens', () => {
    const list = [down, server('other'), ...replicas(20, because())];
    expect(keys(list, wanted())).toEqual(['db1', 'other']);
    expect(linesOf(list, wanted())[0]).toMatchObject({ effects: { length: 20 } });
    expect(keys(list, wanted({ open: ['db1'] })).length).toBe(22);
  });
  it('is said so in the sentence', () => {
    expect(fleetSentence({ now: 0, version: '', instances: [down, ...replicas(20, because())] }).text).toBe('db1: refuses connections. 20 others have trouble because of it.');
  });
  it('leaves an instance alone that has more wrong than that', () => {
    expect(keys([down, ...replicas(1, because({ all: false }))], wanted())).toEqual(['db1', 'r1']);
  });
  it('leaves effects alone whose cause the filter hides', () => {
    expect(keys([down, ...replicas(1, because())], wanted({ q: 'r1' }))).toEqual(['r1']);
  });
  it('has a line of its own if nobody watches it, for two or more', () => {
    const b = because({ instance: '', name: '10.0.0.9:3306', what: 'replicas of 10.0.0.9:3306 cannot connect' });
    expect(linesOf(replicas(3, b), wanted())).toMatchObject([{ kind: 'cause', effects: { length: 3 } }]);
    expect(keys(replicas(1, b), wanted())).toEqual(['r1']);
  });
  it('which is an effect itself stays a line', () => {
    const middle = server('mid', { state: 'critical', because: [because()] });
    const leaf = server('leaf', { state: 'critical', because: [because({ instance: 'mid', name: 'mid' })] });
    expect(keys([down, middle, leaf], wanted())).toEqual(['db1', 'mid']);
  });
});

describe('the filter', () => {
  const list = [server('a', { group: 'eu' }), server('b', { group: 'us', flavour: 'MySQL', state: 'warning' }), server('c', { group: 'us', state: 'down' })];
  it('is by words, state, group and flavour', () => {
    expect(keys(list, wanted({ q: 'A:3306' }))).toEqual(['a']);
    expect(keys(list, wanted({ state: 'bad' }))).toEqual(['c', 'b']);
    expect(keys(list, wanted({ group: 'us', flavour: 'MySQL' }))).toEqual(['b']);
    expect(choices(list)).toEqual({ groups: ['eu', 'us'], flavours: ['MariaDB', 'MySQL'] });
  });
  it('groups under headings with their worst state', () => {
    expect(linesOf(list, wanted({ sort: 'group' })).map((l) => (l.kind === 'group' ? [l.name, l.count, l.state] : l.key))).toEqual([['eu', 1, 'ok'], 'a', ['us', 2, 'down'], 'c', 'b']);
  });
});
