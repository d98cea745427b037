import { test, type Page } from '@playwright/test';

// Not a test: script/pictures makes the pictures of docs/ with it.
const folder = process.env.RISSO_PICTURES ?? '';
test.skip(folder === '', 'script/pictures makes the pictures');

type Row = { id: string; kind: string; role?: string };

async function take(page: Page, name: string, path: string, width: number, height: number, ready: string, before?: () => Promise<void>): Promise<void> {
  await page.setViewportSize({ width, height });
  await page.goto(path);
  await page.locator(ready).first().waitFor();
  await before?.();
  await page.waitForTimeout(2500); // charts that draw themselves
  await page.screenshot({ path: `${folder}/${name}.png` });
}

test('the pictures of docs', async ({ page, request }) => {
  test.setTimeout(120_000);
  await page.emulateMedia({ colorScheme: 'light' });
  const fleet = (await (await request.get('/api/fleet')).json()) as { instances: Row[] };
  const primary = fleet.instances.find((i) => i.role === 'primary')!.id;
  const incidents = (await (await request.get(`/api/incidents?instance=${primary}&from=${Math.floor(Date.now() / 1000) - 3600}&to=${Math.ceil(Date.now() / 1000)}`)).json()) as { incidents?: { id: string; began: string }[] };
  await take(page, 'fleet', '/', 1300, 620, '.troubles li');
  await take(page, 'server', `/server/${primary}?last=5m`, 1400, 1000, '[data-chart] canvas');
  await take(page, 'alerts', '/alerts?last=15m', 1300, 860, '.rang .span');
  await take(page, 'queries', `/server/${primary}/queries?last=15m`, 1280, 800, 'table tbody tr');
  await take(page, 'protect', `/server/${primary}/protect`, 1200, 860, 'main .sentence');
  const incident = incidents.incidents?.[0];
  if (!incident) throw new Error('no incident was kept of the pile-up');
  const at = new Date(Date.parse(incident.began) + 10_000).toISOString().slice(0, 19);
  await take(page, 'incident', `/incidents/${incident.id}?at=${at}Z`, 1200, 1200, '.story li');
});
