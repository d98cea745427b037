/** Alerts in words. Pure. */
import type { Alert, AlertsNow, Match, Receiver, Silence, Threshold } from '../api';
import { age, counted, unix, when } from '../common/format';

/** A sentence and how loudly to say it. */
export interface Said {
  tone: 'ok' | 'warning' | 'critical';
  text: string;
}

const one = (n: number): string => (n === 1 ? '' : 's');

/** What fires and whether people hear of it, in a sentence or two. */
export function alertsSentence(a: AlertsNow): Said {
  const firing = (a.alerts ?? []).filter((x) => x.phase === 'firing');
  const pending = (a.alerts ?? []).filter((x) => x.phase === 'pending');
  const receivers = a.receivers ?? [];
  const failing = receivers.filter((r) => r.failing);
  const parts: string[] = [];
  const worst = firing.find((x) => x.severity === 'critical') ?? firing[0];
  if (worst) {
    const more = firing.length - 1;
    parts.push(`${worst.server}: ${sentence(worst.what)}`, more > 0 ? `${counted(more, 'other alert')} fire${more === 1 ? 's' : ''}, too.` : '');
  } else if (pending.length > 0) {
    parts.push(`Nothing rings; ${counted(pending.length, 'finding')} will if ${pending.length === 1 ? 'it lasts' : 'they last'}.`);
  } else {
    parts.push('Nothing rings.');
  }
  if (failing.length > 0) parts.push(`${failing.map((r) => r.name).join(', ')} take${failing.length === 1 ? 's' : ''} no messages: ${counted(failing.reduce((n, r) => n + r.waiting, 0), 'message')} wait.`);
  else if (receivers.length === 0) parts.push('Nobody is told: no receiver is configured.');
  const tone = worst?.severity === 'critical' ? 'critical' : worst || failing.length > 0 ? 'warning' : 'ok';
  return { tone, text: parts.filter(Boolean).join(' ') };
}

function sentence(s: string): string {
  return /[.!?…]$/.test(s) ? s : `${s}.`;
}

/** Who was told of an alert and when, or that nobody was. */
export function toldWords(a: Pick<Alert, 'told' | 'phase' | 'rang'>, receivers: Receiver[], now: number): string {
  const told = Object.entries(a.told ?? {}).sort(([, x], [, y]) => Date.parse(x.at) - Date.parse(y.at));
  if (told.length === 0) return a.phase === 'pending' ? '' : 'nobody was told';
  const since = unix(a.rang ?? 0);
  // A message that was made for a receiver that takes none has not reached anybody.
  return told.map(([name, t]) => {
    const r = receivers.find((x) => x.name === name);
    const stuck = r?.failing && (r.messages ?? []).some((m) => !m.delivered && unix(m.made) >= since - 60);
    return stuck ? `${name} not reached yet` : `${name} told${t.over ? ' that it ended' : ''} ${when(unix(t.at), now)}`;
  }).join(', ');
}

/** What a silence or a threshold fits, in words. */
export function matchWords(m: Match): string {
  const what = m.finding || 'everything';
  const parts = [m.severity && m.severity !== 'info' ? `${what}, at least ${m.severity}` : what];
  if (m.subject) parts.push(`about ${m.subject}`);
  parts.push(m.server ? `on ${m.server}` : m.group ? `in group ${m.group}` : 'on all servers');
  return parts.join(' ');
}

/** How long a silence still holds back. */
export function silenceLeft(s: Silence, now: number): string {
  const begin = unix(s.begin);
  return begin > now ? `begins in ${age(begin - now)}` : `${age(Math.max(0, unix(s.end) - now))} left`;
}

/** How a receiver is, in a few words. */
export function receiverWords(r: Receiver, now: number): string {
  const last = (r.messages ?? []).find((m) => m.delivered);
  const given = (r.messages ?? []).filter((m) => m.dropped).length;
  return [
    r.failing ? `takes no messages: ${r.failing}` : '',
    r.waiting > 0 ? `${r.waiting >= 1000 ? 'at least ' : ''}${counted(r.waiting, 'message')} wait${r.waiting === 1 ? 's' : ''}` : '',
    given > 0 ? `${counted(given, 'message')} given up` : '',
    last ? `last delivery ${age(now - unix(last.delivered!))} ago` : 'nothing delivered yet',
  ].filter(Boolean).join('; ');
}

/** What rang on one server for one reason, one time after the other. */
export interface Lane {
  key: string;
  instance: string;
  server: string;
  severity: Alert['severity'];
  what: string;
  alerts: Alert[];
}

/** The lines of the time line: one for each server, finding and subject, what rang last on top. */
export function lanes(list: Alert[]): Lane[] {
  const out = new Map<string, Lane>();
  for (const a of [...list].sort((x, y) => unix(y.began) - unix(x.began))) {
    const key = `${a.instance} ${a.finding} ${/^connection \d/.test(a.subject ?? '') ? '' : (a.subject ?? '')}`;
    const lane = out.get(key);
    if (!lane) out.set(key, { key, instance: a.instance, server: a.server, severity: a.severity, what: a.what, alerts: [a] });
    else {
      lane.alerts.push(a);
      if (a.severity === 'critical') lane.severity = 'critical';
    }
  }
  return [...out.values()];
}

/** How often and for how long in all. */
export function laneWords(l: Lane, now: number): string {
  const times = l.alerts.reduce((n, a) => n + Math.max(1, a.times ?? 1), 0);
  const total = l.alerts.reduce((s, a) => s + Math.max(0, (a.ended ? unix(a.ended) : now) - unix(a.began)), 0);
  return `${times === 1 ? 'once' : `${times} time${one(times)}`}, ${age(total)}${l.alerts.some((a) => !a.ended) ? ', goes on' : ''}`;
}

/** A threshold in words: "repl.lag on report-*: rings after 30m". */
export function thresholdWords(t: Threshold): string {
  if (t.off) return `${matchWords(t)}: never rings`;
  const after = t.for === undefined ? '' : /^0+[a-z]*$/.test(t.for) ? 'at once' : `after ${t.for}`;
  return `${matchWords(t)}: rings ${[after, t.above === undefined ? '' : `above ${t.above}`].filter(Boolean).join(', ') || 'as ever'}`;
}
