import { describe, expect, test } from 'vitest';
import type { Candidate, GroupChange, GroupForecast, GroupMember, GroupStanding, Receipt, SeenMember, Standing } from '../api';
import { barredAs, candidateWords, changeWords, controllerWords, fenceWords, forecastWords, groupSaid, holderOf, lagWords, lead, lostWords, memberState, nextStatuses, outageWords, outcome, policyWords, question, seenWords, verdictTone, viewWords } from './words';

const NOW = Date.parse('2026-11-29T00:10:00Z') / 1000;
const at = '2026-11-29T00:09:59Z';
const NBSP = '\u00a0';

const member = (name: string, status: GroupMember['status'], more: Partial<GroupMember> = {}): GroupMember => ({ name, address: `${name}:3306`, status, rule: 'neutral', weight: 1, since: at, ...more });
const look = (name: string, more: Partial<SeenMember> = {}): SeenMember => ({ name, at, answers: true, open: false, source: 'db1:3306', channels: 1, receives: true, applies: true, behind_seconds: 0, ...more });
const primaryLook = look('db1', { open: true, channels: 0, source: undefined, receives: false, applies: false, behind_seconds: null });
const change = (more: Partial<GroupChange> = {}): GroupChange => ({ group: 'shop', epoch: 7, kind: 'failover', stage: 'done', by: 'risso serve', automatic: true, old: 'db1', new: 'db2', began: '2026-11-29T00:09:50Z', ended: '2026-11-29T00:09:52Z', steps: [], ...more });
const standing = (more: { group?: Partial<GroupStanding['group']>; seen?: Partial<NonNullable<GroupStanding['seen']>> | null; change?: GroupChange | null; view?: GroupStanding['view'] } = {}): GroupStanding => ({
  group: { name: 'shop', active: true, policy: { automatic: true, lossless: false, pause_ns: 3.6e12, rejoin: true, semi_sync: true }, members: [member('db1', 'PRIMARY'), member('db2', 'SECONDARY'), member('db3', 'SECONDARY')], epoch: 6, since: at, lease: { holder: '', epoch: 6, until: at }, ...more.group },
  seen: more.seen === null ? null : { state: 'alive', since: null, busy: false, members: [primaryLook, look('db2'), look('db3')], findings: [], ...more.seen },
  view: more.view ?? null,
  change: more.change ?? null,
});

describe('what is going on in a group', () => {
  const cases: [string, GroupStanding, boolean, string, RegExp][] = [
    ['all is well', standing(), true, 'ok', /^db1 takes writes, and all others replicate\.$/],
    ['dead, and somebody acts', standing({ seen: { state: 'dead', words: 'it does not answer for 2 s' } }), true, 'critical', /^db1, the primary, is dead: it does not answer for 2 s\.$/],
    ['dead, and nobody acts', standing({ seen: { state: 'dead', words: 'gone' } }), false, 'critical', /nobody fails over by itself here\.$/],
    ['not certain', standing({ seen: { state: 'suspect', words: '' } }), true, 'warning', /not yet certain/],
    ['under way', standing({ group: { lease: { holder: 'serve/a/1', epoch: 7, until: '2026-11-29T00:10:20Z' } }, change: change({ stage: 'draining', ended: undefined }) }), true, 'critical', /^A failover from db1 to db2 is under way: the new primary applies/],
    ['cut off', standing({ change: change({ kind: 'switchover', stage: 'stopping', ended: undefined }) }), true, 'warning', /^A switchover was cut off/],
    ['no primary', standing({ group: { members: [member('db1', 'SECONDARY')] } }), true, 'critical', /has no primary/],
    ['left alone', standing({ group: { active: false }, seen: null }), true, 'warning', /left alone.*clients stay with db1, the primary/],
    ['closed', standing({ seen: { members: [look('db1', { channels: 0 })] } }), true, 'critical', /takes no writes \(read-only\)/],
    ['out', standing({ group: { members: [member('db1', 'PRIMARY'), member('db2', 'FAULTY'), member('db3', 'FAULTY')] } }), true, 'warning', /db2 and db3 are out/],
    ['a replica that stopped', standing({ seen: { members: [primaryLook, look('db2', { applies: false }), look('db3')] } }), true, 'warning', /db2 does not replicate/],
    ['commits hang', standing({ seen: { findings: [{ id: 'failover.unready', severity: 'warning', what: 'nobody could follow' }, { id: 'failover.semisync', severity: 'critical', what: 'commits on db1 wait for replicas' }] } }), true, 'critical', /^Commits on db1 wait for replicas\.$/],
    ['a remark', standing({ seen: { findings: [{ id: 'failover.controller', severity: 'info', what: 'the only controller is on the machine of db1' }] } }), true, 'ok', /^db1 takes writes/],
    ['not ready', standing({ seen: { findings: [{ id: 'failover.unready', severity: 'warning', what: 'nobody could follow' }] } }), true, 'warning', /^Nobody could follow\.$/],
    ['nobody looked', standing({ seen: null }), true, 'warning', /has not looked at it yet/],
  ];
  test.each(cases)('%s', (_, s, automatic, tone, text) => {
    const said = groupSaid(s, automatic, NOW);
    expect(said.tone).toBe(tone);
    expect(said.text).toMatch(text);
  });

  test('the sentence on top counts those that need attention', () => {
    const of = (...groups: GroupStanding[]): Standing => ({ now: at, automatic: true, leads: true, groups });
    expect(lead(of(standing()), NOW)).toEqual({ tone: 'ok', text: '1 group; its primary takes writes, and replicas follow.' });
    expect(lead(of(standing(), standing({ seen: null })), NOW)).toEqual({ tone: 'warning', text: '1 of 2 groups needs attention.' });
    expect(lead(of(standing({ seen: { state: 'dead' } })), NOW)).toEqual({ tone: 'critical', text: 'The group needs attention.' });
  });

  test('a lease that ended is nobody’s', () => {
    expect(holderOf(standing({ group: { lease: { holder: 'x', epoch: 1, until: '2026-11-29T00:10:01Z' } } }), NOW)).toBe('x');
    expect(holderOf(standing({ group: { lease: { holder: 'x', epoch: 1, until: '2026-11-29T00:09:59Z' } } }), NOW)).toBe('');
  });
});

test('members: their mark, the last look, how far behind', () => {
  const p = member('db1', 'PRIMARY');
  const r = member('db2', 'SECONDARY');
  expect([memberState(p, primaryLook), memberState(r, look('db2')), memberState(r, undefined), memberState(r, look('db2', { open: true })), memberState(p, look('db1', { answers: false })), memberState(member('x', 'FAULTY'), undefined)]).toEqual(['ok', 'ok', 'new', 'warning', 'critical', 'critical']);
  expect(seenWords(p, primaryLook)).toBe('takes writes');
  expect(seenWords(r, look('db2'))).toBe('read-only, replicates from db1:3306');
  expect(seenWords(r, look('db2', { applies: false, trouble: '1062: Duplicate entry' }))).toBe('read-only, receives, and does not apply: 1062: Duplicate entry');
  expect(seenWords(r, look('db2', { channels: 0 }))).toBe('read-only, does not replicate');
  expect(seenWords(r, look('db2', { answers: false, trouble: 'nothing listens there' }))).toBe('does not answer: nothing listens there');
  expect([lagWords(p, primaryLook), lagWords(r, look('db2', { behind_seconds: 3 })), lagWords(r, look('db2', { behind_seconds: null })), lagWords(r, undefined)]).toEqual(['', `3${NBSP}s`, 'not known', 'not known']);
  expect(nextStatuses('FAULTY')).toEqual(['SPARE']);
  expect(nextStatuses('PRIMARY')).toEqual([]);
});

describe('the forecast', () => {
  const candidate = (name: string, more: Partial<Candidate> = {}): Candidate => ({ name, received: '', waiting: 0, lacks: 0, refused: null, ...more });
  const forecast = (more: Partial<GroupForecast> = {}, choice: Partial<GroupForecast['choice']> = {}): GroupForecast => ({ group: 'shop', asked: at, primary: 'db1', alive: true, ready: true, known: { told: true, semi_sync: true, lossless: true, wait_for: 1, acknowledgers: ['db2'] }, plan: [], agents: [], choice: { winner: 'db2', candidates: [candidate('db2')], refused: null, lost_count: 0, ...choice }, ...more });
  const text = (f: GroupForecast, behind: number | null = 0): string => forecastWords(f, (n) => look(n, { behind_seconds: behind })).map((s) => s.text).join(' ');

  test('who, how long, and what is lost', () => {
    expect(text(forecast())).toBe('If db1 died now, db2 would follow; it has applied all that it received. No acknowledged transaction would be lost: each commit waits for 1 replica, without a time-out.');
    expect(text(forecast({}, { candidates: [candidate('db2', { waiting: 1200 })], from: 'db3' }), 4)).toContain(`it has 1,200 transactions to apply first, and is 4${NBSP}s behind, and gets what it lacks from db3.`);
    const two = { told: true, semi_sync: true, lossless: true, wait_for: 1, acknowledgers: ['db2', 'db3'] };
    const gone = candidate('db3', { refused: [{ code: 'not_seen', why: 'it does not answer' }] });
    expect(text(forecast({ known: two }, { candidates: [candidate('db2'), candidate('db3')] }))).toContain('No acknowledged transaction would be lost');
    expect(text(forecast({ known: two }, { candidates: [candidate('db2'), gone] }))).toContain('It could not be proven that nothing is lost: each commit waits for 1 replica, but only 1 of the 2 that acknowledge answers, and 2 would have to.');
    expect(text(forecast({ known: { ...two, wait_for: 2 } }, { candidates: [candidate('db2'), gone] }))).toContain('No acknowledged transaction would be lost: each commit waits for 2 replicas');
    expect(text(forecast({ known: { told: true, semi_sync: true } }))).toContain('may stop waiting');
    expect(text(forecast({ known: { told: true } }))).toContain('replication is asynchronous');
    expect(text(forecast({ known: {} }))).toContain('is not known');
  });
  test('for how long it is waited', () => {
    const drain = { transactions: 1200, seconds: 12, words: 'about 12 s' };
    const waits = [candidate('db2', { waiting: 1500, drain })];
    expect(text(forecast({}, { candidates: waits, drain, handover: { transactions: 1300, seconds: 13, words: 'about 13 s' } }), null)).toContain('it has 1,200 transactions to apply first: about 12 s. In a switchover nobody could write until it has applied all that db1 has: about 13 s.');
    const none = { transactions: 0, seconds: 0, words: 'nothing to apply' };
    expect(text(forecast({}, { candidates: [candidate('db2', { waiting: 3, drain: none })], drain: none, handover: none }))).toMatch(/^If db1 died now, db2 would follow; it has applied all that it received\. No ack/);
    expect(candidateWords(waits[0])).toBe('may follow; 1,200 transactions to apply: about 12 s');
    expect(candidateWords(candidate('db2', { waiting: 3, drain: none }))).toBe('may follow');
    expect(candidateWords(candidate('db3', { waiting: 9, drain: { transactions: 9, seconds: null, stands: true, words: 'never, as it is' }, refused: [{ code: 'applier', why: 'it does not apply' }] }))).toBe('it does not apply; 9 transactions to apply: never, as it is');
  });
  test('nobody could follow; a dead primary; a loss', () => {
    expect(text(forecast({ ready: false }, { winner: '' }))).toContain('If db1 died now, nobody could follow.');
    expect(forecastWords(forecast({ alive: false, because: 'nothing listens there' }, { winner: '' }), () => undefined)).toEqual([{ tone: 'critical', text: 'db1 does not answer (nothing listens there): nobody could follow.' }]);
    expect(text(forecast({ alive: false }, { lost_count: 2 }))).toContain('2 transactions of db1 would be lost.');
  });
  test('to whom nobody can switch over', () => {
    const f = forecast({}, { candidates: [candidate('db2'), candidate('db3', { refused: [{ code: 'spare', why: 'it is SPARE' }] }), candidate('db4', { refused: [{ code: 'faulty', why: 'it is FAULTY' }, { code: 'not_seen', why: 'it does not answer' }] })] });
    expect(['db2', 'db3', 'db4', 'db5'].map((n) => barredAs(f, n))).toEqual(['', '', 'it is FAULTY; it does not answer', '']);
    expect(barredAs(null, 'db2')).toBe('');
  });
  test('candidates', () => {
    expect(candidateWords(candidate('db2'))).toBe('may follow');
    expect(candidateWords(candidate('db2', { waiting: 1 }))).toBe('may follow; 1 transaction to apply');
    expect(candidateWords(candidate('db3', { lacks: 2, refused: [{ code: 'applier', why: 'it does not apply' }], notes: ['it logs by mixed'] }))).toBe('it does not apply; lacks 2 transactions that another member received; it logs by mixed');
  });
});

test('the policy, and when it may act again', () => {
  const p = standing().group.policy;
  expect(policyWords(p, true, true, undefined, NOW)[0]).toBe('failed over automatically');
  expect(policyWords(p, true, false, undefined, NOW)[0]).toBe('failed over by hand only: risso serve runs without --failover auto');
  expect(policyWords({ ...p, automatic: false }, true, true, undefined, NOW)[0]).toBe('failed over by hand only');
  expect(policyWords(p, true, true, '2026-11-28T23:40:00Z', NOW)[0]).toBe(`failed over automatically, but not again within the next 30${NBSP}min`);
  expect(policyWords(p, false, true, undefined, NOW)[0]).toContain('left alone');
  expect(policyWords({ ...p, agents_ns: 5e9 }, true, true, undefined, NOW)).toContain(`agents fence a primary that no controller confirmed for 5${NBSP}s`);
});

test('changes, receipts, and what is asked before a change', () => {
  const receipt: Receipt = { group: 'shop', epoch: 7, kind: 'failover', time: at, old: 'db1', new: 'db2', outage_ns: 1.5e9, verdict: 'nothing_lost', words: 'zero', lost_count: 0, checked: '' };
  expect(changeWords(change())).toBe('failover from db1 to db2, automatic');
  expect(changeWords(change({ kind: 'switchover', automatic: false, by: 'ann' }))).toBe('switchover from db1 to db2, by ann');
  expect(outcome(change({ receipt: { ...receipt, verdict: 'lost' } }), NOW)).toEqual({ tone: 'critical', text: `done in 2${NBSP}s` });
  expect(outcome(change({ stage: 'undone' }), NOW).tone).toBe('warning');
  expect(outcome(change({ stage: 'pointing', ended: undefined }), NOW).text).toBe(`for 10${NBSP}s: the others are pointed at the new primary`);
  expect([verdictTone(receipt), verdictTone({ ...receipt, verdict: 'perhaps_lost' })]).toEqual(['ok', 'warning']);
  expect(lostWords({ gtid: '0-1-7', time: at, changes: [{ table: 'shop.orders', kind: 'insert', rows: 2 }, { table: 'shop.t', kind: 'drop' }] })).toBe('insert 2 rows of shop.orders, drop shop.t');
  expect(lostWords({ gtid: '0-1-7', time: at, changes: [] })).toBe('changed nothing');
  expect(outageWords(receipt)).toBe(`nobody took writes for 1.5${NBSP}s`);
  expect(outageWords({ ...receipt, outage_longer: true })).toContain('at least');
  expect(outageWords({ ...receipt, outage_ns: 0 })).toContain('not known');
  expect(question({ do: 'switchover', group: 'shop', to: 'db2' }, { group: 'shop', dry_run: true, old: 'db1', new: 'db2', plan: [] })).toBe('Switch shop over from db1 to db2?');
});

test('where clients go, who is fenced, who leads', () => {
  const view = { epoch: 7, primary: { server: 'db1', address: 'db1:3306' }, replicas: [{ server: 'db2', address: 'db2:3306' }, { server: 'db3', address: 'db3:3306' }], since: at, seen: at };
  expect(viewWords(standing({ view })).text).toBe('Clients are told: writes to db1 (db1:3306), reads to db2 and db3, epoch 7.');
  expect(viewWords(standing({ view: { ...view, primary: null, no_primary: 'db1 is dead' } }))).toEqual({ tone: 'critical', text: 'Clients are told that there is no primary: db1 is dead; reads to db2 and db3.' });
  expect(viewWords(standing()).tone).toBe('warning');
  expect(fenceWords(standing({ group: { members: [member('db1', 'PRIMARY'), member('db2', 'SECONDARY', { fenced: {} })] }, seen: { members: [primaryLook, look('db2', { open: true })] } })).map((s) => s.text)).toEqual(['Kept from writes by Risso: db2.', 'db2 is no primary, and would take writes.']);
  expect(controllerWords({ name: 'a', address: 'a:1', votes: true, state: 'leader', leader: 'a', epoch: 2 })).toBe('leads, and acts');
  expect(controllerWords({ name: 'a', address: 'a:1', votes: false, state: 'follower', leader: 'b', epoch: 0, trouble: 'the disk is full' })).toBe('follower; does not vote yet; the disk is full');
});
