/** The frame around all pages: bar on top, banner, page, overlays. */
import { useEffect } from 'preact/hooks';
import { needLogin, silentSince } from './api';
import { Banner } from './common/Banner';
import { usePoll } from './common/poll';
import { view } from './common/router';
import { fleet, instanceOf, loadFleet } from './common/store';
import { startKeys } from './common/keys';
import { TopBar } from './common/TopBar';
import { Events } from './events/Events';
import { Fleet } from './fleet/Fleet';
import { Help } from './help/Help';
import { Login } from './login/Login';
import { Metrics } from './metrics/Metrics';
import { Server } from './server/Server';
import { Variables } from './variables/Variables';

function Page() {
  const { page, id } = view.value;
  // A key per instance: pages start afresh for another one instead of showing old numbers for a moment.
  switch (page) {
    case 'fleet': return <Fleet />;
    case 'server': return <Server key={id} />;
    case 'metrics': return <Metrics key={id} />;
    case 'variables': return <Variables key={id} />;
    case 'events': return <Events key={id} />;
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
  const name = instanceOf(id)?.name ?? id;
  useEffect(() => {
    document.title = name ? `${name} – Risso` : 'Risso';
  }, [name]);
  if (needLogin.value) return <Login />;
  return (
    <>
      <a class="skip" href="#content">Skip to the content</a>
      <TopBar />
      <Banner />
      <div id="content" tabIndex={-1}><Page /></div>
      <Help />
    </>
  );
}
