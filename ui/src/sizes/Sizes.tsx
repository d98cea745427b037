/** The page /server/ID/sizes: what the server's data takes on its disks, as a treemap and as tables. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, fetchSizes, serverNow, type SizeBox, type SizedTable, type SizeReport } from '../api';
import { age, bytes, counted, number, seconds, unix } from '../common/format';
import { Gaps } from '../common/parts';
import { view } from '../common/router';
import { instanceOf } from '../common/store';
import { known, share } from './words';

const TONES: [string, string][] = [['--t1', 'rows'], ['--ti', 'secondary indexes'], ['--ts', 'undo, system, temporary'], ['--tl', 'logs'], ['--tr', 'free inside, and smaller tables']];

function Box({ b, onSee }: { b: SizeBox; onSee: (title: string) => void }) {
  return (
    <g tabIndex={0} role="img" aria-label={b.title} onFocus={() => onSee(b.title)} onMouseEnter={() => onSee(b.title)}>
      <title>{b.title}</title>
      <rect class={`${b.tone} d${b.depth}`} x={b.x + 0.5} y={b.y + 0.5} width={Math.max(b.w - 1, 0)} height={Math.max(b.h - 1, 0)} />
      {b.label && <text class={`d${b.depth}`} x={b.x + 5} y={b.y + 12.5}>{b.label}</text>}
    </g>
  );
}

function Treemap({ r }: { r: SizeReport }) {
  const [seen, see] = useState('');
  return (
    <section aria-label="Treemap">
      <ul class="keys">{TONES.map(([tone, name]) => <li key={tone}><i style={{ background: `var(${tone})` }} />{name}</li>)}</ul>
      <div class="scroll">
        <div class="map">
          <svg viewBox={`0 0 ${r.width} ${r.height}`} role="group" aria-label={`What takes ${bytes(r.total.allocated_bytes)} on disk`}>
            {r.boxes.map((b, i) => <Box key={i} b={b} onSee={see} />)}
          </svg>
        </div>
      </div>
      <p class="of">{seen || 'A box is as large as what it takes on disk.'}</p>
    </section>
  );
}

function Tables({ r }: { r: SizeReport }) {
  const list = r.tables ?? [];
  if (list.length === 0) return null;
  const most = list[0]!.allocated_bytes;
  return (
    <section aria-labelledby="tables">
      <h2 id="tables">Largest tables</h2>
      <div class="scroll">
        <table class="list">
          <thead><tr><th scope="col">Table</th><th scope="col" class="num">On disk</th><th scope="col" class="num">File</th><th scope="col" class="num">Free</th><th scope="col" class="num">Rows</th><th scope="col" class="num">Per row</th><th scope="col">Engine</th><th scope="col"><span class="unseen">Share</span></th></tr></thead>
          <tbody>
            {list.slice(0, 50).map((t: SizedTable) => (
              <tr key={`${t.schema}.${t.name}`}>
                <td>{t.schema}.{t.name}</td>
                <td class="num">{bytes(t.allocated_bytes)}</td><td class="num">{bytes(t.file_bytes)}</td><td class="num">{known(t.free_bytes, bytes)}</td>
                <td class="num">{known(t.rows, number)}</td><td class="num">{known(t.bytes_per_row, bytes)}</td>
                <td>{t.engine} {t.row_format.toLowerCase()}{t.partition_count > 0 && `, ${counted(t.partition_count, 'partition')}`}</td>
                <td class="share"><i style={{ width: share(t.allocated_bytes, most) }} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Spaces({ r }: { r: SizeReport }) {
  const list = r.spaces ?? [];
  if (list.length === 0) return null;
  return (
    <section aria-labelledby="spaces">
      <h2 id="spaces">Logs, undo, system and temporary space</h2>
      <div class="scroll">
        <table class="list">
          <thead><tr><th scope="col">Space</th><th scope="col">Name</th><th scope="col" class="num">On disk</th><th scope="col" class="num">Files</th><th scope="col" class="num">Free</th><th scope="col">Note</th></tr></thead>
          <tbody>
            {list.map((s) => (
              <tr key={`${s.kind} ${s.name}`}>
                <td>{s.kind}</td><td>{s.name}</td><td class="num">{bytes(s.allocated_bytes)}</td><td class="num">{bytes(s.file_bytes)}</td><td class="num">{known(s.free_bytes, bytes)}</td><td class="quiet">{s.note}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** The page. */
export function Sizes() {
  const { id } = view.value;
  const [r, set] = useState<SizeReport | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const asking = useRef<AbortController | null>(null);
  const ask = (fresh: boolean): void => {
    asking.current?.abort();
    const c = new AbortController();
    asking.current = c;
    setBusy(true);
    fetchSizes(id, fresh, c.signal).then(
      (x) => { set(x); setError(null); setBusy(false); },
      (e: unknown) => { if (!c.signal.aborted) { setError(e instanceof ApiError ? e : new ApiError(0, String(e))); setBusy(false); } },
    );
  };
  useEffect(() => {
    ask(false);
    return () => asking.current?.abort();
  }, [id]);
  return (
    <main class="sizes">
      <header class="page-head">
        <div class="title-line"><h1>{instanceOf(id)?.name ?? id}</h1><p class="facts"><span>sizes on disk</span></p></div>
        <div aria-live="polite">
          {r?.words?.map((w) => <p key={w} class="sentence">{w}</p>)}
          {!r && !error && <p class="sentence quiet">Reading the sizes of all tables…</p>}
          {error && <p class="sentence bad">{error.message}{error.remedy && `: ${error.remedy}`}</p>}
        </div>
        {r && <Gaps list={r.unknown ?? []} />}
        <p class="read">
          {r && <span>read {age(Math.max(0, serverNow() - unix(r.at)))} ago in {seconds(r.cost.seconds)}, {counted(r.cost.tables, 'table')}</span>}
          <button disabled={busy} onClick={() => ask(true)}>Read again</button>
        </p>
      </header>
      {r && <Treemap r={r} />}
      {r && <Tables r={r} />}
      {r && <Spaces r={r} />}
    </main>
  );
}
