/** What was changed lately, what it cost, and each step. */
import type { ChangeStep, GroupChange, Receipt } from '../api';
import { clock, counted, seconds, stamp, unix } from '../common/format';
import { Moment, Remedy, StateMark } from '../common/parts';
import { changeWords, outageWords, outcome } from './words';

/** The steps of a change, as they are written down. */
export function Steps({ list }: { list: ChangeStep[] }) {
  return (
    <ol class="g-steps" tabIndex={0} aria-label="Steps">
      {list.map((s, i) => (
        <li key={i} class={s.failed ? 'bad' : ''}>
          <time dateTime={s.at} title={stamp(unix(s.at))}>{clock(unix(s.at))}</time>
          <b>{s.where}</b>
          <span><code>{s.what}</code>{!!s.took_ns && <span class="quiet"> {seconds(s.took_ns / 1e9)}</span>}{s.failed && <span> – {s.failed}</span>}</span>
        </li>
      ))}
    </ol>
  );
}

function ReceiptDetails({ r }: { r: Receipt }) {
  const rows: [string, preact.ComponentChildren][] = [
    ['verdict', r.verdict.replaceAll('_', ' ')],
    ['compared with', r.checked],
    ['epoch', r.epoch],
    ['no writes', outageWords(r)],
  ];
  if (r.lost) rows.push(['transactions', <><code>{r.lost}</code> <span class="quiet">{counted(r.lost_count, 'transaction')}</span></>], ['what they changed', <Remedy text="risso gtid errant" />]);
  return <dl class="g-receipt">{rows.map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl>;
}

function Change({ c, now }: { c: GroupChange; now: number }) {
  const end = outcome(c, now);
  const mark = end.tone;
  return (
    <li data-change={c.epoch} data-stage={c.stage}>
      <StateMark state={mark} wordless />
      <div>
        <p><Moment t={unix(c.began)} now={now} /> <b>{changeWords(c)}</b> <span class={end.tone === 'critical' ? 'bad' : 'quiet'}>{end.text}</span></p>
        {c.receipt && <p class="g-words" data-verdict={c.receipt.verdict}>{c.receipt.words}</p>}
        {c.problem && <p class="bad">{c.problem}</p>}
        {c.because && <p class="quiet">because {c.because}</p>}
        <details class="fold">
          <summary>{c.receipt ? 'receipt and ' : ''}{counted(c.steps.length, 'step')}</summary>
          {c.receipt && <ReceiptDetails r={c.receipt} />}
          <Steps list={c.steps} />
        </details>
      </div>
    </li>
  );
}

/** The list, the newest first. */
export function Changes({ list, now }: { list: GroupChange[]; now: number }) {
  return (
    <section aria-labelledby="g-changes">
      <h2 id="g-changes">Changes of the primary, with their receipts</h2>
      {list.length === 0 ? <p class="quiet">There was none yet.</p> : <ul class="g-changes">{list.map((c) => <Change key={c.epoch} c={c} now={now} />)}</ul>}
    </section>
  );
}
