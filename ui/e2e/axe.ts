/** Asks axe-core what keeps people out of a page. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, type Page } from '@playwright/test';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

// The rules that a page breaks, each with the first elements: WCAG 2.2 AA and what is held to be good besides, or only some.
async function barriers(page: Page, rules?: string[]): Promise<string[]> {
  // As the debugger evaluates it, no content security policy is in its way.
  await page.evaluate(source);
  return page.evaluate(async (only) => {
    type Found = { id: string; nodes: { target: string[]; any: { message: string }[] }[] };
    const axe = (window as unknown as { axe: { run(options: object): Promise<{ violations: Found[] }> } }).axe;
    const found = await axe.run({ runOnly: only ?? ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'], resultTypes: ['violations'] });
    return found.violations.map((v) => `${v.id} (${v.nodes.length}): ${v.nodes.slice(0, 4).map((n) => `${n.target.join(' ')} [${n.any[0]?.message ?? ''}]`).join('; ')}`);
  }, rules);
}

/** Nothing keeps people out of the page on the screen: in light, in dark, and on a phone. It is left as it was. */
export async function openToAll(page: Page, what = page.url()): Promise<void> {
  const size = page.viewportSize()!;
  await page.emulateMedia({ colorScheme: 'light' });
  expect(await barriers(page), `${what}, light`).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await barriers(page, ['color-contrast']), `${what}, dark`).toEqual([]);
  await page.setViewportSize({ width: 390, height: 800 });
  expect(await barriers(page), `${what}, dark, on a phone`).toEqual([]);
  await page.setViewportSize(size);
  await page.emulateMedia({ colorScheme: 'light' });
}
