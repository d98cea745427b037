/** Small parts that several pages show. */
import { useState } from 'preact/hooks';
import { ApiError, type Finding, type Spark, type State, type Trouble } from '../api';
import { isCommand } from './command';
import { age, stamp, unix, utc, when } from './format';
import { view } from './router';
import { formatView } from './view';

const WORDS: Record<State, string> = { ok: 'ok', warning: 'warning', critical: 'critical', down: 'down', new: 'new' };

/** A state as shape, word and colour: readable without the colour. */
export function StateMark({ state, wordless = false }: { state: State; wordless?: boolean }) {
  const shapes: Record<State, preact.JSX.Element> = {
    ok: <circle cx="6" cy="6" r="3" />,
    warning: <path d="M6 1.2 11.4 11H.6z" />,
    critical: <path d="M6 .5 11.5 6 6 11.5.5 6z" />,
    down: <path d="M2.2 1 6 4.6 9.8 1 11 2.2 7.4 6 11 9.8 9.8 11 6 7.4 2.2 11 1 9.8 4.6 6 1 2.2z" />,
    new: <circle cx="6" cy="6" r="3.6" fill="none" stroke="currentColor" stroke-width="1.4" />,
  };
  return (
    <span class={`state ${state}`}>
      <svg viewBox="0 0 12 12" width="11" height="11" aria-hidden="true">{shapes[state] ?? shapes.new}</svg>
      {wordless ? <span class="unseen">{WORDS[state]}</span> : (WORDS[state] ?? state)}
    </span>
  );
}

/** A button that copies a command and says that it did. */
export function Copy({ text, label = 'copy' }: { text: string; label?: string }) {
  const [done, setDone] = useState('');
  const copy = async (): Promise<void> => {
    setDone((await toClipboard(text)) ? 'copied' : 'select it');
    setTimeout(() => setDone(''), 1500);
  };
  return <button class="copy" onClick={copy} aria-label={`${label.charAt(0).toUpperCase()}${label.slice(1)}: ${text}`} aria-live="polite">{done || label}</button>;
}

async function toClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Over plain HTTP from another machine there is no clipboard object: the old way still works.
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'unseen';
    document.body.append(area);
    area.select();
    const ok = document.execCommand('copy');
    area.remove();
    return ok;
  }
}

/** Does something once and says what was wrong with it. */
export function useAct(): [string, boolean, (f: () => Promise<unknown>) => void] {
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  const act = (f: () => Promise<unknown>): void => {
    setBusy(true);
    f().then(() => setError(''), (e: unknown) => setError(e instanceof ApiError ? [e.message, e.remedy].filter(Boolean).join(': ') : String(e))).finally(() => setBusy(false));
  };
  return [error, busy, act];
}

/** A command next to its copy button; advice as the words that it is. */
export function Remedy({ text }: { text: string }) {
  if (!isCommand(text)) return <span class="advice">{text}</span>;
  return <span class="remedy"><code>{text}</code><Copy text={text} /></span>;
}

/** A moment: short, with its full form in both zones on hover. */
export function Moment({ t, now }: { t: number; now: number }) {
  return <time dateTime={new Date(t * 1000).toISOString()} title={`${stamp(t)} here\n${utc(t)}`}>{when(t, now)}</time>;
}

/** " since 10:32:07", unless the words say it themselves. */
export function Since({ t, words, now }: { t: number; words: string; now: number }) {
  if (!(t > 0) || /\bsince \d/.test(words)) return null;
  return <span class="quiet"> since <Moment t={t} now={now} /></span>;
}

/** What is wrong, each with its remedy; onChart leads to the chart that shows it. */
export function Findings({ list, now, onChart }: { list: Finding[]; now: number; onChart: (id: string) => void }) {
  if (list.length === 0) return null;
  return (
    <ul class="findings" aria-label="Findings">
      {list.map((f) => (
        <li key={`${f.id} ${f.subject ?? ''}`}>
          <StateMark state={f.severity === 'info' ? 'ok' : f.severity} wordless />
          <div>
            <span title={f.since && `since ${stamp(unix(f.since))} here\n${utc(unix(f.since))}`}>{f.what}</span>
            {f.since && <Since t={unix(f.since)} words={f.what} now={now} />}
            {f.chart && <button class="bare link" onClick={() => onChart(f.chart!)}>chart</button>}
            {f.id.startsWith('protect.') && view.value.page !== 'protect' && <a class="link" href={formatView({ ...view.value, page: 'protect', q: '', sort: '', pins: [] })}>protect</a>}
            {f.id.startsWith('advice.') && view.value.page !== 'advice' && <a class="link" href={formatView({ ...view.value, page: 'advice', q: '', sort: '', pins: [] })}>advice</a>}
            {f.remedy && <Remedy text={f.remedy} />}
          </div>
        </li>
      ))}
    </ul>
  );
}

/** What could not be collected, why, and the remedy. */
export function Gaps({ list }: { list: Trouble[] }) {
  if (list.length === 0) return null;
  const one = list.length === 1;
  return (
    <details class="gaps" open={one}>
      <summary>{one ? 'One thing is' : `${list.length} things are`} not collected: {list.map((g) => g.what).join(', ')}</summary>
      <ul>
        {list.map((g) => (
          <li key={g.what}>
            <b>{g.what}</b> – {g.why}{g.remedy && <>; {isCommand(g.remedy) ? 'run ' : ''}<Remedy text={g.remedy} /></>}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** A small line with its band, for a table row, from nothing to its largest value or to what is full. Gaps stay gaps. */
export function Sparkline({ spark, width = 132, height = 24, full }: { spark: Spark; width?: number; height?: number; full?: number }) {
  const { avg, min, max } = spark;
  const n = Math.max(2, avg.length);
  const top = full ?? Math.max(1e-9, ...(max ?? []).map((v) => v ?? 0), ...avg.map((v) => v ?? 0));
  const x = (i: number): string => ((i / (n - 1)) * width).toFixed(1);
  const y = (v: number): string => (height - 1 - (v / top) * (height - 2)).toFixed(1);
  let line = '';
  let band = '';
  let run: number[] = [];
  const close = (): void => {
    if (run.length > 0) {
      line += run.map((i, k) => `${k ? 'L' : 'M'}${x(i)} ${y(avg[i]!)}`).join('');
      if (run.length === 1) line += 'h1';
      const back = [...run].reverse();
      band += run.map((i, k) => `${k ? 'L' : 'M'}${x(i)} ${y(max?.[i] ?? avg[i]!)}`).join('')
        + back.map((i) => `L${x(i)} ${y(min?.[i] ?? avg[i]!)}`).join('') + 'Z';
    }
    run = [];
  };
  for (let i = 0; i < avg.length; i++) {
    if (avg[i] === null) close();
    else run.push(i);
  }
  close();
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} width={width} height={height} preserveAspectRatio="none" aria-hidden="true">
      <path class="spark-band" d={band} />
      <path class="spark-line" d={line} />
    </svg>
  );
}

/** "12 s old" for data that is not fresh; nothing for what is. */
export function Stale({ seen, now }: { seen: number; now: number }) {
  if (!(seen > 0) || now - seen <= 5) return null;
  return <span class="stale" title={`last data ${stamp(seen)} here, ${utc(seen)}`}>{age(now - seen)} old</span>;
}
