import { describe, expect, it } from 'vitest';
import { axisLabel, counted, exact, human, shortVersion, unitOf, unix, utc } from './format';

const plain = (s: string): string => s.replaceAll('\u00a0', ' ');

describe('human', () => {
  it.each([
    [0, '', '0'], [7, '', '7'], [999, '', '999'], [999.6, '', '1 k'], [1240, '/s', '1.24 k/s'], [12.34, '/s', '12.3/s'],
    [0.0123, '/s', '0.0123/s'], [1e6, '', '1 M'], [-1500, '', '-1.5 k'], [1234567890, '', '1.23 G'],
    [0.038, 's', '38 ms'], [0.0000421, 's', '42.1 µs'], [0.9999, 's', '1 s'], [0, 's', '0 s'], [3.2, 's', '3.2 s'], [7200, 's', '2 h'],
    [134217728, 'B', '128 MiB'], [1023.9, 'B', '1 KiB'], [1536, 'B/s', '1.5 KiB/s'], [512, 'B', '512 B'],
    [0.64, '%', '64 %'], [0.9995, '%', '99.95 %'], [0.0005, '%', '0.05 %'], [1, '%', '100 %'], [0, '%', '0 %'],
    [0.0016, 's/s', '1.6 ms/s'], [1500, 'ms', '1.5 s'], [20, 'µs/s', '20 µs/s'], [1.5, 'cores', '1.5 cores'],
  ] as const)('%s %s is %s', (v, unit, want) => expect(plain(human(v, unit))).toBe(want));

  it('says that there is no number', () => {
    expect(human(null)).toBe('–');
    expect(human(undefined, 's')).toBe('–');
    expect(human(NaN)).toBe('–');
    expect(human(Infinity, 'B')).toBe('–');
  });
});

describe('other forms', () => {
  it('counts', () => {
    expect(counted(0, 'row')).toBe('0 rows');
    expect(counted(1, 'row')).toBe('1 row');
    expect(counted(1234567, 'row')).toBe('1,234,567 rows');
    expect(counted(1, 'server was', 'servers were')).toBe('1 server was');
    expect(counted(2, 'server was', 'servers were')).toBe('2 servers were');
  });

  it('shortens for an axis', () => {
    expect(axisLabel(1500, '/s')).toBe('1.5k');
    expect(axisLabel(0, 's')).toBe('0');
    expect(axisLabel(0.02, 's')).toBe('20ms');
    expect(axisLabel(0.25, '%')).toBe('25%');
    expect(axisLabel(134217728, 'B')).toBe('128Mi');
    expect(axisLabel(3600, 's')).toBe('1h');
    expect(axisLabel(1500, 's/s')).toBe('1.5ks');
    expect(axisLabel(0, '%')).toBe('0%');
    expect(axisLabel(4, 'cores')).toBe('4');
  });

  it('keeps every digit for a hover', () => {
    expect(exact(1234567.891, '/s')).toBe('1,234,567.891 a second');
    expect(exact(null)).toBe('no data');
    expect(exact(12)).toBe('12');
  });

  it('reads RFC 3339 and numbers', () => {
    expect(unix('1970-01-01T00:01:00Z')).toBe(60);
    expect(unix(7)).toBe(7);
    expect(utc(0)).toBe('1970-01-01 00:00:00 UTC');
  });

  it('shortens versions', () => {
    expect(shortVersion('10.11.19-MariaDB-0+deb12u1')).toBe('10.11.19');
    expect(shortVersion('9.7.0')).toBe('9.7.0');
    expect(shortVersion('Debian GNU/Linux 12 (bookworm)')).toBe('Debian 12');
  });

  it('draws counters as rates', () => {
    expect(unitOf('', 'counter')).toBe('/s');
    expect(unitOf('bytes', 'counter')).toBe('B/s');
    expect(unitOf('bytes', 'gauge')).toBe('B');
    expect(unitOf('seconds', 'counter')).toBe('s/s');
    expect(unitOf('', 'gauge')).toBe('');
  });
});
