import { execSync } from 'node:child_process';
import { expect, test } from '@playwright/test';
import { chart, complaints, hasValue, instance } from './helpers';

const command = process.env.RISSO_RESTART_CMD;

test('the page survives a restart of the watched server', async ({ page, request }) => {
  test.skip(!command, 'RISSO_RESTART_CMD is not set: no command to restart the watched server with');
  const errors = complaints(page);
  const id = await instance(request);
  await page.goto(`/server/${id}?last=5m`);
  const c = chart(page, 'throughput');
  await hasValue(c);
  execSync(command!, { stdio: 'inherit', timeout: 60_000 });
  // The gap passes, the numbers come back, and the restart is among the events.
  await expect(c.locator('[data-v="0"]')).not.toHaveText('–', { timeout: 60_000 });
  await expect
    .poll(async () => {
      const now = Math.floor(Date.now() / 1000);
      const answer = await request.get(`/api/events?instance=${encodeURIComponent(id)}&from=${now - 300}&to=${now + 5}`);
      return ((await answer.json()) as { events: { kind: string }[] }).events.map((e) => e.kind);
    }, { timeout: 60_000 })
    .toContain('restart');
  await page.goto(`/server/${id}/events?last=5m`);
  await expect(page.locator('table.events')).toContainText('restart', { timeout: 60_000 });
  expect(errors).toEqual([]);
});
