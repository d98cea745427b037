import { expect, test, type Page } from '@playwright/test';
import { openToAll } from './axe';
import { complaints } from './helpers';

const row = (page: Page, id: string) => page.locator(`[data-protected="${id}"]`);

/** What makes a page wider than the screen: it would have to be pushed about. */
const tooWide = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const out = [...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > width && !e.closest('.scroll'));
    return out.map((e) => `${e.tagName}.${e.getAttribute('class') ?? ''} ${e.getBoundingClientRect().right.toFixed(1)} ${(e.textContent ?? '').slice(0, 30)}`);
  });

// Where screenshots go, if wanted.
const shot = async (page: Page, name: string, fullPage = false): Promise<void> => {
  if (process.env.RISSO_SHOTS) await page.screenshot({ path: `${process.env.RISSO_SHOTS}/${name}.png`, fullPage });
};

// A month of backups and drills of four servers, as tests/page makes them.
test.describe('protection, a month of it', () => {
  test.skip(!process.env.RISSO_PROTECT_HISTORY, 'RISSO_PROTECT_HISTORY is not set: no history to look at');
  test.use({ extraHTTPHeaders: { Authorization: `Bearer ${process.env.RISSO_ACT}` } });

  test('the list says loudly what is not fresh and what was never proven', async ({ page }) => {
    const errors = complaints(page);
    const loaded: string[] = [];
    page.on('request', (r) => loaded.push(new URL(r.url()).pathname));
    await page.goto('/');
    await expect(page.locator('[data-instance="shop"]')).toBeVisible();
    expect(loaded).not.toContain('/app-protect.js');
    await page.getByRole('link', { name: 'Protect' }).click();
    await expect(page.locator('.loud')).toHaveText('1 server was never backed up (idle); 1 last backup is too old (crm); 1 drill failed (crm); 1 server has no proven backup (blog).');
    // The worst come first, the one that is well last.
    await expect(page.locator('[data-protected]')).toHaveCount(4);
    expect(await page.locator('[data-protected]').evaluateAll((list) => list.map((e) => e.getAttribute('data-protected')))).toEqual(['crm', 'idle', 'blog', 'shop']);
    await expect(row(page, 'shop')).toContainText(/backed up 3 h ago, proven .* any moment of the last 1\d d/);
    await expect(row(page, 'shop').locator('.c-window')).toContainText('last 14');
    await expect(row(page, 'crm').locator('.c-window')).toContainText('backups only');
    await expect(row(page, 'idle').locator('.c-last')).toHaveText('never');
    await shot(page, 'list');
    await openToAll(page);
    await row(page, 'crm').click();
    await expect(page).toHaveURL(/\/server\/crm\/protect/);
    await page.goBack();
    await expect(page.locator('.loud')).toBeVisible();
    expect(errors).toEqual([]);
  });

  test('a server shows its timeline, recovery by stage and why backups stay', async ({ page }) => {
    const errors = complaints(page);
    await page.goto('/server/shop/protect');
    await expect(page.locator('.lane.backups .mark')).toHaveCount(34);
    await expect(page.locator('.lane.backups .mark.good')).toHaveCount(5);
    await expect(page.locator('.lane.drills .mark')).toHaveCount(5);
    // The window begins at a backup and ends now.
    const [bar, now] = [await page.locator('.pitr').boundingBox(), await page.locator('.lane.over i.now').boundingBox()];
    expect(bar!.width).toBeGreaterThan(200);
    expect(Math.abs(bar!.x + bar!.width - now!.x)).toBeLessThan(12);
    // Checks come after the recovery and do not count.
    await expect(page.locator('.stages .sum')).toContainText('13 min 32 s');
    await expect(page.locator('.stages .after')).toContainText('check tables');
    const kept = page.locator('.backups .c-kept');
    await expect(kept.first()).toContainText('the newest');
    expect(await kept.filter({ hasText: 'removed by the next prune' }).count()).toBeGreaterThan(10);
    // A mark leads to its row, and the link keeps what is open.
    await page.locator('.lane.drills .mark').last().click();
    await expect(page).toHaveURL(/q=drill-\d+/);
    await expect(page.locator('.proof')).toContainText('412 tables');
    await expect(page.locator('.proof')).toContainText('SELECT COUNT(*) FROM shop.orders');
    await page.reload();
    await expect(page.locator('.proof')).toBeVisible();
    await page.locator('[data-run-row]').getByRole('button', { name: 'backup' }).first().click();
    await expect(page.locator('.log')).toContainText('global lock held for 12 ms');
    await expect(page.locator('.log')).toContainText('<i>not</i>'); // text, not markup
    await shot(page, 'shop', true);
    await page.goto('/server/crm/protect');
    await expect(page.locator('.sentence.loud')).toContainText('the last backup is 4 d old');
    await expect(page.locator('.findings')).toContainText('3 rows less');
    await expect(page.locator('.lane.drills .mark.bad')).toHaveCount(1);
    await shot(page, 'crm');
    await openToAll(page);
    expect(errors).toEqual([]);
  });

  test('where nothing is configured the page tells how to begin', async ({ page }) => {
    await page.goto('/server/idle/protect');
    await expect(page.locator('.loud')).toContainText('never backed up, and nothing is planned');
    await expect(page.locator('.loud')).toContainText('risso backup --dsn');
    await expect(page.locator('.begin pre')).toContainText('- name: idle');
    await expect(page.getByRole('button', { name: 'Back up now' })).toHaveCount(0);
    await page.goto('/server/nobody/protect');
    await expect(page.locator('main')).toContainText('There is no server nobody');
    await shot(page, 'nobody');
  });

  test('by keyboard', async ({ page }) => {
    await page.goto('/');
    await expect(page.locator('[data-instance="shop"]')).toBeVisible();
    await page.keyboard.press('g');
    await page.keyboard.press('p');
    await expect(page).toHaveURL(/\/protect/);
    await expect(page.locator('[data-protected="crm"]')).toBeVisible();
    for (let i = 0; i < 20 && !(await page.evaluate(() => document.activeElement?.textContent === 'crm')); i++) await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await expect(page).toHaveURL(/\/server\/crm\/protect/);
    await page.locator('[data-drill] button').first().focus();
    await page.keyboard.press('Enter');
    await expect(page.locator('.proof')).toBeVisible();
    await page.keyboard.press('g');
    await page.keyboard.press('c');
    await expect(page).toHaveURL(/\/server\/crm(\?|$)/);
  });

  for (const width of [360, 390]) {
    test(`on a phone of ${width} pixels nothing is cut off`, async ({ page }) => {
      await page.setViewportSize({ width, height: 800 });
      await page.emulateMedia({ colorScheme: 'dark' });
      for (const path of ['/', '/protect', '/queries', '/server/shop', '/server/shop/protect', '/server/crm/protect', '/server/idle/protect']) {
        await page.goto(path);
        await expect(page.locator('main > *').first()).toBeVisible();
        const tabs = page.locator('.tabs a');
        await expect(tabs).toHaveCount(path.startsWith('/server/') ? 11 : 9);
        for (const box of await tabs.evaluateAll((list) => list.map((e) => e.getBoundingClientRect().toJSON() as { left: number; right: number }))) {
          expect(box.left).toBeGreaterThanOrEqual(0);
          expect(box.right).toBeLessThanOrEqual(width);
        }
        // What is over a tab would take its clicks.
        await page.getByRole('link', { name: 'Protect', exact: true }).click({ trial: true });
        expect(await tooWide(page), path).toEqual([]);
        await shot(page, `phone-${width}${path.replaceAll('/', '-')}`);
      }
    });
  }
});

// A real MariaDB, which the test writes into; nothing was done to it before.
test.describe('protection of a real server', () => {
  test.skip(!process.env.RISSO_PROTECT_REAL, 'RISSO_PROTECT_REAL is not set: no server to protect');

  test('from nothing to a proven backup, by the buttons of the page', async ({ page }) => {
    test.setTimeout(180_000);
    const errors = complaints(page);
    await page.goto('/protect');
    await expect(page.locator('.loud')).toContainText('1 server was never backed up (shop)');
    await row(page, 'shop').getByRole('link').click();
    const job = (kind: string) => page.locator(`[data-job="${kind}"]`);
    await expect(job('mirror')).toContainText('mirror binary logs');
    await job('backup').getByRole('button', { name: 'Back up now' }).click();
    // Its rate is limited, so that it can be seen.
    await expect(job('backup').locator('.progress')).toContainText(/reading.*of .*MiB.*MiB\/s/, { timeout: 60_000 });
    await shot(page, 'real-running');
    await expect(job('backup').getByRole('button', { name: 'Stop' })).toBeVisible();
    await job('backup').getByRole('button', { name: 'Stop' }).click();
    await expect(job('backup')).toContainText('stopped by hand', { timeout: 60_000 });
    await expect(page.locator('[data-backup]')).toHaveCount(0);
    await job('backup').getByRole('button', { name: 'Back up now' }).click();
    await expect(page.locator('[data-backup]')).toHaveCount(1, { timeout: 60_000 });
    await expect(job('copy')).toContainText('1 backup copied', { timeout: 60_000 });
    await expect(job('prune')).toContainText('0 backups removed', { timeout: 60_000 });
    await expect(page.locator('.sentence')).toContainText('no backup was ever proven');
    await job('drill').getByRole('button', { name: 'Drill now' }).click();
    await job('verify').getByRole('button', { name: 'Verify now' }).click();
    await expect(job('verify')).toContainText(/waits for shop\/drill|all unchanged/);
    await expect(job('drill')).toContainText('is proven', { timeout: 90_000 });
    await expect(job('verify')).toContainText('all unchanged', { timeout: 60_000 });
    await expect(page.locator('.sentence')).toContainText(/backed up .* ago, proven .* ago, back within .*any moment of the last/, { timeout: 60_000 });
    await expect(page.locator('.stages')).toContainText('load');
    await expect(page.locator('.c-kept').first()).toContainText('the newest');
    await shot(page, 'real', true);
    // What happened is among the events of the server, too.
    await page.goto('/server/shop/events');
    await expect(page.locator('.events')).toContainText('is proven');
    expect(errors).toEqual([]);
  });
});

// The same, for somebody whose token may look.
test.describe('protection, for who may look', () => {
  test.skip(!process.env.RISSO_LOOK, 'RISSO_LOOK is not set: no token that may look');

  for (const [who, token, barred] of [['change', process.env.RISSO_ACT, false], ['look', process.env.RISSO_LOOK, true]] as const) {
    test(`who may ${who} ${barred ? 'cannot press' : 'can press'} what starts a job`, async ({ browser, baseURL }) => {
      const page = await browser.newPage({ baseURL, extraHTTPHeaders: { Authorization: `Bearer ${token}` } });
      await page.goto('/server/shop/protect');
      const buttons = page.locator('.act button');
      await expect(buttons.first()).toBeVisible();
      for (const b of await buttons.all()) {
        if (barred) {
          await expect(b).toBeDisabled();
          await expect(b).toHaveAttribute('title', /--role change/);
        } else await expect(b).toBeEnabled();
      }
      await shot(page, `may-${who}`);
      await page.close();
    });
  }
});
