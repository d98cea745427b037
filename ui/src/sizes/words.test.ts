import { describe, expect, it } from 'vitest';
import { bytes } from '../common/format';
import { known, share } from './words';

describe('sizes', () => {
  it('tells what is not known from nothing', () => {
    expect(known(null, bytes)).toBe('–');
    expect(known(0, bytes)).toBe('0\u00a0B');
  });
  it('draws shares of the largest', () => {
    expect(share(1, 3)).toBe('33.3%');
    expect(share(3, 3)).toBe('100%');
    expect(share(0, 0)).toBe('0');
  });
});
