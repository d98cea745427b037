/** What a class waits for, who blocks it: sampled once a second. */
import type { Blocker, Part } from '../api';
import { exact, human } from '../common/format';
import { linkOfClass } from './parts';
import { short } from './sql';
import { waitColour, waitName } from './waits';

/** One bar of all sampled seconds, a part for each wait class, with its figures below. */
export function Waits({ list, note }: { list: Part[]; note: string }) {
  const parts = [...list].filter((p) => p.seconds > 0).sort((a, b) => b.seconds - a.seconds);
  if (parts.length === 0) return null;
  const all = parts.reduce((s, p) => s + p.seconds, 0);
  const words = parts.map((p) => `${waitName(p.value)} ${human(p.seconds / all, '%')}`).join(', ');
  return (
    <section class="waits" aria-labelledby="waits">
      <h2 id="waits">What it waits for</h2>
      <div class="wait-bar" role="img" aria-label={words}>
        {parts.map((p) => <i key={p.value} class={`x-${waitColour(p.value)}`} style={{ flexGrow: p.seconds / all }} title={`${waitName(p.value)}: ${human(p.seconds / all, '%')}, ${human(p.seconds, 's')}`} />)}
      </div>
      <table class="list wait-table" aria-label="What it waits for">
        <thead><tr><th scope="col">Waits for</th><th scope="col" class="num">Share</th><th scope="col" class="num">Time</th><th scope="col" class="num">Samples</th></tr></thead>
        <tbody>
          {parts.map((p) => (
            <tr key={p.value} data-wait={p.value}>
              <td><i class={`dot x-${waitColour(p.value)}`} /> {waitName(p.value)}{p.value === 'running' && <span class="quiet"> (on a CPU, or nothing that the server shows)</span>}</td>
              <td class="num">{human(p.seconds / all, '%')}</td>
              <td class="num" title={exact(p.seconds, 's')}>{human(p.seconds, 's')}</td>
              <td class="num">{human(p.calls)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="quiet small">{note || 'Sampled once a second: what is shorter is seen by chance, in proportion.'}</p>
    </section>
  );
}

/** The classes of those who held what this class waited for. */
export function Blockers({ list }: { list: Blocker[] }) {
  if (list.length === 0) return null;
  return (
    <section aria-labelledby="blockers">
      <h2 id="blockers">Who blocks it</h2>
      <table class="list blockers" aria-label="Who blocks it">
        <thead><tr><th scope="col">Statement of the blocker, or its last</th><th scope="col">Holds</th><th scope="col" class="num">Time</th></tr></thead>
        <tbody>
          {list.map((b) => (
            <tr key={b.id + b.wait}>
              <td class="c-statement">{b.id ? <a href={linkOfClass(b.id)}>{short(b.fingerprint) || b.id}</a> : <span class="quiet">not known: idle in a transaction since before it was seen</span>}</td>
              <td>{waitName(b.wait)}</td>
              <td class="num" title={exact(b.seconds, 's')}>{human(b.seconds, 's')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
