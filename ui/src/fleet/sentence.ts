/** What goes on in the whole fleet, in one sentence. */
import type { Fleet, Instance } from '../api';
import { counted, human } from '../common/format';
import { worstFirst } from '../common/order';
import { explained } from './lines';

/** A sentence and how loudly to say it. */
export interface Said {
  tone: 'ok' | 'warning' | 'critical';
  text: string;
}

/** Health is stated quietly; else the worst instance is named, and how many more need a look. */
export function fleetSentence(fleet: Fleet): Said {
  const all = fleet.instances ?? [];
  const bad = all.filter((i) => i.state === 'down' || i.state === 'critical' || i.state === 'warning').sort(worstFirst);
  if (bad.length === 0) return { tone: 'ok', text: healthy(all) };
  // What has its cause elsewhere is counted with it.
  const effects = explained(all);
  const causes = bad.filter((i) => !effects.has(i.id));
  const [worst] = causes.length > 0 ? causes : bad;
  const tone = bad.some((i) => i.state !== 'warning') ? 'critical' : 'warning';
  const because = effects.size > 0 && causes.length > 0 ? ` ${counted(effects.size, 'other')} ${effects.size === 1 ? 'has' : 'have'} trouble because of ${causes.length === 1 ? 'it' : 'others'}.` : '';
  const more = (causes.length > 0 ? causes.length : bad.length) - 1;
  const rest = more === 0 ? '' : ` ${counted(more, 'other')} of ${all.length} ${more === 1 ? 'needs' : 'need'} attention, too.`;
  return { tone, text: `${worst.name}: ${sentence(worst.words || worst.state)}${because}${rest}` };
}

function sentence(s: string): string {
  return /[.!?]$/.test(s) ? s : `${s}.`;
}

function healthy(all: Instance[]): string {
  const servers = all.filter((i) => i.kind === 'server');
  const hosts = all.length - servers.length;
  const fresh = all.filter((i) => i.state === 'new').length;
  const qps = servers.reduce((s, i) => s + (i.qps ?? 0), 0);
  const parts = [servers.length > 0 ? counted(servers.length, 'server') : '', hosts > 0 ? counted(hosts, 'host') : ''].filter(Boolean).join(' and ');
  const first = `${parts} ${all.length === 1 ? 'is' : 'are'} well`;
  const second = servers.length > 0 ? `, answering ${human(qps)} questions per second` : '';
  const third = fresh > 0 ? `; ${fresh} just seen for the first time` : '';
  return `${first}${second}${third}.`;
}
