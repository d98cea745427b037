import { describe, expect, it } from 'vitest';
import { layout, nameOf, short, tokens } from './sql';

const laid = (s: string): string => layout(s).map((p) => p.text).join('');

describe('short', () => {
  it.each([
    ['select 1', 'select 1'],
    ['select a, b from t where id = ?', 'select a, b from t where id = ?'],
    ['select customer, count( * ) c, sum( total), max( left( note, ?)) from shop.orders group by customer', 'select … from shop.orders group by customer'],
    ['select (select max(x) from inner_one), aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa from outer_one', 'select … from outer_one'],
    ["select ' from nowhere ', aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, b from t", 'select … from t'],
    ['insert into t (aaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbb, ccccccccccccccccc, d) values(?+)', 'insert into t (…) values(?+)'],
    ['select sleep(?) as aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, ? as b', 'select sleep(?) as aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, ? as b'],
    ['insert into t(a) values(?+)', 'insert into t(a) values(?+)'],
    ['  commit\n ', 'commit'],
    ['', ''],
  ])('%s', (long, want) => expect(short(long)).toBe(want));
  it('keeps long ones within bounds', () => {
    expect(short(`update t set ${'a = ?, '.repeat(5000)} b = ?`).length).toBeLessThan(450);
    expect(short('('.repeat(100_000)).length).toBeLessThan(450);
  });
});

describe('nameOf', () => {
  it.each([
    ['update shop.orders set a = ?', 'UPDATE', 'shop.orders', 'UPDATE orders …'],
    ['execute select stock from shop.product where id = ?', 'EXECUTE', 'shop.product', 'SELECT product …'],
    ['prepare select stock from shop.product', 'PREPARE', 'shop.product', 'PREPARE SELECT product …'],
    ['select * from a.b join c.d', 'SELECT', 'a.b,c.d', 'SELECT b …'],
    ['commit', 'COMMIT', '', 'commit'],
    ['', 'SELECT', '', 'SELECT'],
  ])('%s', (fingerprint, verb, tables, want) => expect(nameOf(fingerprint, verb, tables)).toBe(want));
});

describe('layout', () => {
  it('gives each clause a line, and what stands in brackets a step', () => {
    expect(laid('select a, b from t left join u on t.id = u.id where x in( select y from z where q = ?) group by a order by b limit ?')).toBe(
      'select a, b\nfrom t\nleft join u on t.id = u.id\nwhere x in(select y\n  from z\n  where q = ?)\ngroup by a\norder by b\nlimit ?',
    );
    expect(laid('insert into t values(?+) on duplicate key update a = ?')).toBe('insert into t\nvalues(?+)\non duplicate key update a = ?');
    expect(laid('delete from t where a = left( b, ?)')).toBe('delete from t\nwhere a = left(b, ?)');
  });
  it('changes nothing but blanks', () => {
    const hostile = ["select '\\'; from x', \"a \"\" from\", `from \`` from /* from\n", '-- from', '# where', "'", '`', '"', '/*', '((((', ')))', 'select\u0000 a from\u2028b', '<script>alert(1)</script> from t'];
    for (const h of hostile) expect(laid(h).replace(/\s/g, ''), h).toBe(h.replace(/\s/g, ''));
    for (const h of hostile) expect(tokens(h).map((t) => t.text).join('')).toBe(h);
  });
  it('leaves what stands in quotes alone', () => {
    expect(laid("select a from t where b = 'x  from  y' and `from` = ?")).toBe("select a\nfrom t\nwhere b = 'x  from  y' and `from` = ?");
  });
  it('knows a function from a clause', () => {
    expect(layout('select left(a, ?) from t').filter((p) => p.keyword).map((p) => p.text)).toEqual(['select', 'from']);
  });
  it('is quick on what is long', () => {
    const start = performance.now();
    for (const s of ["'".repeat(19_000), '('.repeat(19_000), 'a '.repeat(9000), '/*'.repeat(9000), '\\'.repeat(19_000), `'${'\\'.repeat(18_000)}`]) layout(s);
    expect(performance.now() - start).toBeLessThan(1500);
  });
});
