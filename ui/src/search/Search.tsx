/** The search field: servers, charts and any metric, by Risso's name or MySQL's own. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { human, plainUnit } from '../common/format';
import { go, view } from '../common/router';
import { catalogues, fleet, instanceOf, loadCatalogue } from '../common/store';
import { HOME, type View } from '../common/view';
import { CHARTS } from '../server/charts';
import { showChart, wantedChart } from '../server/Server';
import { best, normalise } from './fuzzy';
import { humanName } from './names';

interface Hit {
  kind: 'server' | 'host' | 'chart' | 'metric' | 'list';
  title: string;
  detail: string;
  text: string;
  open: () => void;
}

/** Pins a metric as a chart on the page of an instance, and goes there. */
export function openMetric(id: string, key: string): void {
  const v = view.value;
  const pins = v.id === id ? v.pins : [];
  const next: Partial<View> = { page: 'server', id, pins: pins.includes(key) ? pins : [key, ...pins], q: '', sort: '' };
  wantedChart.value = `pin-${key}`;
  go(v.id === id ? next : { ...HOME, ...next });
}

function openChart(id: string, chart: string): void {
  if (view.value.page === 'server' && view.value.id === id && showChart(chart)) return;
  wantedChart.value = chart;
  go(view.value.id === id ? { page: 'server', q: '', sort: '' } : { ...HOME, page: 'server', id });
}

/** The instance that charts and metrics are searched in: the one on the screen, or the first server. */
function subject(): string {
  const { id } = view.value;
  if (id) return id;
  const all = fleet.value?.instances ?? [];
  return (all.find((i) => i.kind === 'server' && i.state !== 'down') ?? all[0])?.id ?? '';
}

function instances(): Hit[] {
  return (fleet.value?.instances ?? []).map((i) => ({
    kind: i.kind, title: i.name, detail: i.words, text: normalise(`${i.name} ${i.address} ${i.id} ${i.kind}`),
    open: () => go({ ...(view.value.id ? view.value : HOME), page: view.value.id || view.value.page === 'queries' || view.value.page === 'protect' || view.value.page === 'advice' ? view.value.page : 'server', id: i.id, pins: view.value.pins, q: '', sort: '' }),
  }));
}

function things(id: string): Hit[] {
  const name = instanceOf(id)?.name ?? id;
  const c = catalogues.value[id];
  const metrics: Hit[] = (c?.metrics ?? []).map((m) => {
    const own = humanName(m.key);
    return {
      kind: 'metric' as const, title: own, detail: `${human(m.last, plainUnit(m.unit))} · ${m.key}`,
      text: normalise(`${own} ${m.key}`), open: () => openMetric(id, m.key),
    };
  });
  const charts: Hit[] = CHARTS.map((d) => ({
    kind: 'chart' as const, title: d.title, detail: `${d.section} · ${name}`, text: normalise(`${d.title} ${d.section} ${d.id}`),
    open: () => openChart(id, d.id),
  }));
  return [...charts, ...metrics];
}

const LIMIT = 14;

// What the lists hold beyond numbers, such as the text of a variable, is found there.
function lists(q: string, id: string): Hit[] {
  const everywhere: Hit = { kind: 'list', title: `statements with “${q}”`, detail: 'all servers', text: 'queries', open: () => go({ ...HOME, page: 'queries', q }) };
  if (!id) return [everywhere];
  const name = instanceOf(id)?.name ?? id;
  const open = (page: 'queries' | 'metrics' | 'variables') => () => go({ ...(view.value.id === id ? view.value : HOME), page, id, q, sort: '', cls: '' });
  const own = (['queries', 'metrics', 'variables'] as const).map((page): Hit => ({
    kind: 'list', title: `${page === 'queries' ? 'statements' : page} with “${q}”`, detail: name, text: page, open: open(page),
  }));
  return [own[0], everywhere, ...own.slice(1)];
}

/** Hits for a query; without one, the servers. */
function find(query: string, id: string): Hit[] {
  const q = query.trim();
  if (q === '') return instances().slice(0, LIMIT);
  return [...best(q, [...instances(), ...things(id)], (h) => h.text, LIMIT), ...lists(q, id)];
}

/** The field and its list. */
export function Search() {
  const [q, setQ] = useState('');
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  const id = subject();
  useEffect(() => {
    if (open && id) void loadCatalogue(id, 30).catch(() => undefined);
  }, [open, id]);
  const hits = useMemo(() => (open ? find(q, id) : []), [q, open, id, catalogues.value, open && fleet.value]);
  const close = (): void => {
    setQ('');
    setOpen(false);
    field.current?.blur();
  };
  const choose = (h: Hit | undefined): void => {
    if (!h) return;
    close();
    h.open();
  };
  const onKey = (e: KeyboardEvent): void => {
    if (e.key === 'ArrowDown') setAt(Math.min(hits.length - 1, at + 1));
    else if (e.key === 'ArrowUp') setAt(Math.max(0, at - 1));
    else if (e.key === 'Enter') choose(hits[at]);
    else if (e.key === 'Escape') close();
    else return;
    e.preventDefault();
  };
  return (
    <div class="search" role="search">
      <input
        id="search" ref={field} type="search" list={undefined} value={q} placeholder="Search servers, charts, metrics" autocomplete="off" spellcheck={false}
        role="combobox" aria-expanded={open} aria-controls="hits" aria-autocomplete="list" aria-label="Search servers, charts and metrics"
        aria-activedescendant={open && hits[at] ? `hit-${at}` : undefined}
        onInput={(e) => (setQ(e.currentTarget.value), setAt(0), setOpen(true))} onFocus={() => setOpen(true)}
        onBlur={() => setTimeout(() => setOpen(false), 150)} onKeyDown={onKey}
      />
      <kbd aria-hidden="true">/</kbd>
      {open && (
        <ul id="hits" class="pop hits" role="listbox" aria-label="Matches">
          {hits.map((h, i) => (
            <li key={`${h.kind}${h.text}`} id={`hit-${i}`} role="option" aria-selected={i === at} onMouseMove={() => i !== at && setAt(i)} onMouseDown={(e) => (e.preventDefault(), choose(h))}>
              <span class="kind">{h.kind}</span><span class="hit-title">{h.title}</span><span class="hit-detail quiet">{h.detail}</span>
            </li>
          ))}
          {hits.length === 0 && <li class="quiet none">Nothing is called so{instanceOf(id) ? ` on ${instanceOf(id)!.name}` : ''}.</li>}
        </ul>
      )}
    </div>
  );
}
