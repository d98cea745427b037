import { expect, test, type APIRequestContext } from '@playwright/test';
import { openToAll } from './axe';
import { complaints } from './helpers';

// Two servers, shop-1 and web-1, with the same four faults each.
test.skip(!process.env.RISSO_ADVISED, 'set RISSO_ADVISED: two servers with planted faults');

type Answer = { findings: { id: string; object: string; on: { name: string }[] }[]; counts: { decided: number }; servers: { looked?: string }[] };
async function advice(request: APIRequestContext, query = ''): Promise<Answer> {
  return (await (await request.get(`/api/advice${query}`)).json()) as Answer;
}

test('servers are looked at when somebody asks, and what is the same on both is told once', async ({ page, request }) => {
  const errors = complaints(page);
  await page.goto('/');
  await expect(page.locator('[data-instance]').first()).toBeVisible();
  await page.keyboard.press('g');
  await page.keyboard.press('d');
  await expect(page).toHaveURL(/\/advice$/);
  await expect(page.locator('h1')).toHaveText('Advice');
  await expect(page.locator('.sentence')).toHaveText('No look has been finished yet, so nothing is known.');
  await page.getByRole('button', { name: 'Look now: shop-1' }).click();
  await expect(page.locator('[data-looked="shop-1"]')).toContainText(/looked at .*, took .*, 4 tables; again when/, { timeout: 60_000 });
  await expect(page.locator('.sentence')).toContainText('Of 1 of 2 servers nothing is known yet.');
  await page.getByRole('button', { name: 'Look now: web-1' }).click();
  const row = page.locator('[data-advice="schema.autoinc shop.tickets.id"]');
  await expect(row).toContainText('all 2 servers', { timeout: 60_000 });
  expect((await advice(request)).findings.filter((f) => f.object === 'shop.tickets.id')).toHaveLength(1);
  await row.locator('summary').first().press('Enter');
  await expect(row).toContainText('ALTER TABLE `shop`.`tickets` MODIFY COLUMN `id` bigint unsigned');
  await expect(row.getByRole('button', { name: /^Copy: ALTER TABLE/ })).toHaveCount(2);
  await expect(row).toContainText(/shop-1 since \d\d:\d\d/);
  await expect(page).toHaveURL(/open=schema.autoinc/);
  await page.reload();
  await expect(row).toContainText('INSERTs fail');
  expect(errors).toEqual([]);
});

test('a finding is accepted with a reason, folded away, and is advice again', async ({ page, request }) => {
  await page.goto('/advice');
  const row = page.locator('section .advised [data-advice="schema.no_pk shop.log"]');
  await row.locator('summary').click();
  await row.getByRole('button', { name: 'Accept…' }).click();
  const form = row.locator('form');
  await expect(form.getByRole('button', { name: 'Accept' })).toBeDisabled();
  await form.getByLabel('on').selectOption('web-1');
  await form.getByLabel('because').fill('a queue, <b>not</b> a table');
  await form.getByRole('button', { name: 'Accept' }).click();
  await expect(row).toContainText('shop-1');
  await expect(row).not.toContainText('all 2 servers');
  const away = page.locator('[data-folded="decided"]');
  await expect(away.locator('> summary')).toHaveText('1 finding accepted, postponed or silenced');
  await away.locator('> summary').click();
  const kept = away.locator('[data-advice="schema.no_pk shop.log"]');
  await kept.locator('summary').click();
  await expect(kept).toContainText('a queue, <b>not</b> a table');
  await kept.getByRole('button', { name: 'Undo' }).click();
  await expect(away).toHaveCount(0);
  await expect(row).toContainText('all 2 servers');
  expect((await advice(request)).counts.decided).toBe(0);
});

test('what is silenced is listed, and postponed things say until when', async ({ page }) => {
  await page.goto('/advice?kind=index.redundant');
  const row = page.locator('section .advised [data-advice="index.redundant shop.orders.ka"]');
  await row.locator('summary').click();
  await row.getByRole('button', { name: 'Silence…' }).click();
  await row.getByLabel('object').fill('shop.orders.*');
  await row.getByLabel('because').fill('tests');
  await row.locator('form').getByRole('button', { name: 'Silence' }).click();
  const silenced = page.locator('[data-silenced="index.redundant"]');
  await expect(silenced).toContainText('of shop.orders.* on all servers');
  await expect(page.locator('.sentence')).toContainText('Nothing that fits was found.');
  await silenced.getByRole('button', { name: 'Undo' }).click();
  await expect(row).toBeVisible();
  await row.getByRole('button', { name: 'Postpone…' }).click(); // it is still open: the link says so
  await row.getByLabel('for').fill('soon');
  await row.getByLabel('because').fill('next release');
  await row.locator('form').getByRole('button', { name: 'Postpone' }).click();
  await expect(row.getByRole('alert')).toContainText('write it as 12h or 30d');
});

test('the list is filtered and grouped, and arrows move in it', async ({ page }) => {
  await page.goto('/advice');
  const rows = page.locator('section .advised > li');
  await expect(rows.nth(4)).toBeVisible();
  await page.getByLabel('Filter advice by text').fill('coupons');
  await expect(rows).toHaveCount(1);
  await page.getByLabel('Filter advice by text').fill('');
  await page.getByLabel('Severity').selectOption('critical');
  await expect(rows.filter({ hasText: 'AUTO_INCREMENT' })).toHaveCount(1);
  await page.getByLabel('Severity').selectOption('');
  await page.getByLabel('Group').selectOption('web');
  await expect(page.locator('[data-looked]')).toHaveCount(1);
  await page.getByLabel('Group').selectOption('');
  await page.getByLabel('Order').selectOption('kind');
  await expect(page.locator('section h2').filter({ hasText: 'schema.autoinc' })).toHaveCount(1);
  await rows.first().locator('summary').focus();
  await page.keyboard.press('ArrowDown');
  await expect(rows.nth(1).locator('summary')).toBeFocused();
  await page.getByLabel('Server', { exact: true }).selectOption('web-1');
  await expect(page).toHaveURL(/\/server\/web-1\/advice\?sort=kind/);
  await expect(page.locator('h1')).toHaveText('Advice for web-1');
});

test('an answer that is late does not replace a newer one', async ({ page }) => {
  let late = 0;
  await page.route('**/api/advice?**', async (route) => {
    if (!route.request().url().includes('group=web')) {
      await new Promise((r) => setTimeout(r, 700));
      late++;
    }
    await route.continue();
  });
  await page.goto('/advice');
  await expect(page.locator('[data-looked]')).toHaveCount(2);
  const before = late;
  await page.getByLabel('Severity').selectOption('critical');
  await page.getByLabel('Group').selectOption('web');
  await expect(page.locator('[data-looked]')).toHaveCount(1);
  await expect.poll(() => late).toBeGreaterThan(before);
  await page.waitForTimeout(500); // it has come by then
  await expect(page.locator('[data-looked]')).toHaveCount(1);
});

test('a server says that there is advice, and what is critical is wrong with it', async ({ page }) => {
  await page.goto('/server/shop-1');
  const line = page.locator('.advice-line');
  await expect(line).toContainText(/[0-9] critical/);
  await expect(page.locator('.sentence')).toContainText('98');
  await line.getByRole('link').click();
  await expect(page).toHaveURL(/\/server\/shop-1\/advice$/);
});

test('nothing keeps people out of it', async ({ page }) => {
  await page.goto('/advice');
  await page.locator('.advised summary').first().click();
  await page.getByRole('button', { name: 'Postpone…' }).first().click();
  await expect(page.locator('form.decide')).toBeVisible();
  await openToAll(page);
  await page.setViewportSize({ width: 390, height: 800 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBeLessThanOrEqual(0);
});
