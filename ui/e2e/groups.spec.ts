import { expect, test, type APIRequestContext, type Locator, type Page } from '@playwright/test';
import { openToAll } from './axe';
import { complaints } from './helpers';

// The group shop of db1, db2 and db3, which a risso serve with --failover auto watches. RISSO_GROUPS is asked to kill and start servers.
const control = process.env.RISSO_GROUPS ?? '';
const PICTURES = process.env.RISSO_PICTURES ?? ''; // for docs
const SHOTS = process.env.RISSO_SHOTS ?? ''; // for who looks at the page
test.skip(!control, 'set RISSO_GROUPS: a group of real servers');
test.describe.configure({ mode: 'serial' });

const room = (page: Page): Locator => page.locator('[data-group="shop"]');
const row = (page: Page, name: string): Locator => page.locator(`[data-member="${name}"]`);
const primary = async (page: Page): Promise<string> => (await room(page).getAttribute('data-primary')) ?? '';

async function tell(request: APIRequestContext, what: string): Promise<void> {
  expect((await request.post(`${control}/${what}`)).ok()).toBe(true);
}
async function signIn(page: Page, token: string | undefined): Promise<void> {
  expect((await page.request.post('/api/login', { data: { token } })).ok()).toBe(true);
}
async function picture(page: Page, folder: string, name: string, height: number, width = 1280): Promise<void> {
  if (!folder) return;
  await page.setViewportSize({ width, height });
  await page.waitForTimeout(1500);
  await page.screenshot({ path: `${folder}/${name}.png` });
  await page.setViewportSize({ width: 1440, height: 900 });
}

test.describe('who may fail over', () => {
  test.beforeEach(async ({ page }) => signIn(page, process.env.RISSO_FAILOVER));

  test('sees the group, who would follow, and what would be lost', async ({ page }) => {
    const errors = complaints(page);
    await page.goto('/');
    await expect(page.locator('[data-instance]').first()).toBeVisible();
    await page.keyboard.press('g');
    await page.keyboard.press('g');
    await expect(page).toHaveURL(/\/groups$/);
    await expect(room(page)).toHaveAttribute('data-primary', 'db1');
    await expect(page.locator('.g-group .sentence')).toHaveText(/db1 takes writes, and all others replicate\.$/, { timeout: 60_000 });
    await expect(row(page, 'db1')).toHaveAttribute('data-status', 'PRIMARY');
    await expect(row(page, 'db1').locator('.g-look')).toHaveText('takes writes');
    await expect(row(page, 'db2').locator('.g-look')).toContainText('read-only, replicates from 127.0.0.1:');
    await expect(page.locator('[data-winner="db2"]')).toContainText('If db1 died now, db2 would follow', { timeout: 60_000 });
    await expect(page.locator('[data-winner="db2"]')).toContainText('No acknowledged transaction would be lost: each commit waits for 1 replica');
    await expect(page.locator('[data-candidate="db3"]')).toContainText('may follow');
    await expect(page.getByRole('button', { name: 'Fail over…' })).toBeDisabled();
    await expect(page.locator('.g-policy')).toContainText('failed over automatically');
    await expect(room(page)).toContainText('Clients are told: writes to db1');
    expect(errors).toEqual([]);
  });

  test('changes weight, rule and data center after seeing what that does; a plan that is cancelled does nothing', async ({ page }) => {
    await page.goto('/groups/shop');
    await page.getByRole('button', { name: 'Change db3' }).click();
    await page.getByLabel('weight of reads').fill('0.5');
    await page.getByLabel('promoted').selectOption('avoid');
    await page.getByLabel('data center').fill('east');
    await page.getByRole('button', { name: 'Show the plan' }).click();
    await expect(page.locator('.g-ask .g-plan')).toContainText('db3 gets reads by the weight 0.5 instead of 1');
    await expect(page.locator('.g-ask .g-plan')).toContainText('db3 has the rule avoid instead of neutral: it follows only if no other member can');
    await expect(page.locator('.g-ask .g-plan')).toContainText('db3 is in the data center east instead of no data center');
    await expect(row(page, 'db3').locator('.g-weight')).toHaveText('1');
    await page.getByRole('button', { name: 'Yes, do it' }).click();
    await expect(row(page, 'db3').locator('.g-weight')).toHaveText('0.5');
    await expect(row(page, 'db3').locator('.g-rule')).toHaveText('east, avoid');
    await page.locator('.g-ask').getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Fail over by hand only…' }).click();
    await expect(page.locator('.g-ask .g-plan')).toContainText('shop is failed over by hand only');
    await page.locator('.g-ask').getByRole('button', { name: 'Cancel' }).click();
    await expect(page.locator('.g-ask')).toHaveCount(0);
    await expect(page.locator('.g-policy')).toContainText('failed over automatically');
  });

  test('sees a failover happen, and its receipt; the old primary comes back', async ({ page, request }) => {
    await page.goto('/groups/shop');
    await expect(page.locator('[data-winner="db2"]')).toBeVisible({ timeout: 60_000 });
    await tell(request, 'kill/db1');
    await expect(room(page)).toHaveAttribute('data-primary', /^db[23]$/, { timeout: 60_000 });
    const now = await primary(page);
    await expect(row(page, now)).toHaveAttribute('data-status', 'PRIMARY');
    await expect(row(page, 'db1')).toHaveAttribute('data-status', 'FAULTY', { timeout: 60_000 });
    await expect(row(page, 'db1').locator('.g-look')).toContainText('does not answer', { timeout: 60_000 });
    await expect(page.getByRole('button', { name: 'Switch over to db1' })).toHaveAttribute('title', /it is FAULTY/, { timeout: 60_000 });
    const change = page.locator('[data-change]').first();
    await expect(change).toHaveAttribute('data-stage', 'done', { timeout: 60_000 });
    await expect(change).toContainText(`failover from db1 to ${now}, automatic`);
    await expect(change.locator('[data-verdict="nothing_lost"]')).toContainText('zero acknowledged transactions lost');
    await expect(change.locator('.g-steps')).toBeHidden();
    await change.locator('summary').click();
    await expect(change.locator('.g-steps')).toContainText('STOP SLAVE');
    await expect(change.locator('.g-receipt')).toContainText('nobody took writes for');
    await expect(room(page)).toContainText(`Clients are told: writes to ${now}`);
    await openToAll(page);
    await change.locator('summary').click();
    await picture(page, PICTURES, 'groups', 850);
    await tell(request, 'start/db1');
    await expect(row(page, 'db1')).toHaveAttribute('data-status', 'SECONDARY', { timeout: 90_000 });
    await expect(page.locator('.g-group .sentence')).toHaveText(new RegExp(`${now} takes writes, and all others replicate\\.$`), { timeout: 60_000 });
  });

  test('switches over by the button, once it was confirmed', async ({ page }) => {
    await page.goto('/groups/shop');
    await expect(row(page, 'db1').locator('.g-look')).toContainText('replicates from');
    const old = await primary(page);
    await page.getByRole('button', { name: 'Switch over to db1' }).click();
    await expect(page.getByRole('dialog')).toContainText(`Switch shop over from ${old} to db1?`, { timeout: 60_000 });
    await expect(page.locator('.g-ask .g-plan')).toContainText(`read_only = ON on ${old}`);
    await expect(page.locator('.g-ask .g-plan')).toContainText('STOP ALL SLAVES on db1');
    await picture(page, SHOTS, 'groups-plan', 800);
    await openToAll(page, 'the plan');
    await expect(room(page)).toHaveAttribute('data-primary', old);
    await page.getByRole('button', { name: 'Yes, do it' }).click();
    await expect(page.getByRole('dialog')).toContainText('zero acknowledged transactions lost', { timeout: 60_000 });
    await expect(room(page)).toHaveAttribute('data-primary', 'db1', { timeout: 60_000 });
    await page.locator('.g-ask').getByRole('button', { name: 'Close' }).click();
    await expect(page.locator('[data-change]').first()).toContainText(`switchover from ${old} to db1, by who may failover`);
    if (SHOTS) {
      await page.emulateMedia({ colorScheme: 'dark' });
      await picture(page, SHOTS, 'groups-dark', 1000);
      await picture(page, SHOTS, 'groups-phone', 1400, 390);
    }
  });

  test('says what is wrong with the group, and with which command that is mended', async ({ page, request }) => {
    test.setTimeout(300_000);
    await page.goto('/groups/shop');
    await expect(room(page)).toHaveAttribute('data-primary', 'db1');
    const wrong = page.locator('[data-finding="failover.unready"]');
    await expect(wrong).toHaveCount(0, { timeout: 60_000 });
    await tell(request, 'kill/db2');
    await tell(request, 'kill/db3');
    await expect(wrong).toContainText('nobody could follow the primary of shop, if it died now', { timeout: 120_000 });
    await expect(wrong.locator('code')).toHaveText('risso group health shop');
    await expect(page.locator('.g-group .sentence')).not.toContainText('all others replicate');
    await picture(page, SHOTS, 'groups-wrong', 900);
    await openToAll(page, 'what is wrong');
    await tell(request, 'start/db2');
    await tell(request, 'start/db3');
    await expect(wrong).toHaveCount(0, { timeout: 120_000 });
    await expect(page.locator('.g-group .sentence')).toHaveText(/db1 takes writes, and all others replicate\.$/, { timeout: 60_000 });
  });
});

test('what was lost is listed (made up: no group here lost anything)', async ({ page }) => {
  await signIn(page, process.env.RISSO_LOOK);
  await page.route('**/api/groups/journals?*', async (r) => {
    const response = await r.fetch();
    const all = await response.json();
    Object.assign(all.journals[0].receipt, {
      verdict: 'lost', words: '2 transactions lost, at least: db1 had 0-1-7, and no member received it', lost: '0-1-7,0-1-8', lost_count: 2,
      contents: { read: '2026-11-29T00:10:00Z', from: 'the binary logs of db1', more: 0, rows: 2, transactions: [{ gtid: '0-1-7', time: '2026-11-29T00:10:00Z', changes: [{ table: 'shop.orders', kind: 'insert', rows: 2 }], statements: ['INSERT INTO orders VALUES (?)'] }] },
      applied: [{ gtid: '0-1-7', at: '2026-11-29T00:12:00Z', by: 'ann', to: 'db2' }],
    });
    await r.fulfill({ response, json: all });
  });
  await page.goto('/groups');
  const change = page.locator('[data-change]').first();
  await expect(change.locator('[data-verdict="lost"]')).toContainText('2 transactions lost');
  await change.locator('summary').click();
  await expect(change.locator('.g-lost')).toContainText('0-1-7 insert 2 rows of shop.orders – applied to db2 by ann');
  await expect(change.locator('.g-sql')).toHaveText('INSERT INTO orders VALUES (?)');
  await expect(change.locator('.g-receipt')).toContainText('risso receipt apply --group shop --dry-run');
  await picture(page, SHOTS, 'groups-lost', 1100);
});

test('several groups are a list, and one that cannot be asked says so (a second one is made up)', async ({ page }) => {
  await signIn(page, process.env.RISSO_LOOK);
  await page.route('**/api/groups/standing', async (r) => {
    const response = await r.fetch();
    const all = await response.json();
    const crm = structuredClone(all.groups[0]);
    Object.assign(crm.group, { name: 'crm', active: false });
    await r.fulfill({ response, json: { ...all, groups: [...all.groups, crm] } });
  });
  await page.goto('/groups');
  await expect(page.locator('.lead')).toHaveText('1 of 2 groups needs attention.');
  await expect(page.locator('[data-listed="shop"]')).toContainText('db1 takes writes');
  await page.getByRole('link', { name: 'crm' }).click();
  await expect(page).toHaveURL(/\/groups\/crm$/);
  await expect(page.locator('[data-group="crm"]')).toContainText('It is left alone: nobody looks after it');
  await expect(page.locator('[data-group="crm"]')).toContainText('The members could not be asked: there is no group crm');
  await page.goto('/groups/none');
  await expect(page.locator('.groups')).toContainText('There is no group none.');
});

test('who may look sees all, and can change nothing', async ({ page }) => {
  await signIn(page, process.env.RISSO_LOOK);
  await page.goto('/groups');
  await expect(room(page)).toHaveAttribute('data-primary', 'db1');
  const over = page.getByRole('button', { name: 'Switch over to db2' });
  await expect(over).toBeVisible();
  for (const b of [over, page.getByRole('button', { name: 'Change db2' }), page.getByRole('button', { name: 'Fail over…' }), page.getByRole('button', { name: 'Fail over by hand only…' }), page.getByRole('button', { name: 'Leave it alone…' })]) {
    await expect(b).toBeDisabled();
    await expect(b).toHaveAttribute('title', /needs the role failover/);
  }
  await expect(page.locator('[data-barred]')).toContainText('needs the role failover');
  const refused = await page.request.post('/api/groups/switchover', { data: { group: 'shop', to: 'db2' } });
  expect(refused.status()).toBe(403);
  await expect(room(page)).toHaveAttribute('data-primary', 'db1');
});
