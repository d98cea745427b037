import { expect, test } from '@playwright/test';
import { chart, complaints, hasValue, instance, painted } from './helpers';

// The benchmarks that the test made: of the same workload, the second at a given rate.
const [FIRST, SECOND] = (process.env.RISSO_BENCHMARKS ?? '').split(',');

test.describe('benchmarks', () => {
  test.skip(!FIRST || !SECOND, 'RISSO_BENCHMARKS is not set: no benchmark to look at');

  test('the list leads to a run, which stands on one clock with its server', async ({ page, request }) => {
    const errors = complaints(page);
    const id = await instance(request);
    const loaded: string[] = [];
    page.on('request', (r) => loaded.push(new URL(r.url()).pathname));
    await page.goto('/');
    await expect(page.locator(`[data-instance="${id}"]`)).toBeVisible();
    expect(loaded).not.toContain('/app-benchmarks.js'); // visitors of the charts do not pay for it
    await page.getByRole('link', { name: 'Benchmarks' }).click();
    const row = page.locator(`[data-benchmark="${FIRST}"]`);
    await expect(row).toContainText('point_select');
    await expect(row).toContainText('watched');
    await row.getByRole('link', { name: 'point_select' }).click();
    await expect(page).toHaveURL(new RegExp(`/benchmarks/${FIRST}$`));
    await expect(page.locator('[data-sentence]')).toContainText(/transactions\/s over .* half within/);
    await expect(page.locator('[data-machine]')).toContainText(/client .* processor/);
    for (const c of ['b-transactions', 'b-latency', 'throughput', 'threads_running']) {
      await chart(page, c).scrollIntoViewIfNeeded();
      await hasValue(chart(page, c));
      expect(await painted(chart(page, c))).toBeGreaterThan(300);
    }
    // The cursor goes through the run's and the server's charts at the same time, and both count the same work.
    const own = chart(page, 'b-transactions');
    await own.scrollIntoViewIfNeeded();
    const box = (await own.locator('.u-over').boundingBox())!;
    await page.mouse.move(box.x + box.width * 0.55, box.y + 20);
    const shown = async (c: string): Promise<number> => Number(/^[\d.,]+/.exec((await chart(page, c).locator('[data-v="0"]').getAttribute('title'))!)![0].replaceAll(',', ''));
    await expect.poll(() => shown('b-transactions')).toBeGreaterThan(10);
    const [mine, servers] = [await shown('b-transactions'), await shown('throughput')];
    expect(servers / mine).toBeGreaterThan(0.5);
    expect(servers / mine).toBeLessThan(2);
    await expect(page.locator('.environment').first()).toContainText('MariaDB');
    await page.getByRole('link', { name: /during the run/ }).click();
    await expect(page).toHaveURL(new RegExp(`/server/${id}\\?from=`));
    await hasValue(chart(page, 'throughput'));
    expect(errors).toEqual([]);
  });

  test('two runs stand side by side, and the link keeps them', async ({ page }) => {
    const errors = complaints(page);
    await page.goto(`/benchmarks/${FIRST}`);
    await page.getByLabel('beside it').selectOption(SECOND);
    await expect(page).toHaveURL(new RegExp(`beside=${SECOND}`));
    await expect(page.locator('[data-versus]')).toContainText(/B did [\d.]+ times the transactions of A/);
    await expect(chart(page, 'b-transactions')).toHaveCount(2);
    for (const i of [0, 1]) await hasValue(chart(page, 'b-transactions').nth(i));
    await page.reload();
    await expect(chart(page, 'throughput')).toHaveCount(2);
    await expect(page.locator('.figures thead')).toContainText('B / A');
    const [head, body] = await Promise.all(['thead', 'tbody'].map((part) => page.locator(`.figures ${part}`).boundingBox()));
    expect(head!.y + head!.height).toBeLessThanOrEqual(body!.y + 1); // a table, not side by side
    await page.goBack();
    await expect(chart(page, 'b-transactions')).toHaveCount(1);
    expect(errors).toEqual([]);
  });

  test('a server has its own list, and a run that is not there is said', async ({ page, request }) => {
    await page.goto(`/server/${await instance(request)}/benchmarks`);
    await expect(page.locator(`[data-benchmark="${SECOND}"]`)).toBeVisible();
    await page.goto('/benchmarks/999999');
    await expect(page.locator('main')).toContainText('There is no benchmark 999999');
    await page.goto('/benchmarks/nonsense');
    await expect(page.locator('main')).toContainText('There is no benchmark nonsense');
  });

  test('a benchmark can be forgotten', async ({ page }) => {
    await page.goto(`/benchmarks/${SECOND}`);
    page.on('dialog', (d) => void d.accept());
    await page.getByRole('button', { name: 'Delete this benchmark' }).click();
    await expect(page.locator(`[data-benchmark="${FIRST}"]`)).toBeVisible();
    await expect(page.locator(`[data-benchmark="${SECOND}"]`)).toHaveCount(0);
  });
});
