import { expect, test } from '@playwright/test';
import { complaints } from './helpers';

// A folder with pages of risso bench report: one.html, several.html, sweep.html.
const DIR = process.env.RISSO_REPORTS;

test.describe('the page of risso bench report', () => {
  test.skip(!DIR, 'RISSO_REPORTS is not set: no report to look at');

  for (const [name, charts] of [['one', 4], ['several', 4], ['sweep', 3]] as const) {
    test(`${name}: stands alone, in light, dark and on paper`, async ({ page }) => {
      const errors = complaints(page);
      const asked: string[] = [];
      page.on('request', (r) => asked.push(r.url()));
      await page.goto(`file://${DIR}/${name}.html`);
      await expect(page.locator('h1')).toContainText('point_select on');
      expect(await page.locator('figure svg').count()).toBeGreaterThanOrEqual(charts);
      for (const scheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme: scheme });
        const [ink, ground] = await page.evaluate(() => {
          const s = getComputedStyle(document.body);
          const light = (c: string): number => /\d+/g[Symbol.match](c)!.slice(0, 3).reduce((a, b) => a + Number(b), 0);
          return [light(s.color), light(getComputedStyle(document.documentElement).backgroundColor)];
        });
        expect(Math.abs(ink - ground)).toBeGreaterThan(450);
      }
      // Nothing sticks out of its chart, and the page is not wider than its window.
      const outside = await page.evaluate(() => [...document.querySelectorAll('figure svg')].filter((svg) => {
        const box = svg.getBoundingClientRect();
        return [...svg.querySelectorAll('text, path, rect, circle')].some((e) => {
          const b = e.getBoundingClientRect();
          return b.left < box.left - 6 || b.right > box.right + 6 || b.top < box.top - 6 || b.bottom > box.bottom + 6;
        });
      }).map((svg) => svg.getAttribute('aria-label')));
      expect(outside).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
      expect((await page.pdf()).length).toBeGreaterThan(10_000);
      expect(asked.filter((u) => !u.startsWith('file:'))).toEqual([]);
      expect(errors).toEqual([]);
    });
  }
});
