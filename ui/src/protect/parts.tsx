/** Small parts of the pages of protection. */
import { mayAct, NO_ACT, startJob, stopRun, type ProtectJob, type ProtectRunning } from '../api';
import { age } from '../common/format';
import { useAct } from '../common/parts';
import { NOW, part, progress } from './words';

/** A current run: what it does, how far it is, how long it will still take. */
export function Progress({ r, now }: { r: ProtectRunning; now: number }) {
  const done = part(r);
  if (r.waits) return <span class="progress waits">{r.kind} waits for {r.waits}</span>;
  return (
    <span class="progress" data-run={r.run}>
      <span class="what">{r.kind}{r.stage ? `: ${r.stage}` : ''}</span>
      <span class="bar-of" role="progressbar" aria-label={r.kind} aria-valuemin={0} aria-valuemax={100} aria-valuenow={done === null ? undefined : Math.round(done * 100)}>
        {done !== null && <i style={{ width: `${(done * 100).toFixed(1)}%` }} />}
      </span>
      <span class="quiet">{[progress(r), `for ${age(Math.max(0, now - r.began))}`].filter(Boolean).join(', ')}</span>
    </span>
  );
}

/** Starts a job, or stops its run. */
export function Act({ job, running, onDone }: { job: ProtectJob; running: ProtectRunning | undefined; onDone: () => void }) {
  const [error, busy, act] = useAct();
  const goes = running && running.run > 0;
  const barred = !mayAct.value;
  const why = barred ? NO_ACT : undefined;
  return (
    <span class="act">
      {goes
        ? <button disabled={busy || barred} title={why} onClick={() => act(() => stopRun(running.run).then(onDone))}>Stop</button>
        : <button disabled={busy || barred || running !== undefined} title={why} onClick={() => act(() => startJob(job.name).then(onDone))}>{running ? 'waiting' : NOW[job.kind]}</button>}
      {error && <span class="bad" role="alert">{error}</span>}
    </span>
  );
}
