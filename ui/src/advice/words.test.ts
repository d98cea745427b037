import { describe, expect, it } from 'vitest';
import type { AdviceAnswer, AdviceServer, Advised, Decision } from '../api';
import { adviceSentence, costWords, countWords, decisionWords, groups, lookWords, nextWords, onWords, silenceWords, sureWords } from './words';

const NOW = Date.parse('2026-11-27T12:00:00Z') / 1000;
const plain = (s: string): string => s.replaceAll('\u00a0', ' ');
const server = (over: Partial<AdviceServer> = {}): AdviceServer => ({
  instance: 'db1', name: 'db1', looked: '2026-11-27T03:12:00Z', tables: 4, seconds: 1.2, missing: [], more: {}, error: '', critical: 0, warning: 0, info: 0, ...over,
});
const answer = (over: Partial<AdviceAnswer> = {}): AdviceAnswer => ({
  findings: [], left: 0, counts: { critical: 0, warning: 0, info: 0, decided: 0, gone: 0 }, kinds: [], servers: [server()], silences: [], every: 86400, ...over,
});
const found = (over: Partial<Advised> = {}): Advised => ({
  id: 'schema.no_pk', object: 's.t', severity: 'warning', what: 'table s.t has no primary key', evidence: [], sure: 'certain', cost: {}, state: 'open',
  on: [{ instance: 'db1', name: 'db1', since: '2026-11-20T12:00:00Z', seen: '2026-11-27T03:12:00Z' }], ...over,
});
const decision = (over: Partial<Decision> = {}): Decision => ({ number: 1, kind: 'accepted', finding: 'schema.no_pk', object: 's.t', at: '2026-11-25T12:00:00Z', who: 'ann', reason: 'it is a queue', ...over });

describe('the sentence about advice', () => {
  it('counts, the worst first', () => {
    expect(adviceSentence(answer({ counts: { critical: 1, warning: 2, info: 1, decided: 5, gone: 0 } }), false)).toEqual({ tone: 'critical', text: '1 critical, 2 warnings, 1 hint.' });
    expect(countWords({ critical: 0, warning: 1, info: 0 })).toBe('1 warning');
  });
  it('does not say that nothing is wrong where nobody looked', () => {
    expect(adviceSentence(answer({ servers: [server({ looked: undefined })] }), false).text).toBe('No look has been finished yet, so nothing is known.');
    expect(adviceSentence(answer({ servers: [server({ looked: undefined, error: 'access denied' })] }), false).text).toBe('Nothing is known yet: db1: access denied.');
    expect(adviceSentence(answer({ servers: [server(), server({ looked: undefined })] }), false).text).toBe('Nothing was found. Of 1 of 2 servers nothing is known yet.');
    expect(adviceSentence(answer({ servers: [server({ missing: [{ what: 'foreign keys', why: 'no privilege' }] })] }), false).text).toBe('Nothing was found. Some of it could not be read: see below.');
  });
  it('knows that less was asked for', () => {
    expect(adviceSentence(answer(), true).text).toBe('Nothing that fits was found.');
    expect(adviceSentence(answer({ servers: [] }), false).text).toBe('No server is watched here.');
  });
});

describe('a finding in words', () => {
  it('says on which servers', () => {
    const on = Array.from({ length: 14 }, (_, i) => ({ instance: `db${i}`, name: `db${i}`, since: '', seen: '' }));
    expect(onWords({ on }, 40)).toBe('14 of 40 servers');
    expect(onWords({ on }, 14)).toBe('all 14 servers');
    expect(onWords(found(), 40)).toBe('db1');
  });
  it('says what it costs and how sure it is', () => {
    expect(plain(costWords({ seconds: 0.5, bytes: 1048576, risk: 'INSERTs fail' }))).toBe('500 ms of load each second, 1 MiB');
    expect(costWords({})).toBe('');
    expect(sureWords({ sure: 'likely', doubt: 'a report may need it' })).toBe('likely: a report may need it');
    expect(sureWords({ sure: 'certain' })).toMatch(/^certain/);
  });
  it('says who decided what', () => {
    expect(plain(decisionWords(decision(), NOW))).toBe('accepted by ann 2 d ago: it is a queue');
    expect(decisionWords(decision({ kind: 'postponed', until: '2026-12-25T12:00:00Z' }), NOW)).toContain('postponed until 2026-12-25');
    expect(silenceWords(decision({ finding: 'index.*', object: '', server: 'web-*' }))).toBe('index.* on web-*');
    expect(silenceWords(decision({ finding: 'index.*', object: 's.*' }))).toBe('index.* of s.* on all servers');
  });
});

describe('a look in words', () => {
  it('says when, how long, and what was too much', () => {
    expect(plain(lookWords(server({ more: { 'schema.no_pk': 9000 } }), NOW))).toMatch(/^looked at \d\d:12:00, took 1.2 s, 4 tables; too many to list: 9,000 more of schema.no_pk$/);
    expect(lookWords(server({ looked: undefined, error: 'refused', tried: '2026-11-27T03:12:00Z' }), NOW)).toMatch(/^not looked at yet; the look of \d\d:12:00 failed: refused$/);
  });
  it('says when the next one is', () => {
    expect(plain(nextWords(server({ next: '2026-11-28T03:00:00Z' }), NOW))).toBe('again in 15 h');
    expect(nextWords(server({ queued: true }), NOW)).toBe('is next');
    expect(nextWords(server(), NOW)).toBe('again when somebody asks');
  });
});

describe('groups', () => {
  const list = [found({ severity: 'critical', id: 'schema.autoinc' }), found(), found({ severity: 'info', id: 'schema.autoinc' })];
  it('are by how bad', () => {
    expect(groups(list, [], false).map((g) => [g.name, g.list.length])).toEqual([['Critical', 1], ['Warnings', 1], ['Hints', 1]]);
  });
  it('or by kind', () => {
    const kinds = [{ id: 'schema.autoinc', title: 'nearly used up', severity: 'critical' as const, count: 2 }, { id: 'schema.no_pk', severity: 'warning' as const, count: 1 }];
    expect(groups(list, kinds, true).map((g) => [g.name, g.list.length])).toEqual([['schema.autoinc: nearly used up', 2], ['schema.no_pk', 1]]);
  });
});
