import { expect, test, type Locator } from '@playwright/test';
import { openToAll } from './axe';
import { chart, complaints } from './helpers';

// An hour of statements that ended at RISSO_HISTORY, with ten minutes that were not read from 30 minutes before its end.
const END = Number(process.env.RISSO_HISTORY);
const SLOW = process.env.RISSO_SLOW!;
const FLIPPED = process.env.RISSO_FLIPPED!;

const iso = (t: number): string => new Date(t * 1000).toISOString().slice(0, 19) + 'Z';
const range = `from=${iso(END - 3600)}&to=${iso(END)}`;

/** Fewer pixels than a hatch has: the edge of a line may have its colour by chance. */
const NONE = 10;

/** Pixels of the hatch's colour in a part of a chart, from and to as parts of its time. */
function hatched(c: Locator, from: number, to: number): Promise<number> {
  return c.locator('canvas').evaluate((el, [a, b]) => {
    const canvas = el as HTMLCanvasElement;
    const hex = getComputedStyle(document.documentElement).getPropertyValue('--hatch').trim();
    const [r, g, bl] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
    // The plot is the canvas without the scale on its left.
    const s = devicePixelRatio;
    const [left, right] = [46 * s, canvas.width - 8 * s];
    const px = canvas.getContext('2d')!.getImageData(left + (right - left) * a, 0, (right - left) * (b - a), canvas.height).data;
    let n = 0;
    for (let i = 0; i < px.length; i += 4) if (px[i + 3] > 60 && Math.abs(px[i] - r) + Math.abs(px[i + 1] - g) + Math.abs(px[i + 2] - bl) < 12) n++;
    return n;
  }, [from, to] as const);
}

test.describe('an hour of statements', () => {
  test.skip(!END, 'RISSO_HISTORY is not set: no history with a hole and a flip');

  test('what nobody read is hatched, and told from what did not run', async ({ page }) => {
    const errors = complaints(page);
    for (const [path, id] of [['queries', 'query-load'], [`queries/${FLIPPED}`, 'q-load']]) {
      await page.goto(`/server/watched/${path}?${range}`);
      await expect(page.locator('.holes')).toHaveAttribute('data-holes', '1');
      await expect(page.locator('.holes')).toContainText(/not read from .* to .*: Risso did not run/);
      await expect.poll(() => hatched(chart(page, id), 0.52, 0.65)).toBeGreaterThan(100);
      expect(await hatched(chart(page, id), 0.1, 0.45)).toBeLessThan(NONE);
      expect(await hatched(chart(page, id), 0.7, 0.95)).toBeLessThan(NONE);
      const plot = (await chart(page, id).locator('.u-over').boundingBox())!;
      await page.mouse.move(plot.x + plot.width * 0.58, plot.y + plot.height / 2);
      await expect(chart(page, id).locator('.tip')).toContainText('not read');
      await page.mouse.move(plot.x + plot.width * 0.3, plot.y + plot.height / 2);
      await expect(chart(page, id).locator('.tip')).not.toContainText('not read');
    }
    // A class that ran once has a line at nothing for the rest of the hour, and no line in the hole.
    await page.goto(`/server/watched/queries/${SLOW}?${range}`);
    await expect.poll(() => hatched(chart(page, 'q-calls'), 0.52, 0.65)).toBeGreaterThan(100);
    expect(await hatched(chart(page, 'q-calls'), 0.1, 0.45)).toBeLessThan(NONE);
    expect(errors).toEqual([]);
  });

  test('nothing keeps people out of the list and of a class', async ({ page }) => {
    for (const path of ['queries', `queries/${FLIPPED}`]) {
      await page.goto(`/server/watched/${path}?${range}`);
      await expect(page.locator('.holes')).toBeVisible();
      await openToAll(page);
    }
  });

  test('a list by p95 is of all classes, those without one last', async ({ page }) => {
    await page.goto(`/server/watched/queries?${range}`);
    const rows = page.locator('table.top-queries tbody tr');
    await expect(rows).toHaveCount(50);
    await expect(page.locator(`tr[data-class="${SLOW}"]`)).toHaveCount(0);
    await page.getByRole('button', { name: 'p95' }).click();
    await expect(page).toHaveURL(/sort=-p95/);
    await expect(rows.first()).toHaveAttribute('data-class', SLOW);
    await expect(rows.first().locator('.c-p95')).toHaveText(/^1\s*s$/);
    await expect(rows.nth(1)).toHaveAttribute('data-class', FLIPPED);
    await expect(rows.nth(2).locator('.c-p95')).toHaveText('–');
    await expect(rows).toHaveCount(50);
  });

  test('a flip shows both plans as drawings and as trees, with what differs marked', async ({ page, request }) => {
    const errors = complaints(page);
    await page.goto(`/server/watched/queries/${FLIPPED}?${range}`);
    await expect(page.locator('.flips')).toContainText(/from byindex000 to byscan0000\s+5 × slower: 10\sms a call before, 50\sms after/);
    const sides = page.locator('[data-flip-sides] > div');
    await expect(sides).toHaveCount(2);
    for (const [i, words] of [[0, 'customer'], [1, '190,000']] as const) {
      const img = sides.nth(i).locator('img');
      await img.scrollIntoViewIfNeeded();
      await expect.poll(() => img.evaluate((el) => (el as HTMLImageElement).naturalWidth)).toBeGreaterThan(100);
      expect(await img.getAttribute('alt')).toContain(words);
      await expect(sides.nth(i).locator('.raw')).not.toHaveAttribute('open', '');
    }
    await expect(sides.nth(0).locator('.only')).toContainText('orders ref customer');
    await expect(sides.nth(1).locator('.only')).toContainText('orders');
    const large = await request.get((await sides.nth(1).locator('a.drawing').getAttribute('href'))!);
    expect(large.headers()['content-type']).toBe('image/svg+xml');
    expect(large.headers()['content-security-policy']).toContain('sandbox');
    expect(await large.text()).toContain('190,000');
    await sides.nth(1).getByRole('button', { name: 'as tree' }).click();
    await expect(sides.nth(1).locator('.tree .differs')).toHaveCount(1);
    await sides.nth(0).getByText('as returned by the server').click();
    await expect(sides.nth(0).locator('.raw pre')).toContainText('"access_type": "ref"');
    // The drawing follows the page's theme.
    await expect(sides.nth(0).locator('img')).toHaveAttribute('src', /theme=light/);
    await page.getByRole('button', { name: /theme|dark|light/i }).first().click();
    await expect(sides.nth(0).locator('img')).toHaveAttribute('src', /theme=dark/);
    expect(errors).toEqual([]);
  });

  test('waits are one bar with its figures, and say that they are sampled', async ({ page }) => {
    // Its server is away, so nothing can be sampled: the answer is the server's, with waits put in.
    await page.route(/\/api\/query\?/, async (route) => {
      const answer = (await (await route.fetch()).json()) as Record<string, unknown>;
      await route.fulfill({ json: {
        ...answer, waits: [{ value: 'row_lock', calls: 75, seconds: 75 }, { value: 'running', calls: 25, seconds: 25 }],
        blocked_by: [{ id: SLOW, fingerprint: 'select a from t62', wait: 'row_lock', calls: 75, seconds: 75 }, { id: '', fingerprint: '', wait: 'row_lock', calls: 1, seconds: 1 }],
      } });
    });
    await page.goto(`/server/watched/queries/${FLIPPED}?${range}`);
    const bar = page.locator('.wait-bar');
    await expect(bar).toHaveAttribute('aria-label', /row lock 75\s%, running 25\s%/);
    const widths = await bar.locator('i').evaluateAll((l) => l.map((e) => e.getBoundingClientRect().width));
    expect(widths[0] / widths[1]).toBeGreaterThan(2.8);
    expect(widths[0] / widths[1]).toBeLessThan(3.2);
    await expect(page.locator('[data-wait="row_lock"]')).toContainText(/75\s%/);
    await expect(page.locator('[data-sentence]')).toHaveText(/75\s% of its sampled time it waits for: row lock\.$/);
    await expect(page.locator('.waits')).toContainText(/sampled.*once a second/i);
    await expect(page.getByRole('table', { name: 'Who blocks it' }).getByRole('link')).toHaveAttribute('href', new RegExp(`/queries/${SLOW}`));
    await expect(page.getByRole('table', { name: 'Who blocks it' })).toContainText('not known');
    await page.unrouteAll({ behavior: 'ignoreErrors' }); // the page asks again each minute, maybe just now
  });
});
