/** What was wrong since last evening, ended or not: a line each, which opens with its evidence. */
import { useState } from 'preact/hooks';
import { fetchAlertHistory, fetchFindings, fetchIncidents, fetchSelf, serverNow, type Alert, type FindingRecord, type Incident } from '../api';
import { clock, stamp, unix, utc, when } from '../common/format';
import { Moment, Remedy, StateMark } from '../common/parts';
import { usePolled } from '../common/poll';
import { fixed } from '../common/range';
import { instanceOf } from '../common/store';
import { HOME, formatView } from '../common/view';
import { evidenceLines, lasted, lastEvening, tonightSentence, troubles, type Trouble } from './words';

const EVERY_MS = 10_000;
const AROUND = 300;
const SHORT = 6;
const MOST = 5000;
const NEAR = 60;

const nameOf = (id: string): string => instanceOf(id)?.name ?? id;

/** Who was told of it, or that nobody was. */
function Told({ a, now }: { a?: Alert; now: number }) {
  const told = Object.entries(a?.told ?? {});
  if (told.length === 0) return <span>{a?.held ? `nobody was told: ${a.held}` : 'nobody was told'}</span>;
  return <span>told: {told.map(([name, t]) => `${name} ${when(unix(t.at), now)}`).join(', ')}</span>;
}

function links(t: Trouble, incidents: Incident[], now: number) {
  const worst = Math.round(unix(t.r.worst_at));
  const kept = incidents.find((i) => i.instance === t.r.instance && unix(i.began) < (t.end ?? now) + NEAR && (i.ended ? unix(i.ended) : now) > t.begin - NEAR);
  const range = fixed(t.begin - AROUND, Math.min(now, (t.end ?? now) + AROUND));
  return {
    charts: formatView({ ...HOME, page: 'server', id: t.r.instance, range, at: worst }),
    film: formatView({ ...HOME, page: 'film', id: t.r.instance, at: worst }),
    incident: kept ? formatView({ ...HOME, page: 'incident', cls: kept.id }) : '',
  };
}

/** One line. */
export function TroubleLine({ t, incidents, now, named }: { t: Trouble; incidents: Incident[]; now: number; named: boolean }) {
  const to = links(t, incidents, now);
  const { worst } = t.r;
  const lines = evidenceLines(t.r.evidence ?? t.alert?.evidence);
  const server = instanceOf(t.r.instance)?.kind !== 'host';
  return (
    <li data-finding={worst.id}>
      <details>
        <summary>
          <StateMark state={worst.severity === 'info' ? 'ok' : worst.severity} wordless />
          <span class="t-when" title={`${stamp(t.begin)} here\n${utc(t.begin)}`}>{when(t.begin, now).slice(0, -3)}</span>
          <span class={`t-long ${t.end === null ? 'holds' : ''}`}>{lasted(t, now)}</span>
          <span class="t-what" title={worst.what}>{named && <b>{nameOf(t.r.instance)} </b>}{worst.what}{t.effects.length > 0 && <span class="quiet">, and because of it {t.effects.length === 1 ? nameOf(t.effects[0].r.instance) : `${t.effects.length} others`}</span>}{t.again.length > 0 && <span class="quiet"> – and {t.again.length} times more</span>}</span>
        </summary>
        <div class="t-more">
          <p class="quiet">
            <span>{worst.id}</span>
            <span>{t.end === null ? 'holds' : <>ended <Moment t={t.end} now={now} />{t.r.unseen ? ', or before: nobody looked' : ''}</>}</span>
            <span>worst <Moment t={unix(t.r.worst_at)} now={now} /></span>
            <Told a={t.alert} now={now} />
            <a class="link" href={to.charts}>charts</a>
            {to.incident && <a class="link" href={to.incident}>incident</a>}
            {server && <a class="link" href={to.film}>sessions and locks of that second</a>}
          </p>
          {worst.what !== t.r.first.what && <p>{worst.what}</p>}
          {lines.length > 0 && <pre>{lines.join('\n')}</pre>}
          {worst.remedy && t.end === null && <Remedy text={worst.remedy} />}
          {t.again.length > 0 && <ul class="troubles">{[...t.again].sort((a, b) => b.begin - a.begin).map((e) => <TroubleLine key={e.r.record} t={e} incidents={incidents} now={now} named={false} />)}</ul>}
          {t.effects.length > 0 && <ul class="troubles">{t.effects.map((e) => <TroubleLine key={e.r.record} t={e} incidents={incidents} now={now} named />)}</ul>}
        </div>
      </details>
    </li>
  );
}

/** The section; of one instance, or of all when id is empty. */
export function Tonight({ id, closed = false }: { id: string; closed?: boolean }) {
  const [found, setFound] = useState<{ records: FindingRecord[]; alerts: Alert[]; incidents: Incident[]; started: number } | null>(null);
  const [all, setAll] = useState(false);
  usePolled(async () => {
    const now = serverNow();
    const from = lastEvening(now);
    const [records, alerts, incidents, self] = await Promise.all([
      fetchFindings(id, from, now, MOST), fetchAlertHistory(from, now, MOST),
      fetchIncidents(id, from, now).catch(() => []), // a line without a link to its incident is still a line
      fetchSelf(),
    ]);
    return { records, alerts, incidents, started: self.started };
  }, setFound, EVERY_MS, [id]);
  const now = serverNow();
  if (!found) return <p class="tonight quiet">&nbsp;</p>;
  const list = troubles(found.records, found.alerts);
  const said = tonightSentence(list, found.started, lastEvening(now), nameOf, now, (t) => when(t, now));
  if (list.length === 0) return <p class="tonight quiet">{said}</p>;
  const shown = all ? list : list.slice(0, SHORT);
  return (
    <details class="tonight" open={!closed}>
      <summary title={`since ${clock(lastEvening(now))} yesterday`}>{said}</summary>
      <ul class="troubles" aria-label="What was wrong">{shown.map((t) => <TroubleLine key={t.r.record} t={t} incidents={found.incidents} now={now} named={id === ''} />)}</ul>
      {found.records.length >= MOST && <p class="quiet">These are the newest {MOST}; there were more.</p>}
      {list.length > shown.length && <button class="bare link" onClick={() => setAll(true)}>all {list.length}</button>}
    </details>
  );
}
