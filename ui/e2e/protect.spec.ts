import { expect, test } from '@playwright/test';
import { complaints } from './helpers';

// A month of backups and drills of four servers, as tests/page makes them.
test.describe('protection, a month of it', () => {
  test.skip(!process.env.RISSO_PROTECT_HISTORY, 'RISSO_PROTECT_HISTORY is not set: no history to look at');

  test('the list says loudly what is not fresh and never proven', async ({ page }) => {
    const errors = complaints(page);
    await page.goto('/');
    await page.getByRole('link', { name: 'Protect' }).click();
    await expect(page).toHaveURL(/\/protect/);
    await page.screenshot({ path: '/tmp/pg/list.png' });
    expect(errors).toEqual([]);
  });
  test('shots', async ({ page }) => {
    for (const id of ['shop', 'crm', 'blog', 'idle']) {
      await page.goto(`/server/${id}/protect`);
      await expect(page.locator('h1')).toHaveText(id);
      await page.waitForTimeout(500);
      await page.screenshot({ path: `/tmp/pg/${id}.png`, fullPage: true });
    }
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.goto('/server/shop/protect');
    await page.waitForTimeout(500);
    await page.screenshot({ path: '/tmp/pg/dark.png' });
    for (const w of [360, 390]) {
      await page.setViewportSize({ width: w, height: 800 });
      for (const [n, u] of [['list', '/protect'], ['shop', '/server/shop/protect'], ['fleet', '/'], ['charts', '/server/shop']]) {
        await page.goto(u);
        await page.waitForTimeout(600);
        await page.screenshot({ path: `/tmp/pg/phone-${n}-${w}.png` });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        console.log(n, w, wide);
      }
    }
  });
});
