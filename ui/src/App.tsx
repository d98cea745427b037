/** The frame around all pages: bar on top, banner, page, overlays. */
import { lazy, Suspense } from 'preact/compat';
import { useEffect } from 'preact/hooks';
import { needLogin, silentSince } from './api';
import { Banner } from './common/Banner';
import { usePoll } from './common/poll';
import { view } from './common/router';
import { fleet, instanceOf, loadFleet } from './common/store';
import { startKeys } from './common/keys';
import { startTouch } from './common/touch';
import { TopBar, placeName } from './common/TopBar';
import { Events } from './events/Events';
import { Fleet } from './fleet/Fleet';
import { Help } from './help/Help';
import { Login } from './login/Login';
import { Metrics } from './metrics/Metrics';
import { Server } from './server/Server';
import { Variables } from './variables/Variables';

// Most people come for the charts: what statements need is loaded with the first page about them.
const Queries = lazy(() => import('./queries').then((m) => m.Queries, outdated));
const Query = lazy(() => import('./queries').then((m) => m.Query, outdated));

const Benchmarks = lazy(() => import('./benchmarks').then((m) => m.Benchmarks, outdated));
const Benchmark = lazy(() => import('./benchmarks').then((m) => m.Benchmark, outdated));

const Protect = lazy(() => import('./protect').then((m) => m.Protect, outdated));
const ProtectServer = lazy(() => import('./protect').then((m) => m.ProtectServer, outdated));

const Advice = lazy(() => import('./advice').then((m) => m.Advice, outdated));

const Topology = lazy(() => import('./topology').then((m) => m.Topology, outdated));

const Groups = lazy(() => import('./groups').then((m) => m.Groups, outdated));

const Film = lazy(() => import('./incidents').then((m) => m.Film, outdated));
const Incident = lazy(() => import('./incidents').then((m) => m.Incident, outdated));
const Incidents = lazy(() => import('./incidents').then((m) => m.Incidents, outdated));
const Sizes = lazy(() => import('./sizes').then((m) => m.Sizes, outdated));
const Alerts = lazy(() => import('./alerts').then((m) => m.Alerts, outdated));

// Risso was updated or went away since this page was loaded.
function outdated() {
  return () => <main><p class="sentence">This part of the page could not be loaded. <button onClick={() => location.reload()}>Reload the page</button></p></main>;
}

function Page() {
  const { page, id, cls, beside } = view.value;
  // A key per instance: pages start afresh for another one instead of showing old numbers for a moment.
  switch (page) {
    case 'fleet': return <Fleet />;
    case 'server': return <Server key={id} />;
    case 'metrics': return <Metrics key={id} />;
    case 'variables': return <Variables key={id} />;
    case 'events': return <Events key={id} />;
    case 'queries': return <Suspense fallback={<main />}><Queries key={id} /></Suspense>;
    case 'query': return <Suspense fallback={<main />}><Query key={`${id} ${cls}`} /></Suspense>;
    case 'benchmarks': return <Suspense fallback={<main />}><Benchmarks key={id} /></Suspense>;
    case 'benchmark': return <Suspense fallback={<main />}><Benchmark key={`${cls} ${beside}`} /></Suspense>;
    case 'protect': return <Suspense fallback={<main />}>{id ? <ProtectServer key={id} /> : <Protect />}</Suspense>;
    case 'sizes': return <Suspense fallback={<main />}><Sizes key={id} /></Suspense>;
    case 'advice': return <Suspense fallback={<main />}><Advice key={id} /></Suspense>;
    case 'topology': return <Suspense fallback={<main />}><Topology /></Suspense>;
    case 'groups': return <Suspense fallback={<main />}><Groups /></Suspense>;
    case 'alerts': return <Suspense fallback={<main />}><Alerts key={id} /></Suspense>;
    case 'incidents': return <Suspense fallback={<main />}><Incidents key={id} /></Suspense>;
    case 'incident': return <Suspense fallback={<main />}><Incident key={cls} /></Suspense>;
    case 'film': return <Suspense fallback={<main />}><Film key={id} /></Suspense>;
    default:
      return <main><p class="sentence">There is no such page.</p><p><a href="/">All instances</a></p></main>;
  }
}

/** The whole page. */
export function App() {
  const { page, id } = view.value;
  const often = page === 'fleet' || fleet.value === null || silentSince.value !== null;
  usePoll(loadFleet, often ? 1000 : 5000, [needLogin.value, often]);
  useEffect(startKeys, []);
  useEffect(startTouch, []);
  const name = (instanceOf(id)?.name ?? id) || placeName(page);
  useEffect(() => {
    document.title = name ? `${name} – Risso` : 'Risso';
  }, [name]);
  if (needLogin.value) return <Login />;
  return (
    <>
      <a class="skip" href="#content">Skip to content</a>
      <TopBar />
      <Banner />
      <div id="content" tabIndex={-1}><Page /></div>
      <Help />
    </>
  );
}
