/** All series of an instance, with their last values; the unchanging ones are folded away. */
import { useMemo, useState } from 'preact/hooks';
import { fetchChart, serverNow, type Metric, type Spark } from '../api';
import { counted, exact, human, plainUnit } from '../common/format';
import { Sparkline } from '../common/parts';
import { usePoll } from '../common/poll';
import { go, replace, view } from '../common/router';
import { catalogues, loadCatalogue } from '../common/store';
import { best, normalise } from '../search/fuzzy';
import { humanName } from '../search/names';
import { openMetric } from '../search/Search';
import { Header } from '../server/Header';
import { useDetail } from '../server/Server';

const SPARK_SPAN = 900;

interface Item {
  m: Metric;
  name: string;
  text: string;
}

function toItems(metrics: Metric[]): Item[] {
  return metrics.map((m) => {
    const name = humanName(m.key);
    return { m, name, text: normalise(`${name} ${m.key}`) };
  });
}

function sorted(items: Item[], sort: string): Item[] {
  const sign = sort.startsWith('-') ? -1 : 1;
  if (sort.endsWith('value')) return [...items].sort((a, b) => sign * ((a.m.last ?? -Infinity) - (b.m.last ?? -Infinity)));
  return [...items].sort((a, b) => sign * a.name.localeCompare(b.name, 'en', { numeric: true }));
}

function Row({ item, id, pinned }: { item: Item; id: string; pinned: boolean }) {
  const { m, name } = item;
  const [spark, setSpark] = useState<Spark | null>(null);
  const [asked, setAsked] = useState(false);
  const load = async (): Promise<void> => {
    if (asked) return;
    setAsked(true);
    try {
      const to = Math.floor(serverNow());
      const data = await fetchChart(id, [m.key], to - SPARK_SPAN, to, 90);
      const s = data.series?.[0];
      if (s) setSpark({ start: data.from, step: data.step, avg: s.avg, min: s.min ?? s.avg, max: s.max ?? s.avg });
    } catch {
      setAsked(false);
    }
  };
  const unit = plainUnit(m.unit);
  return (
    <tr onMouseEnter={load} onFocusIn={load}>
      <td class="c-metric"><button class="bare link" onClick={() => openMetric(id, m.key)} title={`${m.key}\n${m.help}`}>{name}</button>{pinned && <small> pinned</small>}</td>
      <td class="num" title={exact(m.last, unit)}>{human(m.last, unit)}</td>
      <td class="c-spark">{spark && <Sparkline spark={spark} width={120} height={20} />}</td>
      <td class="c-type quiet">{m.type}</td>
      <td class="c-source quiet">{m.source}</td>
      <td class="c-key"><code>{m.key}</code></td>
    </tr>
  );
}

function List({ items, id, label }: { items: Item[]; id: string; label: string }) {
  const { sort, pins } = view.value;
  const turn = (c: string): void => go({ sort: sort === c ? `-${c}` : c });
  const arrow = (c: string): string => (sort === c ? ' ↑' : sort === `-${c}` ? ' ↓' : '');
  return (
    <table class="list" aria-label={label}>
      <thead>
        <tr>
          <th scope="col"><button class="bare" onClick={() => turn('name')}>Name{arrow('name')}</button></th>
          <th scope="col" class="num"><button class="bare" onClick={() => turn('value')}>Last{arrow('value')}</button></th>
          <th scope="col">15 min</th><th scope="col" class="c-type">Type</th><th scope="col" class="c-source">Source</th><th scope="col" class="c-key">Key</th>
        </tr>
      </thead>
      <tbody>{items.map((i) => <Row key={i.m.key} item={i} id={id} pinned={pins.includes(i.m.key)} />)}</tbody>
    </table>
  );
}

/** The page /server/ID/metrics. */
export function Metrics() {
  const { id, q, sort } = view.value;
  const detail = useDetail(id);
  usePoll(() => loadCatalogue(id, 3), 5000, [id]);
  const metrics = catalogues.value[id]?.metrics;
  const items = useMemo(() => toItems(metrics ?? []), [metrics]);
  const found = useMemo(() => (q ? best(q, items, (i) => i.text, 300) : items), [q, items]);
  const order = (list: Item[]): Item[] => (q && !sort ? list : sorted(list, sort));
  const moving = order(found.filter((i) => !i.m.constant));
  const still = order(found.filter((i) => i.m.constant));
  return (
    <main>
      <Header id={id} detail={detail} onChart={() => go({ page: 'server' })} />
      <div class="filter">
        <input type="search" value={q} placeholder="Filter, such as Com_select or row_lock" aria-label="Filter metrics" onInput={(e) => replace({ q: e.currentTarget.value })} spellcheck={false} />
        <span class="quiet">{metrics ? `${found.length} of ${counted(items.length, 'metric')}; ${still.length} ${still.length === 1 ? 'does' : 'do'} not change` : ''}</span>
      </div>
      {metrics && metrics.length === 0 && <p class="quiet">No data yet.</p>}
      {q && items.length > 0 && found.length === 0 && <p class="quiet">No metric has this name. MySQL's own names and the exact keys are searched.</p>}
      {moving.length > 0 && <List items={moving} id={id} label="Metrics" />}
      {still.length > 0 && (
        <details class="fold" open={q !== '' && moving.length === 0}>
          <summary>{still.length} that do not change</summary>
          <List items={still} id={id} label="Constant metrics" />
        </details>
      )}
    </main>
  );
}
