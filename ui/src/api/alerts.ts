/** What rings, who was told, what is silenced. */
import { get, only, request, type Pairs } from './http';
import type { Severity } from './watch';

/** Whether an alert is waiting to ring, rings, or is over. */
export type Phase = 'pending' | 'firing' | 'resolved';

/** A finding that rings, rang, or is about to. */
export interface Alert {
  key: string;
  finding: string;
  subject?: string;
  instance: string;
  server: string;
  group?: string;
  /** at its worst */
  severity: Severity;
  phase: Phase;
  began: string;
  rang?: string;
  ended?: string;
  /** it ended at some moment in which nobody looked */
  unseen?: boolean;
  what: string;
  why?: string;
  remedy?: string;
  evidence?: string[] | null;
  value?: number;
  /** how often it came and went, if more than once */
  times?: number;
  /** names of servers on which it explains what is wrong */
  affected?: string[] | null;
  /** what it has in common with these, if it only stands for them */
  common?: string;
  /** number of the finding */
  record: number;
  acked?: string;
  by?: string;
  /** why nobody is told at present */
  held?: string;
  /** it comes and goes */
  flapping?: boolean;
  /** key of the alert that explains this one */
  cause?: string;
  told?: Record<string, { at: string; severity: Severity; over?: boolean }> | null;
}

/** Which alerts: names may contain *; what is left out fits all. */
export interface Match {
  server?: string;
  group?: string;
  finding?: string;
  subject?: string;
  severity?: Severity;
}

/** Alerts that fit do not ring until it ends. */
export interface Silence {
  id: number;
  match: Match;
  begin: string;
  end: string;
  reason: string;
  by?: string;
}

/** A message to a receiver. */
export interface AlertMessage {
  id: string;
  title: string;
  made: string;
  tries: number;
  delivered?: string;
  /** when it was given up */
  dropped?: string;
  error?: string;
}

/** How things are with one receiver. */
export interface Receiver {
  name: string;
  waiting: number;
  failing?: string;
  messages: AlertMessage[] | null;
}

/** All about alerts at present. */
export interface AlertsNow {
  alerts: Alert[] | null;
  silences: Silence[] | null;
  receivers: Receiver[] | null;
}

/** What is pending and fires, silences, receivers. */
export function fetchAlerts(): Promise<AlertsNow> {
  return get<AlertsNow>('/api/alerts');
}

/** The alerts that rang in a range, the newest first. */
export async function fetchAlertHistory(from: number, to: number, limit = 1000): Promise<Alert[]> {
  const q: Pairs = [['from', Math.floor(from)], ['to', Math.ceil(to)], ['limit', limit]];
  return (await get<{ alerts: Alert[] | null }>('/api/alerts/history', q)).alerts ?? [];
}

/** Somebody knows of an alert. */
export function acknowledge(key: string): Promise<unknown> {
  return request<unknown>(`/api/alerts/ack?key=${encodeURIComponent(key)}`, { method: 'POST' });
}

/** Silences what fits for a while, such as 2h. */
export function silence(match: Match, time: string, reason: string): Promise<unknown> {
  return request<unknown>('/api/silences', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ ...match, for: time, reason }) });
}

/** Ends a silence. */
export function endSilence(id: number): Promise<unknown> {
  return request<unknown>(`/api/silences?id=${id}`, { method: 'DELETE' });
}

/** Sends a message that says that it is a test. */
export function testReceiver(name: string): Promise<unknown> {
  return request<unknown>(`/api/receivers/test?name=${encodeURIComponent(name)}`, { method: 'POST' });
}

/** What a threshold would have rung, by the findings that were kept. */
export interface Replayed {
  from: string;
  to: string;
  findings: number;
  rang: number;
  messages: number;
  alerts: Alert[] | null;
}

/** How often a finding would have rung since a moment. */
export function replayAlerts(finding: string, server: string, from: number, time: string): Promise<Replayed> {
  return get<Replayed>('/api/alerts/replay', [['finding', finding], ...only('server', server), ['from', Math.floor(from)], ...only('for', time)]);
}

/** When a finding rings: of those that fit, the last counts. */
export interface Threshold extends Match {
  /** only of those that were set on the page */
  id?: number;
  by?: string;
  at?: string;
  /** how long it must hold, such as 30m */
  for?: string;
  /** by the finding's value */
  above?: number;
  off?: boolean;
}

/** The thresholds in force, in the order of precedence. */
export interface Thresholds {
  defaults: Threshold[] | null;
  file: Threshold[] | null;
  page: Threshold[] | null;
}

/** The thresholds in force. */
export function fetchThresholds(): Promise<Thresholds> {
  return get<Thresholds>('/api/thresholds');
}

/** Sets a threshold; one for the same findings is replaced. */
export function setThreshold(t: Threshold): Promise<unknown> {
  return request<unknown>('/api/thresholds', { method: 'PUT', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(t) });
}

/** Takes a threshold of the page back. */
export function dropThreshold(id: number): Promise<unknown> {
  return request<unknown>(`/api/thresholds?id=${id}`, { method: 'DELETE' });
}

/** A rule of the user's own, in Prometheus' form. */
export interface OwnRule {
  name: string;
  type: 'alerting' | 'recording';
  query: string;
  state?: 'inactive' | 'pending' | 'firing';
  health: 'ok' | 'err' | 'unknown';
  error?: string;
  seconds?: number;
}

/** The rules from files. */
export interface OwnRules {
  files: string[] | null;
  /** why the newest files are not used */
  error?: string;
  groups: { name: string; file: string; rules: OwnRule[] | null }[] | null;
}

/** The rules from files, and how they are. */
export function fetchRules(): Promise<OwnRules> {
  return get<OwnRules>('/api/rules');
}
