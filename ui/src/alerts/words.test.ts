import { describe, expect, it } from 'vitest';
import type { Alert, AlertsNow, Receiver } from '../api';
import { alertsSentence, laneWords, lanes, matchWords, receiverWords, thresholdWords, toldWords } from './words';

const NOW = Date.parse('2026-11-24T08:00:00Z') / 1000;
const alert = (over: Partial<Alert> = {}): Alert => ({
  key: 'db1/server.down', finding: 'server.down', instance: 'db1', server: 'db1', severity: 'critical', phase: 'firing',
  began: '2026-11-24T07:50:00Z', rang: '2026-11-24T07:50:00Z', what: 'the server is down', record: 1, ...over,
});
const receiver = (over: Partial<Receiver> = {}): Receiver => ({ name: 'oncall', waiting: 0, messages: [], ...over });
const all = (alerts: Alert[], receivers: Receiver[]): AlertsNow => ({ alerts, receivers, silences: [] });

describe('the sentence about alerts', () => {
  it('says quietly that nothing rings', () => {
    expect(alertsSentence(all([], [receiver()]))).toEqual({ tone: 'ok', text: 'Nothing rings.' });
  });
  it('names the worst and counts the rest', () => {
    const said = alertsSentence(all([alert({ severity: 'warning', server: 'db2', what: 'late' }), alert()], [receiver()]));
    expect(said).toEqual({ tone: 'critical', text: 'db1: the server is down. 1 other alert fires, too.' });
  });
  it('says that messages do not arrive, even if nothing rings', () => {
    const said = alertsSentence(all([], [receiver({ failing: 'refused', waiting: 3 })]));
    expect(said).toEqual({ tone: 'warning', text: 'Nothing rings. oncall takes no messages: 3 messages wait.' });
  });
  it('says that nobody would be told', () => {
    expect(alertsSentence(all([], [])).text).toContain('Nobody is told');
  });
});

describe('who was told', () => {
  const told = { oncall: { at: '2026-11-24T07:50:05Z', severity: 'critical' as const } };
  it('does not count a message that waits as told', () => {
    const stuck = receiver({ failing: 'refused', waiting: 1, messages: [{ id: '1', title: '', made: '2026-11-24T07:50:05Z', tries: 3 }] });
    expect(toldWords(alert({ told }), [stuck], NOW)).toBe('oncall not reached yet');
    expect(toldWords(alert({ told }), [receiver()], NOW)).toMatch(/^oncall told /);
  });
  it('says that nobody was', () => {
    expect(toldWords(alert(), [], NOW)).toBe('nobody was told');
    expect(toldWords(alert({ phase: 'pending' }), [], NOW)).toBe('');
  });
});

describe('receivers and silences in words', () => {
  it('say why and how many', () => {
    expect(receiverWords(receiver({ failing: 'refused', waiting: 2 }), NOW)).toBe('takes no messages: refused; 2 messages wait; nothing delivered yet');
    expect(matchWords({ server: 'shop-*', finding: 'lock.*' })).toBe('lock.* on shop-*');
    expect(matchWords({})).toBe('everything on all servers');
  });
});

describe('the time line', () => {
  it('has one line for a server and a reason, also if the connection was another', () => {
    const lock = (n: number, began: string, ended: string) => alert({ finding: 'lock.blocker', subject: `connection ${n} (app@web)`, severity: 'warning', began, ended });
    const got = lanes([lock(1, '2026-11-24T01:00:00Z', '2026-11-24T01:01:00Z'), lock(2, '2026-11-24T02:00:00Z', '2026-11-24T02:02:00Z'), alert()]);
    expect(got.map((l) => [l.severity, l.alerts.length])).toEqual([['critical', 1], ['warning', 2]]);
    expect(laneWords(got[1], NOW)).toBe('2 times, 3\u00a0min');
  });
});

describe('thresholds', () => {
  it('are said in words', () => {
    expect(thresholdWords({ finding: 'repl.lag', server: 'report-*', for: '30m' })).toBe('repl.lag on report-*: rings after 30m');
    expect(thresholdWords({ finding: 'lock.*', group: 'shop', above: 20 })).toBe('lock.* in group shop: rings above 20');
    expect(thresholdWords({ severity: 'critical', for: '0s' })).toBe('everything, at least critical on all servers: rings at once');
    expect(thresholdWords({ finding: 'repl.writable', server: 'scratch', off: true })).toBe('repl.writable on scratch: never rings');
  });
});
