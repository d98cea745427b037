import { describe, expect, it } from 'vitest';
import { HOME, formatView, parseView, type View } from './view';

const round = (v: View): View => {
  const url = new URL(formatView(v), 'http://x');
  return parseView(url.pathname, url.search);
};

describe('view', () => {
  it('is the fleet for an empty path', () => {
    expect(parseView('/', '')).toEqual(HOME);
    expect(formatView(HOME)).toBe('/');
  });

  it('survives a trip through a link', () => {
    const full: View = {
      page: 'server', id: 'db 2/ä', range: { live: false, from: 1795250000, to: 1795250900 }, at: 1795250123, sort: '-qps', q: 'row lock',
      pins: ['mysql_global_status_commands_total{command="select"}', 'node_load1'], cls: '', beside: '', schema: '', vs: '', more: false, state: '', group: '', flavour: '', kind: '', open: [],
    };
    expect(round(full)).toEqual(full);
    for (const page of ['metrics', 'variables', 'events'] as const) expect(round({ ...full, page })).toEqual({ ...full, page });
    expect(round({ ...HOME, page: 'server', id: 'a', range: { live: true, span: 3600 } }).range).toEqual({ live: true, span: 3600 });
  });

  it('keeps what the pages of statements show, for one server and for all', () => {
    const list: View = { ...HOME, page: 'queries', range: { live: true, span: 3600 }, sort: '-calls', q: 'from `a b`', schema: 'shop/ü', vs: 'week', more: true };
    for (const id of ['', 'db 2/ä']) {
      expect(round({ ...list, id })).toEqual({ ...list, id });
      const one: View = { ...HOME, page: 'query', id, cls: 'F06A3D92C3F1B44C1B1E8B8A5D0F5A11', range: { live: false, from: 1795250000, to: 1795250900 }, at: 1795250123 };
      expect(round(one)).toEqual(one);
    }
    expect(formatView({ ...list, q: '', sort: '', schema: '', vs: '', more: false })).toBe('/queries');
    expect(parseView('/queries', '').range).toEqual({ live: true, span: 3600 });
    expect(parseView('/queries', '?vs=never&more=2')).toMatchObject({ vs: '', more: false });
    expect(parseView('/queries/A/B', '').page).toBe('missing');
    expect(parseView('/server/a/queries/B', '')).toMatchObject({ page: 'query', id: 'a', cls: 'B' });
  });

  it('has times that people can read', () => {
    expect(formatView({ ...HOME, page: 'server', id: 'db1', range: { live: false, from: 0, to: 60 } })).toBe(
      '/server/db1?from=1970-01-01T00:00:00Z&to=1970-01-01T00:01:00Z',
    );
  });

  it('takes unix seconds as well', () => {
    expect(parseView('/server/db1', '?from=1795250000&to=1795250900').range).toEqual({ live: false, from: 1795250000, to: 1795250900 });
  });

  it('falls back to the default for nonsense', () => {
    const v = parseView('/server/db1', '?from=x&to=y&last=never&at=soon');
    expect(v.range).toEqual({ live: true, span: 300 });
    expect(v.at).toBeNull();
    expect(parseView('/server/%E0%A4%A', '').id).toBe('%E0%A4%A');
  });

  it('knows what it does not know', () => {
    expect(parseView('/servers', '').page).toBe('missing');
    expect(parseView('/server/a/b/c', '').page).toBe('missing');
    expect(parseView('/server/a/nope', '').page).toBe('missing');
  });

  it('drops pins that are twice or empty', () => {
    expect(parseView('/server/a', '?pin=x&pin=&pin=x&pin=y').pins).toEqual(['x', 'y']);
  });
});
