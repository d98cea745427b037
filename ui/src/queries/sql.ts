/** Statements as text for people: short ones for lists and sentences, whole ones broken into lines. */

/** The class of all statements for which the server's table of digests had no room. */
export const NO_ROOM = '0'.repeat(32);

const LONGEST_IN_LIST = 400;
const HEAD = /^((?:execute|prepare|deallocate)\s+)?(select\s+(?:distinct\s+|sql_\w+\s+|straight_join\s+)*)/i;

/**
 * A statement in one line for a list: blanks joined, and a long list of columns left out, for the
 * tables after it say more.
 */
export function short(text: string): string {
  let s = text.slice(0, 4 * LONGEST_IN_LIST).replace(/\s+/g, ' ').replace(/\( | (?=\))/g, (b) => b.trim()).trim();
  const head = HEAD.exec(s);
  if (head) {
    const from = clauseAt(s, head[0].length, 'from');
    if (from < s.length && from - head[0].length > 48) s = `${s.slice(0, head[0].length)}… ${s.slice(from)}`;
  }
  const insert = /^((?:execute|prepare|deallocate)\s+)?((?:insert|replace)\b[^(]{0,200})\(/i.exec(s);
  if (insert) {
    const end = closing(s, insert[0].length - 1);
    if (end < s.length && end - insert[0].length > 48) s = `${insert[0]}…${s.slice(end)}`;
  }
  return s.length > LONGEST_IN_LIST ? `${s.slice(0, LONGEST_IN_LIST)}…` : s;
}

/** Where a word is outside of brackets and quotes; the end of the text if it is not. */
function clauseAt(s: string, from: number, word: string): number {
  for (const t of tokens(s.slice(from))) {
    if (t.depth === 0 && t.kind === 'word' && t.text.toLowerCase() === word) return from + t.at;
  }
  return s.length;
}

function closing(s: string, open: number): number {
  for (const t of tokens(s.slice(open))) if (t.text === ')' && t.depth === 0) return open + t.at;
  return s.length;
}

/** A statement's name in a sentence: UPDATE orders …, COMMIT. */
export function nameOf(fingerprint: string, verb: string, tables: string): string {
  const prepared = /^\s*(execute|prepare|deallocate)\s+(\w+)/i.exec(fingerprint);
  const table = tables.split(',')[0].trim();
  const word = prepared && prepared[1].toLowerCase() !== 'execute' ? `${prepared[1]} ${prepared[2]}` : (prepared?.[2] ?? verb);
  const plain = table.slice(table.lastIndexOf('.') + 1);
  if (plain) return `${word.toUpperCase()} ${plain} …`;
  const text = fingerprint.replace(/\s+/g, ' ').trim();
  return text.length > 40 ? `${text.slice(0, 39)}…` : text || verb;
}

interface Token {
  kind: 'word' | 'quote' | 'comment' | 'blank' | 'other';
  text: string;
  at: number;
  /** how many brackets are open around it */
  depth: number;
}

const TOKEN = /(\s+)|(\/\*[\s\S]*?(?:\*\/|$)|--\s[^\n]*|#[^\n]*)|('(?:[^'\\]|\\[\s\S]|'')*'?|"(?:[^"\\]|\\[\s\S]|"")*"?|`(?:[^`]|``)*`?)|([a-z_$\u0080-\uffff][\w$\u0080-\uffff]*)|([\s\S])/giy;

/** The tokens of a statement, as far as layout needs them: every character is in one of them. */
export function tokens(s: string): Token[] {
  const out: Token[] = [];
  let depth = 0;
  TOKEN.lastIndex = 0;
  for (let m = TOKEN.exec(s); m && m[0] !== ''; m = TOKEN.exec(s)) {
    const kind = m[1] !== undefined ? 'blank' : m[2] !== undefined ? 'comment' : m[3] !== undefined ? 'quote' : m[4] !== undefined ? 'word' : 'other';
    if (m[0] === ')') depth = Math.max(0, depth - 1);
    out.push({ kind, text: m[0], at: m.index, depth });
    if (m[0] === '(') depth++;
  }
  return out;
}

const CLAUSES = new Set(['select', 'from', 'where', 'group', 'order', 'having', 'limit', 'union', 'except', 'intersect', 'set', 'values', 'value', 'window', 'returning']);
const JOINS = new Set(['join', 'left', 'right', 'inner', 'cross', 'natural', 'straight_join']);
const KEYWORDS = new Set([...CLAUSES, ...JOINS, ...(
  'insert into update delete replace execute prepare deallocate call with recursive as on using by and or not in is null like between exists case when then else end ' +
  'distinct all asc desc outer offset for share mode lock duplicate key ignore start transaction commit rollback begin create alter drop truncate table index view'
).split(' ')]);

// Words that are functions before a bracket.
const FUNCTIONS = new Set(['left', 'right', 'replace', 'truncate', 'mode']);

/** A piece of a laid out statement. */
export interface Piece {
  text: string;
  keyword: boolean;
}

const LONGEST_LAID_OUT = 20_000;

/**
 * A statement broken into lines, a clause each, what is in brackets one step further in. Only
 * blanks change. One that is very long, or has several lines, stays as it is.
 */
export function layout(s: string): Piece[] {
  if (s.length > LONGEST_LAID_OUT || s.split('\n', 4).filter((l) => l.trim() !== '').length > 2) return [{ text: s, keyword: false }];
  const list = tokens(s.trim());
  const out: Piece[] = [];
  const put = (text: string, keyword = false): void => {
    const last = out[out.length - 1];
    if (last && last.keyword === keyword) last.text += text;
    else out.push({ text, keyword });
  };
  let before = '';
  list.forEach((t, i) => {
    const word = t.kind === 'word' ? t.text.toLowerCase() : '';
    if (t.kind === 'blank') {
      const next = list[i + 1];
      // The server's own text has blanks inside of all brackets.
      if (before === '(' || next?.text === ')') return;
      put(next && breaks(next, before, list, i + 1) ? `\n${'  '.repeat(next.depth)}` : ' ');
      return;
    }
    put(t.text, KEYWORDS.has(word) && !(FUNCTIONS.has(word) && list[i + 1]?.text === '('));
    before = word || t.text;
  });
  return out;
}

function breaks(t: Token, before: string, list: Token[], i: number): boolean {
  if (t.kind !== 'word' || before === '' || before === '(' || list[i - 2]?.text === '.') return false;
  const word = t.text.toLowerCase();
  if (JOINS.has(word)) return !JOINS.has(before) && before !== 'outer' && list[i + 1]?.text !== '(';
  if (word === 'group' || word === 'order') return (list[i + 2]?.text ?? '').toLowerCase() === 'by';
  if (word === 'on') return (list[i + 2]?.text ?? '').toLowerCase() === 'duplicate';
  if (word === 'from') return before !== 'delete';
  if (word === 'select') return before !== 'execute' && before !== 'prepare' && before !== 'deallocate';
  return CLAUSES.has(word);
}
