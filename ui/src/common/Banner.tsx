/** A line across the page while Risso itself does not answer, or after an error of the page's own. */
import { useEffect, useState } from 'preact/hooks';
import { silentSince } from '../api';
import { pageFault } from './fault';
import { age, clock } from './format';

// One failed request is no news; two seconds of silence are.
const PATIENCE_MS = 2000;

/** Says that the page may stand still. */
function Fault() {
  if (!pageFault.value) return null;
  return (
    <p class="banner" role="alert">
      This page met an error of its own, and may show what is old. <button onClick={() => location.reload()}>Reload it</button> If it comes again, report it: <code>{pageFault.value}</code>
    </p>
  );
}

/** Says since when the server is silent, and that what is shown gets old. */
export function Banner() {
  const since = silentSince.value;
  const [, tick] = useState(0);
  useEffect(() => {
    if (since === null) return;
    const t = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(t);
  }, [since]);
  if (since === null || Date.now() - since < PATIENCE_MS) return <Fault />;
  return (
    <>
      <Fault />
      <p class="banner" role="alert">
        Risso has not answered since {clock(since / 1000)}; what you see is {age((Date.now() - since) / 1000)} old. Is <code>risso serve</code> running?
      </p>
    </>
  );
}
