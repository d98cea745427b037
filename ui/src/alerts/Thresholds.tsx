/** When findings ring, and the rules that users write themselves. */
import { useState } from 'preact/hooks';
import { ApiError, NO_ACT, dropThreshold, fetchRules, fetchThresholds, mayAct, setThreshold, type OwnRules as Rules, type Severity, type Threshold, type Thresholds as All } from '../api';
import { human, when } from '../common/format';
import { StateMark, useAct } from '../common/parts';
import { usePoll } from '../common/poll';
import { thresholdWords } from './words';

const EVERY_MS = 15_000;

/** Asks now and then; nothing where this Risso has no such answer. */
function useAnswer<T>(ask: () => Promise<T>, turn: number): T | null {
  const [answer, setAnswer] = useState<T | null>(null);
  const [none, setNone] = useState(false);
  usePoll(async () => {
    try {
      if (!none) setAnswer(await ask());
    } catch (e) {
      if (e instanceof ApiError && e.status === 404) setNone(true);
    }
  }, EVERY_MS, [turn, none]);
  return answer;
}

const EMPTY = { finding: '', server: '', group: '', severity: '', for: '', above: '' };

function Form({ onChange }: { onChange: () => void }) {
  const [f, setF] = useState(EMPTY);
  const [off, setOff] = useState(false);
  const [error, busy, act] = useAct();
  const field = (name: keyof typeof EMPTY, label: string, placeholder: string, short = false) => (
    <label>{label} <input class={short ? 'short' : ''} value={f[name]} placeholder={placeholder} onInput={(e) => setF({ ...f, [name]: e.currentTarget.value })} spellcheck={false} autocomplete="off" /></label>
  );
  const ready = off || f.for.trim() !== '' || f.above.trim() !== '';
  const submit = (e: Event): void => {
    e.preventDefault();
    const t: Threshold = { finding: f.finding || undefined, server: f.server || undefined, group: f.group || undefined, severity: (f.severity || undefined) as Severity | undefined };
    if (off) t.off = true;
    if (f.for.trim()) t.for = f.for.trim();
    if (f.above.trim()) t.above = Number(f.above);
    act(() => setThreshold(t).then(() => (setF(EMPTY), setOff(false), onChange())));
  };
  return (
    <form class="silence-form" onSubmit={submit}>
      {field('finding', 'finding', 'repl.lag')}{field('server', 'server', 'report-*')}{field('group', 'group', 'shop')}
      {field('for', 'when it lasted', '30m', true)}{field('above', 'above', '20', true)}
      <label><input type="checkbox" checked={off} onChange={(e) => setOff(e.currentTarget.checked)} /> never</label>
      <button type="submit" disabled={busy || !ready || !mayAct.value} title={!mayAct.value ? NO_ACT : ready ? undefined : 'Say how long, above what, or never'}>Set</button>
      {error && <span class="bad" role="alert">{error}</span>}
    </form>
  );
}

function Own({ t, onChange }: { t: Threshold; onChange: () => void }) {
  const [error, busy, act] = useAct();
  return (
    <li data-threshold={t.id}>
      <div><p>{thresholdWords(t)}</p>{t.by && <p class="quiet">by {t.by}{t.at ? `, ${when(Date.parse(t.at) / 1000, Date.now() / 1000)}` : ''}</p>}</div>
      <button disabled={busy || !mayAct.value} title={mayAct.value ? undefined : NO_ACT} onClick={() => act(() => dropThreshold(t.id!).then(onChange))}>Remove</button>
      {error && <span class="bad" role="alert">{error}</span>}
    </li>
  );
}

/** When findings ring: as set here, in the file, and by default. */
export function Thresholds() {
  const [turn, setTurn] = useState(0);
  const all = useAnswer<All>(fetchThresholds, turn);
  if (!all) return null;
  const changed = (): void => setTurn(turn + 1);
  const fold = (name: string, list: Threshold[]) => list.length > 0 && (
    <details class="fold"><summary>{list.length} {name}</summary><ul class="plain">{list.map((t, i) => <li key={i}>{thresholdWords(t)}</li>)}</ul></details>
  );
  const own = all.page ?? [];
  return (
    <section aria-labelledby="s-thresholds">
      <h2 id="s-thresholds">When it rings</h2>
      {own.length > 0 ? <ul class="silences">{own.map((t) => <Own key={t.id} t={t} onChange={changed} />)}</ul> : <p class="quiet">Nothing is set here: the file and the defaults count.</p>}
      <Form onChange={changed} />
      {fold('in the file', all.file ?? [])}
      {fold('by default', all.defaults ?? [])}
    </section>
  );
}

/** Rules that users write themselves. */
export function OwnRules() {
  const rules = useAnswer<Rules>(fetchRules, 0);
  if (!rules || ((rules.files ?? []).length === 0 && !rules.error)) return null;
  return (
    <section aria-labelledby="s-rules">
      <h2 id="s-rules">Own rules</h2>
      {rules.error && <p class="bad" role="alert">The newest files are not used: {rules.error}</p>}
      <ul class="plain">
        {(rules.groups ?? []).flatMap((g) => (g.rules ?? []).map((r) => (
          <li key={`${g.file} ${g.name} ${r.name}`} data-rule={r.name}>
            <StateMark state={r.health === 'err' ? 'critical' : r.state === 'firing' ? 'warning' : 'ok'} wordless /> <b>{r.name}</b>{' '}
            <span class={r.health === 'err' ? 'bad' : 'quiet'}>{r.error || (r.type === 'recording' ? 'records' : (r.state ?? 'unknown'))}, {g.name} in {g.file}{r.seconds ? `, takes ${human(r.seconds, 's')}` : ''}</span> <code>{r.query}</code>
          </li>
        )))}
      </ul>
    </section>
  );
}
