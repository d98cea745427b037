/** The plans that a class had, the newest first. */
import { useState } from 'preact/hooks';
import type { Flip, QueryPlan } from '../api';
import { serverNow } from '../api';
import { Copy, Moment } from '../common/parts';
import { instanceOf } from '../common/store';
import { Tag } from './parts';
import { Drawing } from './svg';

const SHORT = 10;

/** A plan's name: as much of its ID as people compare. */
export function planName(id: string): string {
  return id.slice(0, SHORT);
}

/** The server's own text, its JSON indented. */
export function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** A plan and all servers that were seen with it. */
interface Seen extends QueryPlan {
  instances: string[];
  current: boolean;
}

/** Joins what several servers have the same, newest first; current is a plan that was some server's last. */
export function joined(plans: QueryPlan[]): Seen[] {
  const out = new Map<string, Seen>();
  const last = new Map<string, string>();
  for (const p of [...plans].sort((a, b) => b.last - a.last)) {
    const place = JSON.stringify([p.instance, p.schema ?? '']);
    const current = !last.has(place);
    if (current) last.set(place, p.id);
    const key = JSON.stringify([p.schema ?? '', p.id]);
    const one = out.get(key);
    if (!one) {
      out.set(key, { ...p, instances: [p.instance], current });
      continue;
    }
    if (!one.instances.includes(p.instance)) one.instances.push(p.instance);
    one.current ||= current;
    one.first = Math.min(one.first, p.first);
    one.last = Math.max(one.last, p.last);
  }
  return [...out.values()];
}

const nameOfInstance = (id: string): string => instanceOf(id)?.name ?? id;

function Plan({ p, open: opened, many }: { p: Seen; open: boolean; many: boolean }) {
  const now = serverNow();
  const [raw, setRaw] = useState(false);
  const [svg, setSvg] = useState(false);
  const shown = p.tree && !raw ? p.tree : pretty(p.text);
  return (
    <details class="plan" open={opened} data-plan={p.id}>
      <summary>
        <code>{planName(p.id)}</code> {p.current && <Tag title="The plan that was seen last">in use</Tag>}
        <span class="quiet">
          {many && <>{p.instances.map(nameOfInstance).join(', ')}, </>}{p.schema && <>schema {p.schema}, </>}
          seen <Moment t={p.first} now={now} />{p.last !== p.first && <> to <Moment t={p.last} now={now} /></>}, by {p.origin}
        </span>
      </summary>
      {(p.words ?? []).length > 0 && <ul class="plan-words">{p.words!.map((w) => <li key={w}>{w}</li>)}</ul>}
      {svg && p.svg ? <Drawing svg={p.svg} /> : <pre class="tree" tabIndex={0} aria-label={`Plan ${planName(p.id)}`}>{shown}</pre>}
      <p class="plan-tools">
        <Copy text={shown} label="copy plan" />
        {p.svg && <button onClick={() => setSvg(!svg)} aria-pressed={svg}>{svg ? 'as text' : 'as drawing'}</button>}
        {p.tree && !svg && <button onClick={() => setRaw(!raw)} aria-pressed={raw}>{raw ? 'as tree' : 'as the server gave it'}</button>}
      </p>
    </details>
  );
}

/** All plans, and when the class went from one to another; notes say why some could not be taken. */
export function Plans({ plans, flips, notes }: { plans: QueryPlan[]; flips: Flip[]; notes: string[] }) {
  const now = serverNow();
  const list = joined(plans);
  const many = new Set(plans.map((p) => p.instance)).size > 1;
  const newest = [...flips].sort((a, b) => b.time - a.time);
  // Where a plan flipped, both plans are what one wants to see.
  const wanted = new Set(newest.slice(0, 1).flatMap((f) => [f.old, f.new]));
  return (
    <section aria-labelledby="plans">
      <h2 id="plans">Plans</h2>
      {list.length === 0 && <p class="quiet">No plan was taken yet: they are taken of the heaviest statements, a few at a time.{notes.map((n) => ` ${n}.`)}</p>}
      {newest.length > 0 && (
        <ul class="flips">
          {newest.slice(0, 10).map((f) => (
            <li key={`${f.instance}${f.time}${f.new}`}>⇄ <Moment t={f.time} now={now} /> on {nameOfInstance(f.instance)}: from <code>{planName(f.old)}</code> to <code>{planName(f.new)}</code></li>
          ))}
        </ul>
      )}
      <div class="plans">
        {list.map((p, i) => <Plan key={`${p.schema} ${p.id}`} p={p} many={many} open={wanted.size > 0 ? wanted.has(p.id) : i === 0} />)}
      </div>
    </section>
  );
}
