/** The bar on top: the place, search, time, theme. */
import { Viewer } from '../login/Viewer';
import { Search } from '../search/Search';
import { Tabs } from '../server/Header';
import { helpOpen } from './keys';
import { RangeControl } from './RangeControl';
import { view } from './router';
import { instanceOf } from './store';
import { theme, themeChanges, toggleTheme } from './theme';
import { StateMark } from './parts';
import { HOME, aboutBenchmarks, aboutIncidents, aboutQueries, formatView, type Page } from './view';

const PLACES: [Page, string, ((p: Page) => boolean)?][] = [
  ['fleet', 'Servers'], ['topology', 'Topology'], ['groups', 'Groups'], ['alerts', 'Alerts'], ['incidents', 'Incidents', aboutIncidents], ['queries', 'Queries', aboutQueries],
  ['benchmarks', 'Benchmarks', aboutBenchmarks], ['protect', 'Protect'], ['advice', 'Advice'],
];

/** What a page of the fleet is called; empty for the first. */
export function placeName(page: Page): string {
  return page === 'fleet' ? '' : (PLACES.find(([p, , has]) => p === page || has?.(page))?.[1] ?? '');
}

// Pages of an instance that show a range of time.
const TIMED = new Set<Page>(['server', 'variables', 'events', 'queries', 'query', 'alerts', 'incidents']);

function Where() {
  const { page, id } = view.value;
  const i = instanceOf(id);
  return (
    <nav class="where" aria-label="Where you are">
      <a class="brand" href="/" aria-label="Risso, all instances">Risso</a>
      {!id && page !== 'missing' && (
        <span class="tabs">
          {PLACES.map(([p, name, has]) => <a key={p} href={formatView({ ...HOME, page: p })} aria-current={page === p || has?.(page) ? 'page' : undefined}>{name}</a>)}
        </span>
      )}
      {page !== 'fleet' && id && (
        <>
          <span class="quiet" aria-hidden="true">/</span>
          <a class="here" href={formatView({ ...view.value, page: 'server', cls: '', q: '', sort: '' })}>{i && <StateMark state={i.state} wordless />}{i?.name ?? id}</a>
        </>
      )}
    </nav>
  );
}

/** Brand, search, tabs and time, always in reach. */
export function TopBar() {
  const { page, id } = view.value;
  const inside = page !== 'fleet' && id !== '';
  void themeChanges.value;
  return (
    <header class="top">
      <div class="bar">
        <Where />
        <Search />
        <button class="icon" onClick={toggleTheme} aria-label={`Switch to ${theme() === 'dark' ? 'light' : 'dark'}`} title="Dark or light (t)">
          <svg viewBox="0 0 16 16" width="15" height="15" aria-hidden="true"><circle cx="8" cy="8" r="6.2" fill="none" stroke="currentColor" stroke-width="1.5" /><path d="M8 1.8a6.2 6.2 0 0 1 0 12.4z" fill="currentColor" /></svg>
        </button>
        <button class="icon keys" onClick={() => (helpOpen.value = true)} aria-label="Keys" title="Keys (?)">?</button>
        <Viewer />
      </div>
      {!inside && (aboutQueries(page) || page === 'alerts' || page === 'incidents') && <div class="bar second"><span /><RangeControl /></div>}
      {inside && <div class="bar second"><Tabs />{TIMED.has(page) && <RangeControl />}</div>}
    </header>
  );
}
