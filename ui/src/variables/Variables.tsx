/** The global variables as they were at the end of the range, and when each changed. */
import { useMemo, useState } from 'preact/hooks';
import { fetchVariables, serverNow, type Variable } from '../api';
import { age, stamp } from '../common/format';
import { Moment } from '../common/parts';
import { usePolled } from '../common/poll';
import { ends } from '../common/range';
import { go, replace, view } from '../common/router';
import { normalise } from '../search/fuzzy';
import { Header } from '../server/Header';
import { useDetail } from '../server/Server';

/** Filters by all words of a query, in name or value, and sorts. */
export function arrange(list: Variable[], q: string, sort: string): Variable[] {
  const words = normalise(q).split(' ').filter(Boolean);
  const kept = list.filter((v) => {
    const text = normalise(`${v.name} ${v.value}`);
    return words.every((w) => text.includes(w));
  });
  const sign = sort.startsWith('-') ? -1 : 1;
  if (sort.endsWith('changed')) return kept.sort((a, b) => sign * ((a.changed ?? 0) - (b.changed ?? 0)) || a.name.localeCompare(b.name));
  return kept.sort((a, b) => sign * a.name.localeCompare(b.name));
}

/** The page /server/ID/variables. */
export function Variables() {
  const { id, q, sort, range } = view.value;
  const detail = useDetail(id);
  const [list, setList] = useState<Variable[] | null>(null);
  const at = ends(range, serverNow()).to;
  usePolled(() => fetchVariables(id, ends(view.value.range, serverNow()).to), setList, 10_000, [id, range.live ? 'live' : at]);
  const shown = useMemo(() => arrange(list ?? [], q, sort), [list, q, sort]);
  const now = serverNow();
  const turn = (c: string): void => go({ sort: sort === c ? `-${c}` : sort === `-${c}` ? c : c === 'changed' ? '-changed' : c });
  const arrow = (c: string): string => (sort === c ? ' ↑' : sort === `-${c}` ? ' ↓' : '');
  const changed = (list ?? []).filter((v) => v.changed !== null).length;
  return (
    <main>
      <Header id={id} detail={detail} onChart={() => go({ page: 'server' })} />
      <div class="filter">
        <input type="search" value={q} placeholder="Filter by name or value" aria-label="Filter variables" onInput={(e) => replace({ q: e.currentTarget.value })} spellcheck={false} />
        <span class="quiet">{list ? `${shown.length} of ${list.length}, as of ${range.live ? 'now' : stamp(at)}; ${changed === 0 ? 'none changed since Risso watches' : `${changed} changed since Risso watches`}` : ''}</span>
      </div>
      {list && list.length > 0 && (
        <table class="list variables" aria-label="Variables">
          <thead>
            <tr>
              <th scope="col"><button class="bare" onClick={() => turn('name')}>Variable{arrow('name')}</button></th>
              <th scope="col">Value</th>
              <th scope="col"><button class="bare" onClick={() => turn('changed')}>Changed{arrow('changed')}</button></th>
            </tr>
          </thead>
          <tbody>
            {shown.map((v) => (
              <tr key={v.name}>
                <td class="c-metric">{v.name}</td>
                <td class="c-value">{v.value}</td>
                <td class="c-changed">{v.changed !== null && <><Moment t={v.changed} now={now} /> <span class="quiet">{age(now - v.changed)} ago</span></>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {list && list.length === 0 && <p class="quiet">{detail !== 'missing' && detail?.kind === 'host' ? 'A host has no variables.' : 'No variables were read yet: they are read once a minute.'}</p>}
    </main>
  );
}
