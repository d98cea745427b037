/** The page /server/ID/protect: all of the protection of one server. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, fetchProtected, fetchProtectRun, serverNow, type DrillProof, type DrillStage, type ProtectBackup, type ProtectDetail, type ProtectDrill, type Protected, type ProtectRun, type ProtectRunDetail } from '../api';
import { age, counted, exact, human, percent } from '../common/format';
import { Copy, Findings, Moment, Remedy, StateMark } from '../common/parts';
import { usePoll, usePolled } from '../common/poll';
import { replace, view } from '../common/router';
import { instanceOf } from '../common/store';
import { HOME, formatView } from '../common/view';
import { Act, Progress } from './parts';
import { Begin } from './Protect';
import { Timeline } from './Timeline';
import { DOES, elsewhere, neverRan, parted, plan, took, until, windowText } from './words';

const OUTCOME: Record<ProtectRun['outcome'], 'ok' | 'critical' | 'warning' | 'new'> = { ok: 'ok', failed: 'critical', interrupted: 'warning', running: 'new' };

function Head({ s, now }: { s: Protected; now: number }) {
  const findings = s.findings ?? [];
  const said = findings[0];
  return (
    <header class="page-head">
      <div class="title-line">
        <h1>{s.name}</h1>
        <StateMark state={s.state} />
        <p class="facts">
          {s.plan && <span>{s.plan.kind} to <code>{s.plan.place}</code></span>}
          {s.plan?.copy_to && <span>copied to <code>{s.plan.copy_to}</code></span>}
          {s.plan && <span>{s.plan.retention ? `keeps ${s.plan.retention}` : 'keeps everything'}</span>}
          {s.plan && <span>{s.plan.encrypted ? 'encrypted' : 'not encrypted'}</span>}
          {!s.watched && <span>no longer watched</span>}
        </p>
      </div>
      <p class={`sentence ${s.state} ${s.state === 'ok' ? '' : 'loud'}`} aria-live="polite">{s.words}{said?.remedy && <> <Remedy text={said.remedy} /></>}</p>
      <Findings list={findings.slice(1)} now={now} onChart={() => undefined} />
    </header>
  );
}

function Figures({ s, now }: { s: Protected; now: number }) {
  const b = s.last_backup;
  const list: [string, preact.ComponentChildren, string][] = [
    ['last backup', b ? <>{age(now - b.began)} ago</> : <b class="bad">never</b>, b ? `${human(b.bytes, 'B')} in ${human(b.ended - b.began, 's')}` : ''],
    ['last proven', s.proven_at ? <>{age(now - s.proven_at)} ago</> : <b class={b ? 'unproven' : 'bad'}>never</b>, s.last_proven && b && s.last_proven.id !== b.id ? 'an older backup' : ''],
    ['any moment of', s.window ? windowText(s.window, now) : <span class="quiet">{s.plan?.mirror ? 'not yet' : 'no'}</span>, s.gap ? `missing: ${s.gap}` : ''],
    ['recovery', s.recovery ? human(s.recovery, 's') : <span class="quiet">not measured</span>, ''],
    ['next due', s.next?.due ? <>{s.next.kind} {until(s.next.due, now)}</> : <span class="quiet">nothing planned</span>, ''],
  ];
  return <dl class="figures">{list.map(([k, v, more]) => <div key={k}><dt>{k}</dt><dd>{v}{more && <small>{more}</small>}</dd></div>)}</dl>;
}

function Jobs({ s, backups, drills, now, onDone }: { s: Protected; backups: ProtectBackup[]; drills: ProtectDrill[]; now: number; onDone: () => void }) {
  const jobs = s.jobs ?? [];
  if (jobs.length === 0) return null;
  return (
    <section aria-labelledby="jobs">
      <h2 id="jobs">Jobs</h2>
      <div class="scroll">
        <table class="list jobs">
          <thead><tr><th scope="col">Job</th><th scope="col">When</th><th scope="col">Next</th><th scope="col">Last run</th><th scope="col"><span class="unseen">Do it</span></th></tr></thead>
          <tbody>
            {jobs.map((j) => {
              const r = (s.running ?? []).find((x) => x.job === j.name);
              const other = elsewhere(j, backups, drills);
              return (
                <tr key={j.name} data-job={j.kind}>
                  <td title={DOES[j.kind]}><b>{j.kind}</b></td>
                  <td>{plan(j)}</td>
                  <td>{j.due && j.kind !== 'mirror' ? <Moment t={j.due} now={now} /> : ''}</td>
                  <td class="c-last-run">{r ? <Progress r={r} now={now} /> : other ? (
                    <><StateMark state={other.good ? 'ok' : 'critical'} wordless /> <Moment t={other.began} now={now} /><span class="quiet"> in {human(Math.max(0, other.ended - other.began), 's')}, not by this risso serve</span> <span class={other.good ? 'quiet' : ''}>{other.text}</span></>
                  ) : j.last ? (
                    <><StateMark state={OUTCOME[j.last.outcome]} wordless /> <Moment t={j.last.began} now={now} />{j.last.ended !== null && <span class="quiet"> in {took(j.last)}</span>} <span class={j.last.outcome === 'ok' ? 'quiet' : ''}>{j.last.outcome === 'ok' ? j.last.text : `${j.last.outcome}: ${j.last.text}`}</span></>
                  ) : <span class="quiet">{neverRan(j.kind)}</span>}</td>
                  <td class="c-act"><Act job={j} running={r} onDone={onDone} /></td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** How long each stage of the last good drill took. */
function Recovery({ drills, now }: { drills: ProtectDrill[]; now: number }) {
  const d = drills.find((x) => x.passed) ?? drills[0];
  const stages = (d?.proof?.stages ?? []).filter((x) => x.seconds > 0);
  if (!d || stages.length === 0) return null;
  const most = Math.max(...stages.map((x) => x.seconds));
  // What follows the recovery checks whether all is well: a server in trouble would answer in the meantime.
  const { recovery, checks } = parted(stages, d.recovery);
  const row = (x: DrillStage, after: boolean) => (
    <tr key={x.name} class={after ? 'after' : ''}>
      <td>{x.name}</td>
      <td class="num" title={exact(x.seconds, 's')}>{human(x.seconds, 's')}</td>
      <td class="c-bar"><i style={{ width: `${((x.seconds / most) * 100).toFixed(1)}%` }} /></td>
    </tr>
  );
  return (
    <section aria-labelledby="recovery">
      <h2 id="recovery">Recovery, as measured by the drill <Moment t={d.began} now={now} /></h2>
      <table class="list stages">
        <tbody>
          {recovery.map((x) => row(x, false))}
          {d.recovery > 0 && <tr class="sum"><td><b>until it answered with all data</b></td><td class="num"><b>{human(d.recovery, 's')}</b></td><td /></tr>}
          {checks.map((x) => row(x, true))}
        </tbody>
      </table>
    </section>
  );
}

const short = (position: string): string => (position.length > 44 ? `${position.slice(0, 20)}…${position.slice(-20)}` : position);

function Backups({ list, now, picked }: { list: ProtectBackup[]; now: number; picked: string }) {
  if (list.length === 0) return null;
  const kept = list.some((b) => b.kept);
  return (
    <section aria-labelledby="backups">
      <h2 id="backups">Backups</h2>
      <div class="scroll">
        <table class="list backups">
          <thead><tr><th scope="col">Began</th><th scope="col">Kind</th><th scope="col" class="num">Took</th><th scope="col" class="num">Size</th><th scope="col" class="num" title="what this backup added to its place, compressed; unchanged chunks are not stored twice">Added</th><th scope="col" class="num">Tables</th><th scope="col" class="num">Rows</th><th scope="col">Proven</th>{kept && <th scope="col">Kept because</th>}<th scope="col">Position</th></tr></thead>
          <tbody>
            {list.map((b) => (
              <tr key={`${b.place} ${b.id}`} id={`backup-${b.id}`} class={picked === `backup-${b.id}` ? 'picked' : ''} data-backup={b.id}>
                <td class="c-began" title={b.id}><Moment t={b.began} now={now} /></td>
                <td>{b.kind}{b.parent && b.kind === 'physical' && <span class="quiet" title={`on top of ${b.parent}`}> incremental</span>}</td>
                <td class="num">{human(Math.max(0, b.ended - b.began), 's')}</td>
                <td class="num" title={exact(b.bytes, 'B')}>{human(b.bytes, 'B')}</td>
                <td class="num" title={exact(b.stored, 'B')}>{human(b.stored, 'B')}</td>
                <td class="num">{human(b.tables)}</td>
                <td class="num" title={exact(b.rows)}>{human(b.rows)}</td>
                <td>{b.proven ? <Moment t={b.proven} now={now} /> : ((b.proofs ?? []).length > 0 ? <b class="bad">failed</b> : <span class="quiet">no</span>)}</td>
                {kept && <td class="c-kept">{b.kept ? (b.kept.keep ? (b.kept.reasons ?? []).join(', ') : <span class="quiet">removed by the next prune</span>) : ''}</td>}
                <td class="c-value" title={b.position}>{short(b.position)}{b.position && <Copy text={b.position} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** What a drill looked at, and what it found. */
function Proof({ p }: { p: DrillProof }) {
  const bad = (list: string[] | null | undefined): preact.ComponentChildren => ((list ?? []).length > 0 ? <b class="bad">{list!.slice(0, 20).join(', ')}</b> : 'no problems');
  return (
    <dl class="proof">
      {p.on && <div><dt>restored into</dt><dd>{p.on}{p.of && p.of !== p.on && <span class="quiet"> from {p.of}</span>}{p.host && <span class="quiet"> on {p.host}</span>}</dd></div>}
      {p.rolled && <div><dt>rolled forward</dt><dd>{counted(p.rolled.transactions, 'transaction')}</dd></div>}
      {p.compare && p.compare.tables > 0 && <div><dt>rows and sums</dt><dd>{counted(p.compare.tables, 'table')}, {counted(p.compare.rows, 'row')}: {bad(p.compare.different)}</dd></div>}
      {p.counted && <div><dt>rows counted</dt><dd>{counted(p.counted.tables, 'table')}, {counted(p.counted.rows, 'row')}{p.counted.since ? <>; compared with the previous drill: {bad(p.counted.different)}</> : <span class="quiet"> for later drills to compare with</span>}</dd></div>}
      {p.check_table && p.check_table.tables > 0 && <div><dt>CHECK TABLE</dt><dd>{counted(p.check_table.tables, 'table')}: {bad(p.check_table.problems)}</dd></div>}
      {(p.queries ?? []).map((q) => <div key={q.sql}><dt>{q.passed ? 'as expected' : <b class="bad">wrong</b>}</dt><dd><code>{q.sql}</code> {q.got}{!q.passed && <span class="quiet"> expected {q.expect}</span>}</dd></div>)}
      {(p.failures ?? []).map((f) => <div key={f}><dt>failed</dt><dd class="bad">{f}</dd></div>)}
      {(p.notes ?? []).map((n) => <div key={n}><dt>note</dt><dd class="quiet">{n}</dd></div>)}
    </dl>
  );
}

function Drills({ list, now, picked, onPick }: { list: ProtectDrill[]; now: number; picked: string; onPick: (key: string) => void }) {
  if (list.length === 0) return null;
  return (
    <section aria-labelledby="drills">
      <h2 id="drills">Drills</h2>
      <div class="scroll">
        <table class="list drills">
          <thead><tr><th scope="col">Began</th><th scope="col">Found</th><th scope="col">Backup</th><th scope="col" class="num">Recovery</th><th scope="col">Rolled forward to</th><th scope="col">In words</th></tr></thead>
          <tbody>
            {list.map((d) => {
              const open = picked === `drill-${d.id}`;
              return [
                <tr key={d.id} id={`drill-${d.id}`} class={open ? 'picked' : ''} data-drill={d.id}>
                  <td><Moment t={d.began} now={now} /></td>
                  <td><StateMark state={d.passed ? 'ok' : 'critical'} wordless /> <button class="bare link" aria-expanded={open} onClick={() => onPick(open ? '' : `drill-${d.id}`)}>{d.passed ? 'good' : <b class="bad">bad</b>}</button></td>
                  <td title={d.place}>{d.backup}</td>
                  <td class="num">{d.recovery > 0 ? human(d.recovery, 's') : ''}</td>
                  <td>{d.reached ? <Moment t={d.reached} now={now} /> : <span class="quiet">the time of the backup</span>}</td>
                  <td class="c-text">{d.text}</td>
                </tr>,
                open && d.proof && <tr key={`proof ${d.id}`} class="log-row"><td colSpan={6}><Proof p={d.proof} /></td></tr>,
              ];
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** The log of a run, read again while it goes on. */
function Log({ id, now }: { id: number; now: number }) {
  const [d, setD] = useState<ProtectRunDetail | null>(null);
  const goes = d === null || d.run.outcome === 'running';
  usePolled(() => fetchProtectRun(id), setD, goes ? 1000 : 60_000, [id, goes]);
  if (!d) return <p class="quiet">&nbsp;</p>;
  const log = d.log ?? [];
  return (
    <div class="log">
      {d.running && <Progress r={d.running} now={now} />}
      {d.run.outcome === 'interrupted' && d.stage && <p class="quiet">It was at: {d.stage}{d.total > 0 && `, ${percent(d.done / d.total)}`}</p>}
      {log.length === 0 && <p class="quiet">There is no output.</p>}
      <ol>{log.map((l, i) => <li key={i}><Moment t={l.time} now={now} /> <span>{l.text}</span></li>)}</ol>
    </div>
  );
}

const FIRST = 12;

function Runs({ list, now, picked, onPick }: { list: ProtectRun[]; now: number; picked: string; onPick: (key: string) => void }) {
  const [all, setAll] = useState(false);
  if (list.length === 0) return null;
  const at = list.findIndex((r) => `run-${r.id}` === picked);
  const shown = all || at >= FIRST ? list : list.slice(0, FIRST);
  return (
    <section aria-labelledby="runs">
      <h2 id="runs">History</h2>
      <div class="scroll">
        <table class="list runs">
          <thead><tr><th scope="col">Began</th><th scope="col">Job</th><th scope="col">Outcome</th><th scope="col" class="num">Took</th><th scope="col">In words</th></tr></thead>
          <tbody>
            {shown.map((r) => {
              const open = picked === `run-${r.id}`;
              return [
                <tr key={r.id} id={`run-${r.id}`} class={open ? 'picked' : ''} data-run-row={r.id}>
                  <td><Moment t={r.began} now={now} /></td>
                  <td><button class="bare link" aria-expanded={open} onClick={() => onPick(open ? '' : `run-${r.id}`)}>{r.kind}</button></td>
                  <td><StateMark state={OUTCOME[r.outcome]} wordless /> {r.outcome}</td>
                  <td class="num">{took(r)}</td>
                  <td class="c-text">{r.text}</td>
                </tr>,
                open && <tr key={`log ${r.id}`} class="log-row"><td colSpan={5}><Log id={r.id} now={now} /></td></tr>,
              ];
            })}
          </tbody>
        </table>
      </div>
      {shown.length < list.length && <button class="bare link" onClick={() => setAll(true)}>{list.length - shown.length} more</button>}
    </section>
  );
}

/** The page. */
export function ProtectServer() {
  const { id, q: picked } = view.value;
  const [held, setHeld] = useState<ProtectDetail | null>(null);
  const [missing, setMissing] = useState('');
  const busy = (held?.server.running ?? []).some((r) => r.kind !== 'mirror');
  const load = async (): Promise<void> => {
    try {
      setHeld(await fetchProtected(id));
      setMissing('');
    } catch (e) {
      if (e instanceof ApiError && e.status === 404) setMissing(e.message);
      throw e;
    }
  };
  usePoll(load, busy ? 1000 : 3000, [id, busy]);
  const wanted = useRef('');
  useEffect(() => {
    if (wanted.current) document.getElementById(wanted.current)?.scrollIntoView({ block: 'center' });
    wanted.current = '';
  }, [picked]);
  const pick = (key: string): void => {
    wanted.current = key;
    replace({ q: key });
  };
  const now = serverNow();
  if (missing) {
    const host = instanceOf(id)?.kind === 'host';
    return <main class="protect"><p class="sentence">{host ? `${instanceOf(id)!.name} is a host: servers are protected.` : `There is no server ${id}.`} <a href={formatView({ ...HOME, page: 'protect' })}>All servers</a></p></main>;
  }
  if (!held) return <main class="protect" />;
  const s = held.server;
  return (
    <main class="protect one">
      <p class="crumb"><a href={formatView({ ...HOME, page: 'protect' })}>← all servers</a></p>
      <Head s={s} now={now} />
      {!s.plan && <Begin name={s.name} byHand={false} />}
      {(s.plan || s.last_backup) && <Figures s={s} now={now} />}
      <Jobs s={s} backups={held.backups ?? []} drills={held.drills ?? []} now={now} onDone={() => void load().catch(() => undefined)} />
      {(s.plan || s.last_backup) && <Timeline d={held} now={now} onPick={pick} />}
      <Recovery drills={held.drills ?? []} now={now} />
      <Backups list={held.backups ?? []} now={now} picked={picked} />
      <Drills list={held.drills ?? []} now={now} picked={picked} onPick={pick} />
      <Runs list={held.runs ?? []} now={now} picked={picked} onPick={pick} />
    </main>
  );
}
