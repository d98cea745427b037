import { expect, test, type APIRequestContext, type Page } from '@playwright/test';
import { chart, complaints, hasValue, instance, painted } from './helpers';

const HEAVY = process.env.RISSO_HEAVY;
const NO_STORE = process.env.RISSO_URL_NO_STORE;

interface Listed {
  classes: { id: string; fingerprint: string; calls: number; share: number }[];
}

async function listed(request: APIRequestContext, id: string): Promise<Listed> {
  return (await (await request.get(`/api/queries?instance=${encodeURIComponent(id)}&limit=100`)).json()) as Listed;
}

// Statements are counted by the minute: the first ones come when a whole minute has passed.
async function opened(page: Page, id: string, query = ''): Promise<void> {
  await page.goto(`${id ? `/server/${id}` : ''}/queries${query}`);
  await expect(rows(page).first()).toBeVisible({ timeout: 150_000 });
}

const rows = (page: Page) => page.locator('table.top-queries tbody tr');
const heavyRow = (page: Page) => rows(page).filter({ hasText: HEAVY! });

test.describe('with a history of statements', () => {
  test.skip(!HEAVY, 'RISSO_HEAVY is not set: no statement that is known to make the load');
  test.setTimeout(200_000);

  test('the list shows first what makes the load, in words, figures and a picture', async ({ page, request }) => {
    const errors = complaints(page);
    const id = await instance(request);
    await opened(page, id);
    const top = rows(page).first();
    await expect(top).toContainText(HEAVY!);
    // What the page says is what the API counts.
    const answer = (await listed(request, id)).classes;
    expect(answer[0].fingerprint).toContain(HEAVY!);
    expect(await top.getAttribute('data-class')).toBe(answer[0].id);
    await expect(page.locator('[data-sentence]')).toHaveText(/^(One|\d+) of \d+ classes makes? \d+\s%/);
    const share = Number(/[\d.]+/.exec(await top.locator('.share b').innerText())![0]);
    expect(Math.abs(share - answer[0].share * 100)).toBeLessThan(10);
    await expect(chart(page, 'query-load')).toBeVisible();
    await expect.poll(() => painted(chart(page, 'query-load'))).toBeGreaterThan(300);
    // An alias that looks like HTML stays text.
    await expect(top).toContainText('<img src=x');
    expect(await page.locator('main img:not(.drawing img)').count()).toBe(0);
    expect(errors).toEqual([]);
  });

  test('the whole fleet has the same list', async ({ page }) => {
    await opened(page, '');
    await expect(heavyRow(page)).toHaveCount(1);
    await expect(page.getByRole('heading', { name: 'Queries' })).toBeVisible();
    await page.getByRole('link', { name: 'Servers' }).click();
    await expect(page.locator('table.fleet')).toBeVisible();
  });

  test('search finds, and says when it does not', async ({ page, request }) => {
    await opened(page, await instance(request));
    const all = await rows(page).count();
    const field = page.getByLabel('Filter statements');
    await field.fill('risso_shop.PRODUCT');
    await expect(heavyRow(page)).toHaveCount(0);
    await expect(rows(page).first()).toContainText('product');
    expect(await rows(page).count()).toBeLessThan(all);
    await expect(page).toHaveURL(/q=risso_shop/);
    // The sentence stays that of all statements.
    await expect(page.locator('[data-sentence]')).toHaveText(/of \d+ classes/);
    await field.fill('no such statement');
    await expect(page.getByText('has “no such statement” in it')).toBeVisible();
    await page.getByRole('button', { name: 'Show all' }).click();
    await expect(heavyRow(page)).toHaveCount(1);
  });

  test('columns sort, largest first and then smallest, and the link says so', async ({ page, request }) => {
    const id = await instance(request);
    await opened(page, id);
    const calls = async (): Promise<number[]> => {
      const counts = new Map((await listed(request, id)).classes.map((c) => [c.id, c.calls]));
      return (await rows(page).evaluateAll((l) => l.map((r) => (r as HTMLElement).dataset.class!))).map((c) => counts.get(c) ?? 0);
    };
    await page.getByRole('button', { name: 'Calls/s' }).click();
    await expect(page).toHaveURL(/sort=-calls/);
    await expect(page.getByRole('columnheader', { name: 'Calls/s' })).toHaveAttribute('aria-sort', 'descending');
    await expect(rows(page).first()).not.toContainText(HEAVY!);
    const down = await calls();
    expect(down[0]).toBeGreaterThan(down[down.length - 1]);
    await page.getByRole('button', { name: 'Calls/s' }).click();
    await expect(page).toHaveURL(/sort=calls/);
    await expect.poll(async () => (await calls())[0]).toBeLessThan(down[0]);
    await page.getByRole('button', { name: 'Errors' }).click();
    await expect(rows(page).first()).toContainText('risso_page_wrong');
    await expect(rows(page).first().locator('.c-errors')).not.toHaveText('0');
  });

  test('the keyboard walks the list and opens a class', async ({ page, request }) => {
    await opened(page, await instance(request));
    await rows(page).first().locator('a').focus();
    await page.keyboard.press('ArrowDown');
    await expect(rows(page).nth(1).locator('a')).toBeFocused();
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    await expect(page).toHaveURL(/queries\/[0-9A-F]{32}/);
    await page.keyboard.press('g');
    await page.keyboard.press('q');
    await expect(rows(page).first()).toBeVisible();
  });

  test('a class has its statement, its names, its history and samples', async ({ page, request, context }) => {
    const errors = complaints(page);
    const id = await instance(request);
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await opened(page, id);
    const cls = (await heavyRow(page).getAttribute('data-class'))!;
    await heavyRow(page).locator('a').click();
    await expect(page).toHaveURL(new RegExp(`/server/${id}/queries/${cls}`));
    await expect(page.locator('.statement .sql')).toContainText(HEAVY!);
    await expect(page.locator('.names')).toContainText(cls);
    await expect(page.locator('.names')).toContainText(/DIGEST\s*[0-9a-f]{64}/);
    await expect(page.locator('[data-sentence]')).toHaveText(/It makes \d+\s% of the load: .* calls\/s at 2\d\d\sms/);
    for (const c of ['q-load', 'q-calls', 'q-latency']) await hasValue(chart(page, c));
    expect(await painted(chart(page, 'q-load'))).toBeGreaterThan(100);
    await expect(page.getByRole('table', { name: 'Server' })).toContainText(id);
    const sample = page.locator('.sample').first();
    await expect(sample).toContainText(/SELECT SLEEP\(0\.25\)/);
    await sample.getByRole('button', { name: /^Copy/ }).click();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/^SELECT SLEEP\(0\.25\) AS `<img src=x onerror=alert\(1\)>`, \d+ AS/);
    expect(await page.locator('main img:not(.drawing img)').count()).toBe(0);
    await page.goBack();
    await expect(heavyRow(page)).toBeVisible();
    expect(errors).toEqual([]);
  });

  test('a link shows what its sender saw', async ({ page, request, browser }) => {
    const id = await instance(request);
    const now = Math.floor(Date.now() / 60_000) * 60;
    const at = (t: number): string => new Date(t * 1000).toISOString().slice(0, 19) + 'Z';
    const link = `/server/${id}/queries?from=${at(now - 600)}&to=${at(now)}&sort=-calls&q=risso_shop`;
    await page.goto(link);
    await expect(rows(page).first()).toBeVisible({ timeout: 150_000 });
    const seen = await rows(page).evaluateAll((l) => l.map((r) => (r as HTMLElement).dataset.class));
    const other = await (await browser.newContext()).newPage();
    await other.goto(page.url());
    await expect(rows(other).first()).toBeVisible();
    expect(await rows(other).evaluateAll((l) => l.map((r) => (r as HTMLElement).dataset.class))).toEqual(seen);
    await expect(other.getByLabel('Filter statements')).toHaveValue('risso_shop');
    await rows(other).first().locator('a').click();
    await expect(other).toHaveURL(/from=.*&to=/);
    await other.context().close();
  });

  test('what changed against the time before is told in words', async ({ page, request }) => {
    const id = await instance(request);
    const { first } = (await (await request.get('/api/queries')).json()) as { first: number };
    // The first minute saw less than the next ones: two minutes are enough to compare.
    await expect.poll(() => Date.now() / 1000 - first, { timeout: 150_000, intervals: [2000] }).toBeGreaterThan(132);
    const at = (t: number): string => new Date(t * 1000).toISOString().slice(0, 19) + 'Z';
    await page.goto(`/server/${id}/queries?from=${at(first + 60)}&to=${at(first + 120)}&vs=before`);
    await expect(page.locator('.versus')).toHaveText(/^The load (grew|fell|is about)/);
    const told = page.locator('table.changes tbody tr, p:has-text("changed by more than a tenth")');
    await expect(told.first()).toBeVisible();
    await page.getByRole('link', { name: 'last week' }).click();
    await expect(page.getByText('No statements are kept from a week ago')).toBeVisible();
    await page.getByRole('button', { name: 'Show the heaviest instead' }).click();
    await expect(rows(page).first()).toBeVisible();
  });

  test('an unknown class, and a range without statements, say so', async ({ page, request }) => {
    const id = await instance(request);
    await page.goto(`/server/${id}/queries/${'A'.repeat(32)}`);
    await expect(page.getByText('No class of statements is called')).toBeVisible();
    await page.goto(`/server/${id}/queries/%3Cimg%20src=x%3E`);
    await expect(page.getByText('No class of statements is called <img src=x>')).toBeVisible();
    await page.goto(`/server/${id}/queries?from=2020-01-01T00:00:00Z&to=2020-01-01T01:00:00Z`);
    await expect(page.getByText('Nothing ran in this range').first()).toBeVisible({ timeout: 60_000 });
  });

  test('a phone shows the list and a class without scrolling sideways, and the first paint is quick', async ({ page, request }) => {
    const id = await instance(request);
    await page.setViewportSize({ width: 375, height: 780 });
    await opened(page, id);
    const cls = (await rows(page).first().getAttribute('data-class'))!;
    for (const path of ['/queries', `/server/${id}/queries`, `/server/${id}/queries?vs=before`, `/server/${id}/queries/${cls}`]) {
      await page.goto(path);
      await page.waitForTimeout(1500);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(over, path).toBeLessThanOrEqual(0);
      const ms = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime);
      expect(ms, path).toBeLessThan(1000);
    }
  });
});

test('without a store the page says why, and how to mend it', async ({ page, request }) => {
  test.skip(!NO_STORE, 'RISSO_URL_NO_STORE is not set: no Risso that keeps no statements');
  const errors = complaints(page);
  const said = (await (await request.get(`${NO_STORE}/api/queries`)).json()) as { available: boolean; why: string; remedy: string };
  expect(said.available).toBe(false);
  for (const path of ['/queries', '/server/watched/queries', `/queries/${'A'.repeat(32)}`]) {
    await page.goto(NO_STORE + path);
    await expect(page.getByText(said.why)).toBeVisible();
    await expect(page.locator('.remedy-block code').first()).toHaveText(said.remedy);
    await expect(page.getByRole('button', { name: `Copy: ${said.remedy}` })).toBeVisible();
  }
  expect(errors).toEqual([]);
});
