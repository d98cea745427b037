/** The charts of one server or host, words first. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { signal } from '@preact/signals';
import { ApiError, fetchInstance, serverNow, type Finding, type InstanceDetail } from '../api';
import { Chart, type ChartModel } from '../chart/Chart';
import { currentDesk } from '../common/desk';
import { human, unitOf } from '../common/format';
import { Moment, StateMark } from '../common/parts';
import { usePoll, usePolled } from '../common/poll';
import { replace, view } from '../common/router';
import { catalogues, instanceOf, loadCatalogue } from '../common/store';
import { themeChanges } from '../common/theme';
import { HOME, formatView } from '../common/view';
import { Tonight } from '../findings/Tonight';
import { humanName } from '../search/names';
import { Board } from './board';
import { CHARTS } from './charts';
import { build, isQuiet, type Catalogue } from './define';
import { Header } from './Header';

/** A chart that search or a finding asked for; the page scrolls to it when it is there. */
export const wantedChart = signal('');

interface Section {
  name: string;
  charts: ChartModel[];
  /** charts that would show nothing but zero */
  quiet: ChartModel[];
}

function pinnedCharts(keys: string[], own: Catalogue, host: Catalogue | undefined, board: Board, id: string, hostID: string): ChartModel[] {
  return keys.map((key) => {
    const mine = own.get(key);
    const m = mine ?? host?.get(key);
    return {
      id: `pin-${key}`, title: humanName(key), unit: unitOf(m?.unit ?? '', m?.type ?? 'gauge'), stacked: false,
      lines: [{ label: key, expr: key, colour: 'line' as const }],
      explain: m ? m.help || (m.type === 'counter' ? 'A counter, shown as its rate per second.' : 'A value as it stands.') : 'This instance has no such series.',
      source: m?.source || 'unknown', feed: board.feed(m && !mine ? hostID : id),
    };
  });
}

function sectionsOf(own: Catalogue, host: Catalogue | undefined, board: Board, id: string, hostID: string): Section[] {
  const out: Section[] = [];
  for (const def of CHARTS) {
    // A host's own page has the host's series under its own id.
    const [catalogue, instance] = def.of === 'host' && host ? [host, hostID] : [own, id];
    const model = build(def, catalogue, board.feed(instance));
    if (!model) continue;
    if (out[out.length - 1]?.name !== def.section) out.push({ name: def.section, charts: [], quiet: [] });
    const section = out[out.length - 1];
    (!def.always && isQuiet(model, catalogue) ? section.quiet : section.charts).push(model);
  }
  return out;
}

// A chart whose definition came out the same keeps its identity, and so its plot.
function useStable(models: ChartModel[]): (m: ChartModel) => ChartModel {
  const kept = useRef(new Map<string, [string, ChartModel]>());
  const next = new Map<string, [string, ChartModel]>();
  for (const m of models) {
    const { feed, ...rest } = m;
    const text = JSON.stringify(rest);
    const old = kept.current.get(m.id);
    next.set(m.id, old && old[0] === text && old[1].feed === feed ? old : [text, m]);
  }
  kept.current = next;
  return (m) => next.get(m.id)?.[1] ?? m;
}

function bucketsFor(width: number): number {
  const columns = Math.max(1, Math.floor(width / 400));
  return Math.round(Math.min(1000, Math.max(320, (width / columns) * 1.1)) / 60) * 60;
}

function useBoard(id: string, root: { current: HTMLElement | null }): Board {
  const range = view.value.range;
  const [width, setWidth] = useState(innerWidth);
  const board = useMemo(() => new Board(id, range, bucketsFor(width)), [id]);
  useEffect(() => {
    currentDesk.value = board;
    return () => {
      board.close();
      if (currentDesk.value === board) currentDesk.value = null;
    };
  }, [board]);
  useEffect(() => board.show(range, bucketsFor(width)), [board, range, width]);
  useEffect(() => board.changed('marks'), [board, view.value.at]);
  useEffect(() => board.changed('theme'), [board, themeChanges.value]);
  useLayoutEffect(() => {
    const o = new ResizeObserver((e) => setWidth(Math.round(e[0].contentRect.width)));
    if (root.current) o.observe(root.current);
    return () => o.disconnect();
  }, []);
  return board;
}

// A chart that a rule points at carries the rule's shape and colour; numbers and layout stay as they are.
function useTones(findings: Finding[], ready: unknown): void {
  const text = findings.map((f) => `${f.chart}:${f.severity}`).join();
  useEffect(() => {
    for (const el of document.querySelectorAll<HTMLElement>('[data-chart]')) {
      const mine = findings.filter((f) => f.chart === el.dataset.chart).map((f) => f.severity);
      el.dataset.tone = mine.includes('critical') ? 'critical' : mine.includes('warning') ? 'warning' : '';
    }
  }, [text, ready]);
}

/** Scrolls to a chart and marks it for a moment. */
export function showChart(id: string): boolean {
  const all = [...document.querySelectorAll<HTMLElement>('[data-chart]')];
  const el = all.find((e) => e.dataset.chart === id) ?? all.find((e) => e.dataset.chart?.startsWith(id));
  if (!el) return false;
  const fold = el.closest('details');
  if (fold) fold.open = true;
  const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
  el.scrollIntoView({ block: 'center', behavior: calm ? 'auto' : 'smooth' });
  el.classList.add('wanted');
  setTimeout(() => el.classList.remove('wanted'), 2500);
  return true;
}

/** Follows an instance's state, which the head of all its pages shows; 'missing' if there is no such instance. */
export function useDetail(id: string): InstanceDetail | 'missing' | null {
  const [detail, setDetail] = useState<InstanceDetail | 'missing' | null>(null);
  usePolled(async () => {
    try {
      return await fetchInstance(id);
    } catch (e) {
      if (e instanceof ApiError && e.status === 404) return 'missing';
      throw e;
    }
  }, setDetail, 1000, [id]);
  return detail;
}

/** The page /server/ID. */
export function Server() {
  const { id, pins } = view.value;
  const root = useRef<HTMLElement>(null);
  const seen = useDetail(id);
  const detail = seen === 'missing' ? null : seen;
  const board = useBoard(id, root);
  const hostID = detail?.host || detail?.host_id || instanceOf(id)?.host_id || '';
  const own = catalogues.value[id];
  const host = hostID ? catalogues.value[hostID] : undefined;
  // A server seen for the first time gets its series within seconds; later they hardly change.
  usePoll(() => loadCatalogue(id, own && own.metrics.length > 0 ? 55 : 0), own && own.metrics.length > 0 ? 60_000 : 1000, [id]);
  usePoll(() => (hostID ? loadCatalogue(hostID, 55) : Promise.resolve()), 60_000, [hostID]);

  const sections = useMemo(() => (own && seen !== 'missing' ? sectionsOf(own, host, board, id, hostID) : []), [own, host, board, id, hostID, seen === 'missing']);
  const pinned = useMemo(() => (own ? pinnedCharts(pins, own, host, board, id, hostID) : []), [pins.join('\n'), own, host, board, id, hostID]);
  const stable = useStable([...pinned, ...sections.flatMap((s) => [...s.charts, ...s.quiet])]);
  useTones([...(detail?.findings ?? []), ...(instanceOf(hostID)?.findings ?? [])], sections);
  useEffect(() => {
    if (wantedChart.value && sections.length > 0 && showChart(wantedChart.value)) wantedChart.value = '';
  }, [wantedChart.value, sections, pinned]);

  return (
    <main ref={root}>
      <Header id={id} detail={seen} onChart={(c) => void showChart(c)} />
      {seen !== 'missing' && <Tonight key={id} id={id} closed />}
      <At id={id} board={board} isHost={instanceOf(id)?.kind === 'host'} />
      {own && own.metrics.length === 0 && <p class="quiet pad">No data yet: the first come a second or two after Risso connects.</p>}
      {sections.length > 1 && (
        <nav class="sections" aria-label="Sections">
          {sections.map((s) => <a key={s.name} href={`#${slug(s.name)}`}>{s.name}</a>)}
        </nav>
      )}
      {pinned.length > 0 && (
        <section aria-labelledby="pinned">
          <h2 id="pinned">Pinned</h2>
          <div class="grid">
            {pinned.map((m, i) => (
              <Chart key={m.id} model={stable(m)} desk={board} onUnpin={() => replace({ pins: pins.filter((_, k) => k !== i) })} />
            ))}
          </div>
        </section>
      )}
      {sections.map((s) => (
        <section key={s.name} aria-labelledby={slug(s.name)}>
          <h2 id={slug(s.name)}>{s.name}</h2>
          <div class="grid">
            {s.charts.map((m) => <Chart key={m.id} model={stable(m)} desk={board} />)}
          </div>
          {s.quiet.length > 0 && (
            <details class="still">
              <summary>all zero: {s.quiet.map((m) => m.title).join(', ')}</summary>
              <div class="grid">{s.quiet.map((m) => <Chart key={m.id} model={stable(m)} desk={board} />)}</div>
            </details>
          )}
        </section>
      ))}
      {detail && own && own.metrics.length > 0 && <Cost detail={detail} />}
    </main>
  );
}

// What was wrong at the pinned moment, and the way to who was there.
function At({ id, board, isHost }: { id: string; board: Board; isHost: boolean }) {
  const { at } = view.value;
  const [, turn] = useState(0);
  useEffect(() => board.onChange(() => turn((n) => n + 1)), [board]);
  if (at === null) return null;
  const now = serverNow();
  const wrong = board.wrongAt(at);
  return (
    <p class="at-moment" aria-live="polite">
      At <Moment t={at} now={now} />{wrong.length === 0 ? ' no rule found anything wrong' : ': '}
      {wrong.map((w, i) => <span key={i}><StateMark state={w.tone} wordless /> {w.text} </span>)}
      {!isHost && <a class="link" href={formatView({ ...HOME, page: 'film', id, at })}>sessions and locks of that second</a>}
    </p>
  );
}

function slug(s: string): string {
  return `s-${s.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`;
}

function Cost({ detail }: { detail: InstanceDetail }) {
  const c = detail.cost;
  if (!c) return null;
  return (
    <p class="quiet pad">
      Watching {detail.name} costs it {human(c.queries_per_second)} queries, {human(c.server_ms_per_second, 'ms')} and{' '}
      {human(c.bytes_per_second, 'B')} a second, for {human(c.values_per_second)} values.
    </p>
  );
}
