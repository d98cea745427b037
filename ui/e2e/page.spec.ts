import { expect, test } from '@playwright/test';
import { chart, complaints, hasValue, instance, painted } from './helpers';

test('the fleet has a row for each instance, with live numbers', async ({ page, request }) => {
  const errors = complaints(page);
  const id = await instance(request);
  await page.goto('/');
  const row = page.locator(`[data-instance="${id}"]`);
  await expect(row).toBeVisible();
  await expect(row.locator('.state')).toHaveText(/ok|warning|critical|new/);
  await expect(row.locator('.spark-line')).toHaveAttribute('d', /M/, { timeout: 60_000 });
  const before = await row.locator('.spark-line').getAttribute('d');
  await expect.poll(() => row.locator('.spark-line').getAttribute('d'), { timeout: 60_000 }).not.toBe(before);
  await expect(page.locator('.own')).toContainText('of a core');
  await row.locator('a').first().click();
  await expect(page).toHaveURL(new RegExp(`/server/${encodeURIComponent(id)}`));
  await page.goBack();
  await expect(row).toBeVisible();
  expect(errors).toEqual([]);
});

test('an error of its own is said: a part of the page may stand still after it', async ({ page, request }) => {
  await page.goto('/');
  await expect(page.locator(`[data-instance="${await instance(request)}"]`)).toBeVisible();
  await expect(page.locator('.banner')).toHaveCount(0);
  await page.evaluate(() => setTimeout(() => { throw new Error('made up'); }));
  await expect(page.locator('.banner')).toContainText(/may show what is old.*made up/);
  await page.getByRole('button', { name: 'Reload it' }).click();
  await expect(page.locator(`[data-instance="${await instance(request)}"]`)).toBeVisible();
  await expect(page.locator('.banner')).toHaveCount(0);
});

test('the charts of a server have data and move', async ({ page, request }) => {
  const errors = complaints(page);
  await page.goto(`/server/${await instance(request)}?last=5m`);
  for (const id of ['throughput', 'threads_running', 'commands']) await hasValue(chart(page, id));
  expect(await painted(chart(page, 'throughput'))).toBeGreaterThan(500);
  const asked: URL[] = [];
  page.on('request', (r) => r.url().includes('/api/chart') && asked.push(new URL(r.url())));
  await expect.poll(() => asked.length, { timeout: 60_000 }).toBeGreaterThan(2);
  // Live, only what is new is asked for: seconds, not the range.
  for (const u of asked.slice(1)) expect(Number(u.searchParams.get('to')) - Number(u.searchParams.get('from'))).toBeLessThan(30);
  expect(errors).toEqual([]);
});

test('a drag zooms all charts, and Back and double click return', async ({ page, request }) => {
  await page.goto(`/server/${await instance(request)}?last=15m`);
  const c = chart(page, 'throughput');
  await hasValue(c);
  const box = (await c.locator('.u-over').boundingBox())!;
  const drag = async (): Promise<void> => {
    await page.mouse.move(box.x + box.width * 0.5, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.8, box.y + 50, { steps: 5 });
    await page.mouse.up();
    await expect(page).toHaveURL(/from=.*&to=/);
  };
  await drag();
  const zoomed = new URL(page.url()).searchParams;
  const span = (Date.parse(zoomed.get('to')!) - Date.parse(zoomed.get('from')!)) / 1000;
  expect(span).toBeGreaterThan(200);
  expect(span).toBeLessThan(340);
  await page.goBack();
  await expect(page).not.toHaveURL(/from=/);
  await expect(page.getByRole('button', { name: '15m' })).toHaveAttribute('aria-pressed', 'true');
  await drag();
  await c.locator('.u-over').dblclick({ position: { x: 100, y: 40 } });
  await expect(page).not.toHaveURL(/from=/);
});

test('one cursor goes through all charts, and a click pins it into the link', async ({ page, request }) => {
  await page.goto(`/server/${await instance(request)}?last=5m`);
  await hasValue(chart(page, 'threads_running'));
  const box = (await chart(page, 'throughput').locator('.u-over').boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.6, box.y + 30);
  const line = (id: string) => chart(page, id).locator('.u-cursor-x').evaluate((e) => new DOMMatrix(getComputedStyle(e).transform).e);
  await expect.poll(() => line('throughput')).toBeGreaterThan(100);
  await expect.poll(() => line('threads_running')).toBeGreaterThan(100);
  await page.mouse.down();
  await page.mouse.up();
  await expect(page).toHaveURL(/at=\d{4}-/);
  await page.keyboard.press('Escape');
  await expect(page).not.toHaveURL(/at=/);
});

test('search finds a metric by MySQL\'s own name and pins it as a chart', async ({ page, request }) => {
  await page.goto(`/server/${await instance(request)}`);
  await hasValue(chart(page, 'throughput'));
  await page.keyboard.press('/');
  await page.keyboard.type('Com_select');
  await expect(page.getByRole('option').first()).toContainText('Com_select');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/pin=/);
  const pinned = page.locator('[data-chart^="pin-mysql_global_status_commands_total"]');
  await hasValue(pinned);
  await page.reload();
  await hasValue(pinned);
  await pinned.getByRole('button', { name: /Remove/ }).click();
  await expect(page).not.toHaveURL(/pin=/);
});

test('the lists of metrics, variables and events open, filter and are links', async ({ page, request }) => {
  const id = await instance(request);
  await page.goto(`/server/${id}/metrics?q=com+select`);
  await expect(page.locator('table.list tbody tr').first()).toContainText('Com_select');
  await page.getByRole('link', { name: 'Variables' }).click();
  await page.getByLabel('Filter variables').fill('max_connections');
  await expect(page.locator('table.variables tbody tr').first()).toContainText('max_connections', { timeout: 60_000 });
  await expect(page).toHaveURL(/q=max_connections/);
  await page.getByRole('link', { name: 'Events' }).click();
  await expect(page.getByLabel('Filter events')).toBeVisible();
});

test('the keyboard moves in time, switches live and shows its keys', async ({ page, request }) => {
  await page.goto(`/server/${await instance(request)}?last=1h`);
  await hasValue(chart(page, 'throughput'));
  await page.keyboard.press('ArrowLeft');
  await expect(page).toHaveURL(/from=/);
  await page.keyboard.press('l');
  await expect(page).toHaveURL(/last=1h/);
  await page.keyboard.press('+');
  await expect(page).toHaveURL(/last=30m/);
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog')).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toBeHidden();
  await page.keyboard.press('g');
  await page.keyboard.press('f');
  await expect(page.locator('table.fleet')).toBeVisible();
});

test('a time can be typed', async ({ page, request }) => {
  await page.goto(`/server/${await instance(request)}`);
  await page.getByRole('button', { name: 'from – to' }).click();
  await page.getByLabel('from', { exact: true }).fill('-10m');
  await page.getByLabel('to', { exact: true }).fill('-5m');
  await page.getByRole('button', { name: 'Show' }).click();
  await expect(page).toHaveURL(/from=.*&to=/);
  const q = new URL(page.url()).searchParams;
  expect(Date.parse(q.get('to')!) - Date.parse(q.get('from')!)).toBe(300_000);
});

test('dark and light follow the system, then the viewer', async ({ page }) => {
  const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = (c: string): boolean => Number(/\d+/.exec(c)![0]) > 128;
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.goto('/');
  expect(light(await ground())).toBe(false);
  await page.emulateMedia({ colorScheme: 'light' });
  expect(light(await ground())).toBe(true);
  await page.getByRole('button', { name: 'Switch to dark' }).click();
  expect(light(await ground())).toBe(false);
  await page.reload();
  expect(light(await ground())).toBe(false);
});

test('a phone shows the same in one column, without scrolling sideways', async ({ page, request }) => {
  const id = await instance(request);
  await page.setViewportSize({ width: 375, height: 780 });
  for (const path of ['/', `/server/${id}`, `/server/${id}/metrics`, `/server/${id}/variables`, `/server/${id}/events`]) {
    await page.goto(path);
    await page.waitForTimeout(1200);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(over, path).toBeLessThanOrEqual(0);
  }
});

// How soon that is depends on the machine; what it waits for does not.
test('the first paint waits for no answer and for little to load', async ({ page, request }) => {
  for (const path of ['/', `/server/${await instance(request)}`]) {
    let answer = (): void => {};
    const painted = new Promise<void>((resolve) => (answer = resolve));
    await page.route('**/api/**', async (route) => {
      await painted;
      await route.continue().catch(() => {});
    });
    await page.goto(path, { waitUntil: 'commit' });
    await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0);
    const [ms, bytes] = await page.evaluate(() => {
      const loaded = performance.getEntriesByType('resource') as PerformanceResourceTiming[];
      return [performance.getEntriesByName('first-contentful-paint')[0].startTime, loaded.reduce((n, r) => n + r.decodedBodySize, 0)];
    });
    test.info().annotations.push({ type: 'first paint', description: `${path}: ${Math.round(ms)} ms, ${bytes} bytes` });
    expect(bytes, path).toBeGreaterThan(0);
    expect(bytes, path).toBeLessThan(300_000);
    answer();
    await page.unrouteAll({ behavior: 'wait' });
  }
});
