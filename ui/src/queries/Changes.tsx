/** What changed between two ranges: a row for each class, the largest change of load first. */
import type { ApiError, Cost, QueryChange, QueryChanges, Span } from '../api';
import { clock, counted, exact, human, stamp } from '../common/format';
import { go, view } from '../common/router';
import type { Versus } from '../common/view';
import { Failed, Tag, linkOfClass } from './parts';
import { NO_ROOM, short } from './sql';
import { lengthOf, versusWords } from './window';
import { changeWords, flipWords, loadOf, totalWords } from './words';

interface Compared {
  vs: Versus;
  before: Span;
  after: Span;
  data: QueryChanges | null;
}

/** A change as a bar from the middle: to the right adds load, to the left takes it away. */
function Delta({ delta, most }: { delta: number; most: number }) {
  const width = `${(Math.min(1, Math.abs(delta) / most) * 50).toFixed(2)}%`;
  const sign = delta > 0 ? '+' : delta < 0 ? '−' : '';
  return (
    <span class="delta" title={`${sign}${exact(Math.abs(delta), 's/s')}`}>
      <span class="delta-bar"><i class={delta > 0 ? 'more' : 'less'} style={delta > 0 ? { left: '50%', width } : { right: '50%', width }} /></span>
      <b>{sign}{human(Math.abs(delta), 's/s')}</b>
    </span>
  );
}

function Row({ c, most, before, after }: { c: QueryChange; most: number; before: Span; after: Span }) {
  const flips = flipWords(c.flips);
  const load = (cost: Cost, s: Span): string => human(loadOf(cost, lengthOf(s)), 's/s');
  const open = (e: MouseEvent): void => {
    if ((e.target as Element).closest('a,button') || getSelection()?.toString()) return;
    go({ page: 'query', cls: c.id, q: '', sort: '', schema: '', more: false });
  };
  return (
    <tr class="row" data-class={c.id} data-kind={c.kind} onClick={open}>
      <td class="c-statement"><a href={linkOfClass(c.id)}>{c.id === NO_ROOM ? 'all statements that did not fit into the table of digests' : short(c.fingerprint) || c.id}</a></td>
      <td class="c-change">{changeWords(c, before, after)}{flips && <> <Tag title="A different plan than before">⇄ {flips}</Tag></>}</td>
      <td class="c-delta"><Delta delta={c.delta} most={most} /></td>
      <td class="num c-before">{c.a.calls > 0 ? load(c.a, before) : '–'}</td>
      <td class="num c-after">{c.b.calls > 0 ? load(c.b, after) : '–'}</td>
    </tr>
  );
}

function spanWords(s: Span): string {
  const sameDay = stamp(s.from).slice(0, 10) === stamp(s.to).slice(0, 10);
  return `${stamp(s.from).slice(0, 16)} – ${sameDay ? clock(s.to).slice(0, 5) : stamp(s.to).slice(0, 16)}`;
}

interface Props {
  vs: Versus;
  compared: Compared | null;
  error: ApiError | null;
  waiting: boolean;
  ready: boolean;
  /** classes that the server found: it knows their other names, too */
  listed: string[];
}

/** The comparison. */
export function Changes({ vs, compared, error, waiting, ready, listed }: Props) {
  if (error) return <Failed error={error} />;
  if (!compared) {
    if (!ready) return null;
    return (
      <p class="quiet pad">
        No statements are kept from {vs === 'day' ? 'yesterday' : vs === 'week' ? 'a week ago' : 'the time before this range'}: Risso was not recording yet.
        {' '}<button class="bare link" onClick={() => go({ vs: '' })}>Show the heaviest instead</button>
      </p>
    );
  }
  const { data, before, after } = compared;
  if (!data) return null;
  const all = data.changes ?? [];
  const words = view.value.q.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter((c) => (words.length > 0 && listed.includes(c.id)) || words.every((w) => c.fingerprint.toLowerCase().includes(w) || c.id.toLowerCase().startsWith(w)));
  const moved = found.filter((c) => c.kind !== 'same' || (c.flips ?? []).length > 0);
  const most = Math.max(1e-12, ...moved.map((c) => Math.abs(c.delta)));
  return (
    <>
      <p class="versus">{totalWords(data.a, data.b, vs, before, after)} <span class="quiet">{spanWords(before)} against {spanWords(after)}</span></p>
      {moved.length === 0 && <p class="quiet pad">{words.length > 0 ? `No class with “${view.value.q}” in it` : 'No class'} changed by more than a tenth against {versusWords(vs, before)}.</p>}
      {moved.length > 0 && (
        <table class={`list changes ${waiting ? 'waiting' : ''}`} aria-label="What changed" aria-busy={waiting}>
          <thead>
            <tr>
              <th scope="col">Statement</th><th scope="col">What changed</th><th scope="col" class="c-delta" title="Change of the load: seconds of execution per second">Adds to the load</th>
              <th scope="col" class="num">Before</th><th scope="col" class="num">Now</th>
            </tr>
          </thead>
          <tbody>{moved.map((c) => <Row key={c.id} c={c} most={most} before={before} after={after} />)}</tbody>
        </table>
      )}
      <p class="quiet period">
        {counted(data.count, 'class was', 'classes were')} compared{data.cut && ', the cheapest left out'}; {found.length - moved.length > 0 && `${found.length - moved.length} of the listed changed by less than a tenth. `}
        Ordered by what each adds to the load or takes from it.
      </p>
    </>
  );
}
