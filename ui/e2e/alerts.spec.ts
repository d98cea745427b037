import { expect, test, type APIRequestContext } from '@playwright/test';
import { openToAll } from './axe';
import { chart, complaints, hasValue } from './helpers';

// A primary, two replicas and a session that keeps others waiting; receivers of which one takes no messages.
const primary = process.env.RISSO_INSTANCE ?? '';
test.skip(!process.env.RISSO_BLOCKED, 'set RISSO_BLOCKED: a server on which sessions wait for a row lock');

type Standing = { key: string; phase: string; finding: string; acked?: string };
async function alerts(request: APIRequestContext): Promise<Standing[]> {
  return ((await (await request.get('/api/alerts')).json()) as { alerts: Standing[] }).alerts;
}

test('an alert says what, since when and who was told; it is acknowledged and silenced', async ({ page, request }) => {
  const errors = complaints(page);
  await expect.poll(async () => (await alerts(request)).find((a) => a.finding === 'lock.blocker')?.phase, { timeout: 60_000 }).toBe('firing');
  await page.goto('/');
  await expect(page.locator('[data-instance]').first()).toBeVisible();
  await page.keyboard.press('g');
  await page.keyboard.press('a');
  await expect(page).toHaveURL(/\/alerts$/);
  await expect(page.locator('h1')).toHaveText('Alerts');
  const row = page.locator('[data-alert*="lock.blocker"]');
  await expect(row).toContainText('others waiting for a row lock');
  await expect(row).toContainText(/log told \d\d:\d\d/, { timeout: 60_000 });
  await expect(row.getByRole('button', { name: /^Copy: KILL \d+/ })).toBeVisible();
  // A receiver that takes no messages was not told, whatever was made for it.
  await expect(row).toContainText('broken not reached yet');
  await expect(page.locator('[data-receiver="broken"]')).toContainText('takes no messages');
  await expect(page.locator('.sentence')).toContainText('broken takes no messages');
  await row.getByRole('button', { name: 'Acknowledge' }).click();
  await expect(row).toContainText('acknowledged');
  expect((await alerts(request)).find((a) => a.finding === 'lock.blocker')?.acked).toBeTruthy();

  await row.getByRole('button', { name: 'Silence…' }).click();
  const form = row.locator('form');
  await expect(form.getByRole('button', { name: 'Silence' })).toBeDisabled();
  await form.getByLabel('because').fill('known, <b>tonight</b> it is mended');
  await form.getByRole('button', { name: 'Silence' }).click();
  const held = page.locator('[data-silence]');
  await expect(held).toContainText('known, <b>tonight</b> it is mended');
  await expect(held).toContainText(/left/);
  await held.getByRole('button', { name: 'End it' }).click();
  await expect(page.getByText('Nothing is silenced.')).toBeVisible();
  expect(errors).toEqual([]);
});

test('a receiver is tested, and one that fails says why', async ({ page }) => {
  await page.goto('/alerts');
  const log = page.locator('[data-receiver="log"]');
  await log.getByRole('button', { name: 'Send a test' }).click();
  await expect(log.getByRole('status')).toHaveText('delivered');
  const broken = page.locator('[data-receiver="broken"]');
  await broken.getByRole('button', { name: 'Send a test' }).click();
  await expect(broken.getByRole('alert')).toContainText(/refused/);
});

test('a threshold is set and taken back, and own rules say how they are', async ({ page }) => {
  let own: object[] = [];
  const sent: unknown[] = [];
  await page.route('**/api/thresholds**', async (route) => {
    const r = route.request();
    if (r.method() === 'PUT') {
      sent.push(r.postDataJSON());
      own = [{ ...(r.postDataJSON() as object), id: 3, by: 'ann', at: new Date().toISOString() }];
      return route.fulfill({ json: own[0] });
    }
    if (r.method() === 'DELETE') {
      own = [];
      return route.fulfill({ json: { deleted: Number(new URL(r.url()).searchParams.get('id')) } });
    }
    return route.fulfill({ json: { defaults: [{ severity: 'critical', for: '0s' }], file: [{ finding: 'lock.*', for: '1s' }], page: own } });
  });
  await page.route('**/api/rules', (route) => route.fulfill({ json: { files: ['/etc/risso/rules/a.yml'], error: 'b.yml: line 3: what', groups: [
    { name: 'g', file: 'a.yml', rules: [{ name: 'Slow', type: 'alerting', query: 'rate(x[5m]) > 1', state: 'firing', health: 'ok' }] }] } }));
  await page.goto('/alerts');
  await expect(page.locator('[data-rule="Slow"]')).toContainText('firing');
  await expect(page.getByText('The newest files are not used: b.yml')).toBeVisible();
  const form = page.locator('section[aria-labelledby="s-thresholds"] form');
  await expect(form.getByRole('button', { name: 'Set' })).toBeDisabled();
  await form.getByLabel('finding').fill('repl.lag');
  await form.getByLabel('server').fill('report-*');
  await form.getByLabel('when it lasted').fill('30m');
  await form.getByRole('button', { name: 'Set' }).click();
  const row = page.locator('[data-threshold="3"]');
  await expect(row).toContainText('repl.lag on report-*: rings after 30m');
  expect(sent).toEqual([{ finding: 'repl.lag', server: 'report-*', for: '30m' }]);
  await row.getByRole('button', { name: 'Remove' }).click();
  await expect(row).toBeHidden();
});

test('what was wrong tonight is a line that opens, and a part of time in the charts', async ({ page }) => {
  await page.goto('/');
  const tonight = page.locator('.tonight');
  await expect(tonight).toContainText(/Tonight: .* wrong since/);
  const line = tonight.locator('[data-finding="lock.blocker"]').first();
  await line.locator('summary').click();
  await expect(line).toContainText('told: ');
  await line.getByRole('link', { name: 'charts' }).click();
  await expect(page).toHaveURL(new RegExp(`/server/${primary}\\?from=.*&at=`));
  await expect(page.locator('.at-moment')).toContainText('others waiting for a row lock');
  const waits = chart(page, 'waits');
  await hasValue(waits);
  const box = (await waits.locator('.u-over').boundingBox())!;
  // Somewhere under the cursor the hover says what was wrong.
  await expect.poll(async () => {
    for (let x = 0.99; x > 0.5; x -= 0.01) {
      await page.mouse.move(box.x + box.width * x, box.y + 40);
      const said = await waits.locator('.tip').textContent();
      if (said?.includes('▲') && said.includes('row lock')) return true;
    }
    return false;
  }, { timeout: 60_000 }).toBe(true);
});

test('the film of the real server shows who keeps whom waiting', async ({ page, request }) => {
  const now = Math.floor(Date.now() / 1000);
  test.skip((await request.get(`/api/moments?instance=${primary}&from=${now - 60}&to=${now}`)).status() === 404, 'this Risso keeps no moments');
  await page.goto(`/server/${primary}/film`);
  await expect(page.locator('.sentence')).toContainText('keeps 3 others waiting', { timeout: 60_000 });
  await expect(page.locator('.lock-tree > li > ul > li')).toHaveCount(3);
  await expect(page.getByRole('button', { name: /^Copy: KILL \d+/ })).toBeVisible();
  await expect(page.locator('.sessions tbody tr')).toHaveCount(4);
  await page.getByRole('button', { name: 'A second earlier' }).click();
  await expect(page).toHaveURL(/at=/);
});

test('time before the first data is hatched and said to be without', async ({ page }) => {
  await page.goto(`/server/${primary}?last=7d`);
  const c = chart(page, 'throughput');
  await expect(c).not.toHaveClass(/empty/);
  await c.locator('.u-over').hover({ position: { x: 60, y: 40 } });
  await expect(c.locator('.tip')).toContainText('no data', { timeout: 60_000 });
});

test('a deployment is a mark with its name', async ({ page, request }) => {
  const made = await request.post('/api/events', { data: { text: 'deploy 1.4', servers: [primary], key: 'page-test' } });
  expect(made.ok()).toBe(true);
  await page.goto(`/server/${primary}/events?last=1h`);
  await expect(page.locator('table.events')).toContainText('deploy 1.4');
});

test('sixty servers fit on a screen, and a broken primary with its replicas is one line that opens', async ({ page, request }) => {
  const real = await (await request.get('/api/fleet')).json();
  await page.route('**/api/fleet', async (route) => {
    const fleet = { ...real, now: Date.now() / 1000 };
    const some = real.instances.filter((i: { kind: string }) => i.kind === 'server');
    fleet.instances = Array.from({ length: 80 }, (_, k) => {
      const i = { ...some[k % some.length], id: `db${k}`, name: `db${k}`, state: 'ok', findings: [], because: [] };
      if (k === 3) return { ...i, state: 'down', words: 'the server refuses connections' };
      if (k < 24 && k > 3) return { ...i, state: 'critical', words: 'replication cannot connect', because: [{ instance: 'db3', name: 'db3', finding: 'server.down', what: 'db3 is down', explains: [], all: true }] };
      return i;
    });
    await route.fulfill({ json: fleet });
  });
  await page.goto('/');
  const rows = page.locator('[data-instance]');
  await expect(rows).toHaveCount(60);
  const last = await rows.evaluateAll((all) => Math.max(...all.map((e) => e.getBoundingClientRect().bottom)));
  expect(last).toBeLessThanOrEqual(900);
  expect(await rows.evaluateAll((all) => Math.min(...all.map((e) => e.getBoundingClientRect().height)))).toBeGreaterThanOrEqual(24);
  await expect(page.locator('.sentence')).toContainText('20 others have trouble because of it');
  await page.getByRole('button', { name: /because of it 20 others/ }).click();
  await expect(page).toHaveURL(/open=db3/);
  await expect(rows).toHaveCount(80);
  await page.getByLabel('Filter servers').fill('db7');
  await expect(rows).toHaveCount(11);
  await page.getByLabel('State', { exact: true }).selectOption('bad');
  await expect(page).toHaveURL(/q=db7.*state=bad|state=bad.*q=db7/);
});

test('a phone finds by search, and a tap shows what others hover for', async ({ browser, baseURL }) => {
  const context = await browser.newContext({ baseURL, viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true });
  const page = await context.newPage();
  await page.goto(`/server/${primary}`);
  await page.locator('.search').tap();
  await page.keyboard.type('Com_select');
  await page.getByRole('option').first().tap();
  await expect(page).toHaveURL(/pin=/);
  const c = chart(page, 'threads_running');
  await hasValue(c);
  await c.locator('.u-over').tap({ position: { x: 200, y: 40 } });
  await expect(page).toHaveURL(/at=/);
  await expect(page.locator('.at-moment')).toContainText(/^At /);
  await page.goto('/');
  await page.locator(`[data-instance="${primary}"] .c-threads`).tap();
  await expect(page.locator('.said')).toHaveText(/^\d/);
  for (const path of ['/', '/alerts', '/incidents', `/server/${primary}/alerts`]) {
    await page.goto(path);
    await expect(page.locator('h1')).toHaveCount(1);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), path).toBeLessThanOrEqual(0);
  }
  await context.close();
});

// Each page once; the theme and the width change under it.
for (const path of ['/', '/alerts', '/incidents', '/queries', '/benchmarks', '/protect', '', '/alerts', '/incidents', '/queries', '/metrics?q=threads', '/variables?q=innodb_b', '/events', '/protect'].map((p, i) => (i < 6 ? p : `/server/${primary}${p}`))) {
  test(`nothing keeps people out of ${path}`, async ({ page }) => {
    await page.goto(path);
    await expect(page.locator('h1')).toHaveCount(1);
    await page.waitForLoadState('networkidle').catch(() => undefined);
    await openToAll(page);
  });
}
