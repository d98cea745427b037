/** The form by which somebody decides about a finding. */
import { useState } from 'preact/hooks';
import { decideAdvice, type Advised } from '../api';
import { useAct } from '../common/parts';

export type How = 'accept' | 'postpone' | 'silence';

const EXPLAIN: Record<How, string> = {
  accept: 'It is known and stays as it is. It is told again if it gets worse.',
  postpone: 'It is told again after that time, or if it gets worse.',
  silence: 'What fits is not told any more, however bad. * stands for any part of a name.',
};
const BUTTON: Record<How, string> = { accept: 'Accept', postpone: 'Postpone', silence: 'Silence' };

/** Asks for a reason, and for what else a decision needs. */
export function DecideForm({ f, how, onDone }: { f: Advised; how: How; onDone: () => void }) {
  const [only, setOnly] = useState('');
  const [time, setTime] = useState('30d');
  const [finding, setFinding] = useState(f.id);
  const [object, setObject] = useState(f.object ?? '');
  const [reason, setReason] = useState('');
  const [error, busy, act] = useAct();
  const submit = (e: Event): void => {
    e.preventDefault();
    const servers = only ? [only] : f.decision ? f.on.map((p) => p.instance) : undefined;
    const body = how === 'silence' ? { id: finding, object, servers: only ? [only] : undefined, reason } : { id: f.id, object: f.object, servers, for: how === 'postpone' ? time : undefined, reason };
    act(() => decideAdvice(how, body).then(onDone));
  };
  return (
    <form class="decide" onSubmit={submit}>
      <p class="quiet">{EXPLAIN[how]}</p>
      {how === 'silence' && <label>finding <input value={finding} onInput={(e) => setFinding(e.currentTarget.value)} spellcheck={false} /></label>}
      {how === 'silence' && <label>object <input value={object} placeholder="all" onInput={(e) => setObject(e.currentTarget.value)} spellcheck={false} /></label>}
      <label>on <select value={only} onChange={(e) => setOnly(e.currentTarget.value)}>
        <option value="">all servers</option>
        {f.on.map((p) => <option key={p.instance} value={p.instance}>{p.name}</option>)}
      </select></label>
      {how === 'postpone' && <label>for <input class="short" value={time} onInput={(e) => setTime(e.currentTarget.value)} spellcheck={false} /></label>}
      <label class="why">because <input value={reason} onInput={(e) => setReason(e.currentTarget.value)} placeholder="reason" autocomplete="off" /></label>
      <button type="submit" disabled={busy || reason.trim() === ''} title={reason.trim() === '' ? 'A decision has a reason' : undefined}>{BUTTON[how]}</button>
      {error && <span class="bad" role="alert">{error}</span>}
    </form>
  );
}
