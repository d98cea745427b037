/** The heaviest classes, a row each. */
import type { Queries, QueryRow, Span } from '../api';
import type { Colour } from '../chart/palette';
import { counted, exact, human, stamp } from '../common/format';
import { Sparkline } from '../common/parts';
import { go, view } from '../common/router';
import type { Known } from './covered';
import { examinedPerRow, nextSort, sparkOf, type Column } from './list';
import { Share, Tag, linkOfClass } from './parts';
import { heavyWait, waitName } from './waits';
import { NO_ROOM, short } from './sql';
import { lengthOf } from './window';

const HEADS: [Column | '', string, string, string][] = [
  ['', 'Statement', '', ''], ['load', 'Share of load', 'c-share', 'Part of all seconds of execution'],
  ['load', 'Load', 'num', 'Seconds of execution per second'], ['calls', 'Calls/s', 'num', ''], ['avg', 'Average', 'num', 'Mean latency of a call'],
  ['p95', 'p95', 'num', 'Latency that 95 of 100 calls stay below, at most 4.7 % too high'],
  ['rows_examined_per_sent', 'Examined/row', 'num', 'Rows examined per row sent or changed: an index may help where this is large'],
  ['errors', 'Errors', 'num', 'Calls that ended with an error, in the range'], ['', 'Load over time', 'c-spark', ''],
];

interface Props {
  data: Queries;
  rows: QueryRow[];
  span: Span;
  tinted: Map<string, Colour>;
  column: Column;
  /** plan flips in the range by class, if the rows do not say */
  flips: Map<string, number>;
  fleetWide: boolean;
  waiting: boolean;
  points: Known;
}

function Head({ column }: { column: Column }) {
  const { sort } = view.value;
  const up = sort !== '' && !sort.startsWith('-');
  return (
    <thead>
      <tr>
        {HEADS.map(([c, name, cls, title], i) => {
          const sorted = c === column && !(c === 'load' && i === 1);
          return (
            <th key={name} scope="col" class={cls} title={title || undefined} aria-sort={sorted ? (up ? 'ascending' : 'descending') : undefined}>
              {c && name !== 'Share of load' ? <button class="bare" onClick={() => go({ sort: nextSort(sort, c) })}>{name}<i>{sorted ? (up ? ' ↑' : ' ↓') : ''}</i></button> : name}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

function Marks({ r, flips, fleetWide }: { r: QueryRow; flips: number; fleetWide: boolean }) {
  return (
    <>
      {r.new && <Tag title={`first seen ${stamp(r.first_seen)}`}>new</Tag>}
      {r.wait && heavyWait(r.wait, r.seconds) && <Tag title={`of its sampled time it waits mostly for this: ${human(r.wait.seconds, 's')} (sampled once a second)`}>waits: {waitName(r.wait.value)}</Tag>}
      {flips > 0 && <Tag title={`The plan changed ${flips === 1 ? 'once' : `${flips} times`} in this range`}>⇄ plan flipped</Tag>}
      {fleetWide && r.instances > 1 && <span class="quiet on">{r.instances} servers</span>}
    </>
  );
}

function Row({ r, flips, spark: points, span, colour, fleetWide }: { r: QueryRow; flips: number; spark: (number | null)[]; span: Span; colour?: Colour; fleetWide: boolean }) {
  const seconds = lengthOf(span);
  const open = (e: MouseEvent): void => {
    if ((e.target as Element).closest('a,button') || getSelection()?.toString()) return;
    go({ page: 'query', cls: r.id, q: '', sort: '', schema: '', more: false });
  };
  const spark = { start: 0, step: 0, avg: points, min: points.map((v) => (v === null ? null : 0)), max: points };
  const ratio = r.rows_sent + r.rows_affected > 0 ? human(examinedPerRow(r)) : r.rows_examined > 0 ? `${human(r.rows_examined)} : 0` : '–';
  return (
    <tr class="row" data-class={r.id} onClick={open}>
      <td class="c-statement">
        <div>
          <a href={linkOfClass(r.id)}>{r.id === NO_ROOM ? 'all statements that did not fit into the table of digests' : short(r.fingerprint) || r.id}</a>
          <Marks r={r} flips={flips} fleetWide={fleetWide} />
        </div>
      </td>
      <td class="c-share"><Share share={r.share} colour={colour} /></td>
      <td class="num c-load" title={exact(r.seconds / seconds, 's/s')}>{human(r.seconds / seconds, 's/s')}</td>
      <td class="num c-calls" title={counted(r.calls, 'call')}>{human(r.calls / seconds)}</td>
      <td class="num c-avg" title={exact(r.avg, 's')}>{human(r.avg, 's')}</td>
      <td class="num c-p95" title={r.latency ? `${exact(r.latency.p95, 's')}, of ${counted(r.latency.calls, 'call')}` : 'not known for this class'}>{human(r.latency?.p95, 's')}</td>
      <td class={`num c-ratio ${ratio === '–' ? 'none' : ''}`} title={`${exact(r.rows_examined)} examined, ${exact(r.rows_sent)} sent, ${exact(r.rows_affected)} changed`}>{ratio}</td>
      <td class={`num c-errors ${r.errors === 0 ? 'zero' : ''}`} title={exact(r.errors)}>{human(r.errors)}</td>
      <td class="c-spark">{points.length > 1 && <Sparkline spark={spark} height={22} />}</td>
    </tr>
  );
}

/** Up and down walk the rows; Enter opens the one with the focus. */
function walk(e: KeyboardEvent): void {
  if (e.key !== 'ArrowDown' && e.key !== 'ArrowUp') return;
  const links = [...(e.currentTarget as Element).querySelectorAll<HTMLElement>('.c-statement a')];
  const at = links.indexOf(document.activeElement as HTMLElement);
  const next = links[Math.max(0, Math.min(links.length - 1, at + (e.key === 'ArrowDown' ? 1 : -1)))];
  next?.focus();
  e.preventDefault();
}

/** The table. */
export function Table({ data, rows, span, tinted, column, flips, fleetWide, waiting, points }: Props) {
  return (
    <table class={`list top-queries ${waiting ? 'waiting' : ''}`} aria-label="Statements" aria-busy={waiting} onKeyDown={walk}>
      <Head column={column} />
      <tbody>{rows.map((r) => <Row key={r.id} r={r} flips={r.flips ?? flips.get(r.id) ?? 0} spark={sparkOf(r, data, points)} span={span} colour={tinted.get(r.id)} fleetWide={fleetWide} />)}</tbody>
    </table>
  );
}
