/** What the specs share: which instance to look at, and how to look at a chart. */
import { expect, type APIRequestContext, type Locator, type Page } from '@playwright/test';

/** The instance that the specs look at: RISSO_INSTANCE, or the first server that is up. */
export async function instance(request: APIRequestContext): Promise<string> {
  if (process.env.RISSO_INSTANCE) return process.env.RISSO_INSTANCE;
  const fleet = (await (await request.get('/api/fleet')).json()) as { instances: { id: string; kind: string; state: string }[] };
  const server = fleet.instances.find((i) => i.kind === 'server' && i.state !== 'down');
  expect(server, 'a server that is up; set RISSO_INSTANCE to choose one').toBeTruthy();
  return server!.id;
}

/** A chart by its id. */
export function chart(page: Page, id: string): Locator {
  return page.locator(`[data-chart="${id}"]`);
}

/** Waits until a chart shows a number. */
export async function hasValue(c: Locator): Promise<void> {
  await expect(c.locator('[data-v="0"]')).not.toHaveText('–', { timeout: 60_000 });
}

/** How many pixels of a chart's canvas are painted. */
export function painted(c: Locator): Promise<number> {
  return c.locator('canvas').evaluate((el) => {
    const canvas = el as HTMLCanvasElement;
    const px = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height).data;
    let n = 0;
    for (let i = 3; i < px.length; i += 4) if (px[i] > 0) n++;
    return n;
  });
}

/** Collects what the browser complains about: script errors and blocked content. */
export function complaints(page: Page): string[] {
  const out: string[] = [];
  page.on('pageerror', (e) => out.push(e.message));
  page.on('console', (m) => {
    if (m.type() === 'error' && /Content Security Policy|Uncaught|TypeError/.test(m.text())) out.push(m.text());
  });
  return out;
}
