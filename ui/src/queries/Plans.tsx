/** The plans that a class had, and what changed when it switched. */
import { useState } from 'preact/hooks';
import { planImage, serverNow, type Flip, type PlanWord, type QueryPlan } from '../api';
import { human } from '../common/format';
import { Copy, Moment } from '../common/parts';
import { instanceOf } from '../common/store';
import { theme, themeChanges } from '../common/theme';
import { diffTrees, type TreeLine } from './diff';
import { Tag, linkOfClass } from './parts';
import { times } from './words';

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

const SEVERITY: Record<PlanWord['severity'], string> = { bad: 'bad', costly: 'costly', note: 'info' };

/** What a plan says, worst first; numbers are those of the drawing. */
function Words({ list }: { list: PlanWord[] }) {
  if (list.length === 0) return null;
  return (
    <ul class="plan-words" aria-label="What the plan says">
      {list.map((w) => <li key={`${w.node}${w.text}`} class={w.severity}><b title={`step ${w.node}: ${SEVERITY[w.severity] ?? ''}`}>{w.node}</b><span>{w.text}</span></li>)}
    </ul>
  );
}

/** The drawing, as an image: it opens large, with the words, in a separate tab. */
function Drawing({ cls, p }: { cls: string; p: QueryPlan }) {
  const [failed, setFailed] = useState(false);
  const dark = (themeChanges.value, theme());
  const words = (p.words ?? []).map((w) => w.text).join(' ');
  if (failed) return <p class="quiet">The drawing cannot be shown; the tree has the same content.</p>;
  return (
    <a class="drawing" href={planImage(cls, p.id, p.instance, dark, false)} target="_blank" rel="noopener" title="Open in a new tab">
      <img src={planImage(cls, p.id, p.instance, dark, true)} alt={`Plan ${planName(p.id)}. ${words || (p.tree ?? '')}`} loading="lazy" onError={() => setFailed(true)} />
    </a>
  );
}

/** A tree of text; marked lines are those that the other plan has not. */
function Tree({ lines, label }: { lines: TreeLine[]; label: string }) {
  return <pre class="tree" tabIndex={0} aria-label={label}>{lines.map((l, i) => <span key={i} class={l.differs ? 'differs' : undefined}>{l.text}{'\n'}</span>)}</pre>;
}

const unmarked = (text: string): TreeLine[] => text.split('\n').map((t) => ({ text: t, differs: false }));

/** A plan in all its forms; lines are its tree, perhaps marked. */
function Forms({ cls, p, lines, tree: first }: { cls: string; p: QueryPlan; lines: TreeLine[] | null; tree?: boolean }) {
  const [tree, setTree] = useState(first ?? false);
  const text = lines ? lines.map((l) => l.text).join('\n') : pretty(p.text);
  return (
    <>
      <Words list={p.words ?? []} />
      {lines === null ? null : tree ? <Tree lines={lines} label={`Plan ${planName(p.id)} as a tree`} /> : <Drawing cls={cls} p={p} />}
      <p class="plan-tools">
        {lines && <button onClick={() => setTree(!tree)} aria-pressed={tree}>{tree ? 'as drawing' : 'as tree'}</button>}
        <Copy text={text} label="copy as text" />
      </p>
      <details class="raw" open={lines === null}>
        <summary class="quiet">as returned by the server</summary>
        <pre class="tree" tabIndex={0} aria-label={`Plan ${planName(p.id)} as returned by the server`}>{pretty(p.text)}</pre>
      </details>
    </>
  );
}

function Seen({ p, many }: { p: Seen; many: boolean }) {
  const now = serverNow();
  return (
    <>
      <code>{planName(p.id)}</code> {p.current && <Tag title="The plan seen most recently">in use</Tag>}
      <span class="quiet">
        {many && <>{p.instances.map(nameOfInstance).join(', ')}, </>}{p.schema && <>schema {p.schema}, </>}
        seen <Moment t={p.first} now={now} />{p.last !== p.first && <> to <Moment t={p.last} now={now} /></>}, {p.origin === 'running' ? 'taken while it ran' : `by ${p.origin}`}
      </span>
    </>
  );
}

function Plan({ cls, p, open, many }: { cls: string; p: Seen; open: boolean; many: boolean }) {
  const [shown, setShown] = useState(open); // a closed plan's drawing is not asked for
  return (
    <details class="plan" open={open} data-plan={p.id} onToggle={(e) => e.currentTarget.open && setShown(true)}>
      <summary><Seen p={p} many={many} /></summary>
      {shown && <Forms cls={cls} p={p} lines={p.tree ? unmarked(p.tree) : null} />}
    </details>
  );
}

/** What a flip did to the time of a call. */
function effect([before, after]: [number | null, number | null]): string {
  if (before === null || after === null || before <= 0 || after <= 0) return '';
  const took = `${human(before, 's')} a call before, ${human(after, 's')} after`;
  const factor = after / before;
  if (factor < 1.1 && factor > 1 / 1.1) return `about as fast: ${took}`;
  return factor > 1 ? `${times(factor)} × slower: ${took}` : `${times(1 / factor)} × faster: ${took}`;
}

/** Two plans side by side, with the lines marked that only one of them has. */
function Sides({ cls, before, after }: { cls: string; before: Seen; after: Seen }) {
  const both = before.tree && after.tree ? diffTrees(before.tree, after.tree) : null;
  const sides: [string, Seen, TreeLine[] | null][] = [['before', before, both?.[0] ?? null], ['after', after, both?.[1] ?? null]];
  return (
    <>
      <div class="sides" data-flip-sides>
        {sides.map(([word, p, lines]) => (
          <div key={word}>
            <h3>{word}: <code>{planName(p.id)}</code></h3>
            {lines && <ul class="only" aria-label={`Steps only ${word}`}>{lines.filter((l) => l.differs).map((l) => stepText(l.text)).filter((t) => !/^where\b/.test(t)).map((t, i) => <li key={i}><code>{t}</code></li>)}</ul>}
            <Forms cls={cls} p={p} lines={lines ?? (p.tree ? unmarked(p.tree) : null)} />
          </div>
        ))}
      </div>
    </>
  );
}

// Without its figures and the lines of the tree.
function stepText(line: string): string {
  return line.replace(/^[^└├│]*[└├│─\s]+/, '').trim() || line.trim();
}

interface Props {
  cls: string;
  plans: QueryPlan[];
  flips: Flip[];
  /** why some could not be taken */
  notes: string[];
  /** what a call took before and after a moment; null where the figures are of several places together */
  around: ((at: number) => [number | null, number | null]) | null;
}

/** All plans, and when the class went from one to another. */
export function Plans({ cls, plans, flips, notes, around }: Props) {
  const now = serverNow();
  const [chosen, setChosen] = useState('');
  const list = joined(plans);
  const many = new Set(plans.map((p) => p.instance)).size > 1;
  const newest = [...flips].sort((a, b) => b.time - a.time);
  const keyOf = (f: Flip): string => `${f.instance} ${f.schema ?? ''} ${f.time} ${f.new}`;
  const flip = newest.find((f) => keyOf(f) === chosen) ?? newest[0];
  const side = (id: string): Seen | undefined => list.find((p) => p.id === id && (p.schema ?? '') === (flip?.schema ?? '')) ?? list.find((p) => p.id === id);
  const [before, after] = flip ? [side(flip.old), side(flip.new)] : [undefined, undefined];
  return (
    <section aria-labelledby="plans">
      <h2 id="plans">Plans</h2>
      {list.length === 0 && <p class="quiet">No plans yet{notes.length > 0 ? ':' : ': they are taken for the heaviest statements, a few at a time.'}{notes.map((n) => ` ${n}.`)}</p>}
      {newest.length > 0 && (
        <ul class="flips">
          {newest.slice(0, 10).map((f) => {
            const did = around ? effect(around(f.time)) : '';
            return (
              <li key={keyOf(f)} aria-current={f === flip && newest.length > 1 ? 'true' : undefined}>
                ⇄ <Moment t={f.time} now={now} /> on {around ? nameOfInstance(f.instance) : <a class="link" href={linkOfClass(cls, { id: f.instance })}>{nameOfInstance(f.instance)}</a>}: from <code>{planName(f.old)}</code> to <code>{planName(f.new)}</code>
                {did && <b> {did}</b>}
                {f !== flip && <> <button class="bare link" onClick={() => setChosen(keyOf(f))}>compare</button></>}
              </li>
            );
          })}
        </ul>
      )}
      {before && after && <Sides key={keyOf(flip!)} cls={cls} before={before} after={after} />}
      <div class="plans">
        {list.map((p, i) => <Plan key={`${p.schema} ${p.id}`} cls={cls} p={p} many={many} open={!(before && after) && i === 0} />)}
      </div>
    </section>
  );
}
