/** A line across the page while Risso itself does not answer. */
import { useEffect, useState } from 'preact/hooks';
import { silentSince } from '../api';
import { age, clock } from './format';

// One failed request is no news; two seconds of silence are.
const PATIENCE_MS = 2000;

/** Says since when the server is silent, and that what is shown gets old. */
export function Banner() {
  const since = silentSince.value;
  const [, tick] = useState(0);
  useEffect(() => {
    if (since === null) return;
    const t = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(t);
  }, [since]);
  if (since === null || Date.now() - since < PATIENCE_MS) return null;
  return (
    <p class="banner" role="alert">
      Risso has not answered since {clock(since / 1000)}; what you see is {age((Date.now() - since) / 1000)} old. Is <code>risso serve</code> running?
    </p>
  );
}
