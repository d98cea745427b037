import { readFileSync } from 'node:fs';
import { expect, test, type APIRequestContext, type Page } from '@playwright/test';
import { openToAll } from './axe';
import { complaints } from './helpers';

// A chain of four: db1 → db2 → db3 → one that nobody watches. RISSO_TOPOLOGY is asked to break, kill, start and stop.
const control = process.env.RISSO_TOPOLOGY ?? '';
const other = process.env.RISSO_TOPOLOGY_OTHER ?? '';
const PICTURES = process.env.RISSO_PICTURES ?? '';
test.skip(!control, 'set RISSO_TOPOLOGY: a chain of four real servers');
test.describe.configure({ mode: 'serial' });

const node = (page: Page, name: string) => page.locator(`[data-node="${name}"]`);
const link = (page: Page, from: string, to: string) => page.locator(`[data-link="${from} ${to}"]`);
async function tell(request: APIRequestContext, what: string): Promise<void> {
  expect((await request.post(`${control}/${what}`)).ok()).toBe(true);
}
async function picture(page: Page, name: string): Promise<void> {
  if (PICTURES) await page.screenshot({ path: `${PICTURES}/${name}.png`, fullPage: true });
}

let calm = 0; // when all was well

test('the whole chain is drawn, with the server that nobody watches', async ({ page }) => {
  const errors = complaints(page);
  await page.goto('/');
  await expect(page.locator('[data-instance]').first()).toBeVisible();
  await page.keyboard.press('g');
  await page.keyboard.press('t');
  await expect(page).toHaveURL(/\/topology$/);
  await expect(page.locator('h1')).toHaveText('Topology');
  await expect(page.locator('.sentence')).toContainText('4 servers; replication runs everywhere', { timeout: 60_000 });
  for (const [from, to] of [['db1', 'db2'], ['db2', 'db3'], ['db3', other]]) await expect(link(page, from, to)).toHaveAttribute('data-kind', 'runs');
  await expect(node(page, 'db1')).toHaveAccessibleName(/^db1: ok, writable, .*1 replica$/);
  await expect(node(page, other)).toHaveAccessibleName(/not watched$/);
  calm = Math.floor(Date.now() / 1000);
  await node(page, other).focus();
  await page.keyboard.press('Enter');
  await expect(page.locator(`[data-server="${other}"]`)).toContainText('not watched, known from');
  await page.keyboard.press('ArrowUp');
  await expect(node(page, 'db3')).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/server\/db3$/);
  expect(errors).toEqual([]);
});

test('what is broken is said, shown, and can be seen without colours', async ({ page, request }) => {
  await page.goto('/topology');
  await tell(request, 'break');
  await expect(node(page, other)).toHaveAttribute('data-state', 'critical', { timeout: 60_000 });
  await expect(link(page, 'db3', other)).toHaveAttribute('data-kind', 'broken');
  await expect(page.locator('.sentence')).toContainText(`${other}: does not apply (1062:`);
  await expect(page.locator(`[data-server="${other}"]`)).toContainText('does not apply (1062:');
  await expect(page.locator(`[data-server="${other}"] [data-finding="repl.stopped"]`)).toContainText('1062', { timeout: 60_000 });
  await expect(node(page, 'db3')).toHaveAttribute('data-state', 'ok');
  await picture(page, 'broken');
  if (PICTURES) {
    await page.emulateMedia({ colorScheme: 'dark' });
    await picture(page, 'broken-dark');
    await page.emulateMedia({ colorScheme: 'light' });
  }
});

test('a replica that was stopped, and a primary that was killed, keep their places', async ({ page, request }) => {
  await page.goto('/topology');
  await tell(request, 'kill');
  await expect(node(page, 'db1')).toHaveAttribute('data-state', 'critical', { timeout: 60_000 });
  await expect(node(page, 'db1')).toHaveClass(/unseen-node/);
  await expect(link(page, 'db1', 'db2')).toHaveAttribute('data-kind', 'connecting', { timeout: 60_000 });
  await expect(page.locator('.sentence')).toContainText('db1: nothing listens there, since', { timeout: 60_000 });
  await expect(page.locator('[data-server="db1"] [data-finding="primary.dead"]')).toContainText('not seen:', { timeout: 60_000 });
  await picture(page, 'dead');
  await tell(request, 'start');
  await expect(node(page, 'db1')).toHaveAttribute('data-state', 'ok', { timeout: 60_000 });
  await tell(request, 'stop');
  await expect(link(page, 'db1', 'db2')).toHaveAttribute('data-kind', 'stopped', { timeout: 60_000 });
  await expect(node(page, 'db2')).toHaveAttribute('data-state', 'warning');
});

test('the time leads back to when all was well, from change to change, and to what nobody knows', async ({ page }) => {
  await page.goto(`/topology?at=${new Date(calm * 1000).toISOString().slice(0, 19)}Z`);
  await expect(page.locator('.sentence')).toContainText('4 servers; replication runs everywhere.');
  await expect(page.locator('.page-head')).toContainText('as it was from');
  await page.getByRole('button', { name: 'change →' }).click();
  await expect(page.locator('.sentence')).toContainText('does not apply');
  await expect(node(page, 'db1')).toHaveAttribute('data-state', 'ok');
  await page.goBack();
  await expect(page.locator('.sentence')).toContainText('replication runs everywhere.');
  await page.getByRole('button', { name: 'Live' }).click();
  await expect(page).toHaveURL(/\/topology$/);
  await expect(link(page, 'db1', 'db2')).toHaveAttribute('data-kind', 'stopped');
  await expect(page.locator('.t-changes li').filter({ hasText: 'db1: ' }).first()).toBeVisible();
  await page.goto('/topology?at=2001-01-01T00:00:00Z');
  await expect(page.locator('.sentence')).toContainText('Not known: it was looked at from');
  await expect(page.locator('.t-drawing')).toHaveCount(0);
});

test('nothing keeps people out of it', async ({ page }) => {
  await page.goto('/topology');
  await expect(node(page, 'db1')).toBeVisible();
  await openToAll(page);
});

test('300 servers fit and are readable (made up: the fixture fixtures/topology300.json)', async ({ page }) => {
  const errors = complaints(page);
  await page.route('**/api/topology', (r) => r.fulfill({ contentType: 'application/json', body: readFileSync(new URL('./fixtures/topology300.json', import.meta.url), 'utf8') }));
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.goto('/topology');
  await expect(page.locator('[data-node]')).toHaveCount(300);
  await expect(page.locator('.sentence')).toContainText('others of 300 need attention, too.');
  const size = (await page.locator('.t-drawing').boundingBox())!;
  expect(size.width).toBeLessThan(1400);
  expect(size.height).toBeLessThan(1800);
  await picture(page, 'topology300');
  await openToAll(page);
  expect(errors).toEqual([]);
});
