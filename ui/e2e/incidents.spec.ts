import { expect, test, type Page } from '@playwright/test';
import { openToAll } from './axe';
import { complaints, instance } from './helpers';

// A lock pile-up, a deadlock and two seconds that nobody saw, as /api/moments and /api/incident tell them.
const BEGAN = 1_795_487_017;
const FROM = BEGAN - 30;
const TO = BEGAN + 90;
const at = (s: number): string => new Date((BEGAN + s) * 1000).toISOString();
const DEADLOCK = {
  at: at(40), tick: BEGAN + 40, text: 'LATEST DETECTED DEADLOCK\n*** (1) TRANSACTION', drawn: '',
  transactions: [
    { name: '(1)', trx: '421', session: 812, user: 'app', host: 'web3', statement: 'UPDATE orders SET note = \'<img src=x onerror=alert(1)>\'', holds: ['record lock in PRIMARY of shop.orders (X)'], waits: ['record lock in PRIMARY of shop.stock (X)'], victim: true },
    { name: '(2)', trx: '422', session: 813, user: 'app', host: 'web4', statement: 'UPDATE stock SET n = 1', holds: ['record lock in PRIMARY of shop.stock (X)'], waits: ['record lock in PRIMARY of shop.orders (X)'] },
  ],
};

function moment(tick: number) {
  const s = tick - BEGAN;
  const n = s < 0 || s > 60 ? 0 : Math.min(9, s + 1);
  const blocker = { id: 811, user: 'app', host: 'web2', command: 'Sleep', seconds: s + 41, statement: 'UPDATE orders SET state = 2', transaction: s + 41 };
  return {
    tick, connected: 412, sleeping: 398,
    sessions: [
      { id: 811, user: 'app', host: 'web2', schema: 'shop', command: 'Sleep', wait: 'idle', seconds: Math.max(1, s + 41), transaction: Math.max(1, s + 41) },
      ...Array.from({ length: n }, (_, k) => ({ id: 812 + k, user: 'app', host: 'web3', schema: 'shop', command: 'Query', wait: 'row_lock', seconds: s + 1 - k, statement: `UPDATE orders SET state = 3 WHERE id = ${k}`, blocker: k === 3 ? 812 : 811 })),
    ],
    transactions: [],
    locks: Array.from({ length: n }, (_, k) => ({ waiter: 812 + k, kind: 'row_lock', schema: 'shop', name: 'orders', index: 'PRIMARY', data: '17', mode: 'X', blocker: k === 3 ? { ...blocker, id: 812 } : blocker })),
    blockers: n > 0 ? [{ id: 811, blocks: n, what: `connection 811 (app@web2) keeps ${n} others waiting`, ends: 'KILL 811' }] : [],
    numbers: { questions_per_second: n > 0 ? 40 : 812, threads_running: n + 1 },
    ...(tick === DEADLOCK.tick ? { deadlock: DEADLOCK } : {}),
  };
}

const MISSING = [{ from: BEGAN + 20, to: BEGAN + 23, why: 'not kept' }];
const ticks = Array.from({ length: TO - FROM }, (_, i) => FROM + i).filter((t) => t < MISSING[0].from || t >= MISSING[0].to);

async function told(page: Page, id: string): Promise<string[]> {
  const asked: string[] = [];
  const row = { id: `${id}-1`, instance: id, server: id, why: 'stall', began: at(0), captured: at(1), ended: at(61), open: false, severity: 'critical', bytes: 81_234, title: `${id} stalled for 61 s: connection 811 (app@web2) kept 9 others waiting` };
  await page.route('**/api/moments?*', (r) => r.fulfill({ json: {
    instance: id, from: FROM, to: TO, oldest: FROM, newest: TO, tick: ticks, missing: MISSING, down: ticks.map(() => 0),
    running: ticks.map((t) => moment(t).locks.length + 1), waiting: [], blocked: ticks.map((t) => moment(t).locks.length), questions: [], transactions: [], deadlock: ticks.map((t) => Number(t === DEADLOCK.tick)),
  } }));
  await page.route('**/api/moment?*', (r) => {
    const t = Number(new URL(r.request().url()).searchParams.get('at'));
    asked.push(String(t - BEGAN));
    return r.fulfill({ json: { instance: id, asked: t, oldest: FROM, newest: TO, missing: [], moment: moment(t) } });
  });
  await page.route('**/api/incidents?*', (r) => r.fulfill({ json: { incidents: [row] } }));
  await page.route('**/api/incident?*', (r) => r.fulfill({ json: {
    incident: row,
    story: { first: `${id} stalled for 61 s: connection 811 (app@web2) kept 9 others waiting for a row lock.`, ended: 'It ended when connection 811 committed.', steps: [
      { at: at(-900), kind: 'before', text: 'deploy 1.4' }, { at: at(0), kind: 'begin', text: 'throughput fell from 812 to 40 questions a second', severity: 'critical' },
      { at: at(1), kind: 'blocker', text: 'connection 811 (app@web2): idle in a transaction, keeps 2 others waiting', severity: 'warning' },
      { at: at(40), kind: 'deadlock', text: 'a deadlock: (1) was rolled back', severity: 'warning' }, { at: at(61), kind: 'end', text: 'connection 811 committed' }] },
    from: FROM, to: TO, lines: [{ name: 'questions per second', key: 'questions_per_second', unit: '', values: Array.from({ length: TO - FROM }, (_, i) => (ticks.includes(FROM + i) ? moment(FROM + i).numbers.questions_per_second : null)) }],
    moments: ticks.map(moment), missing: MISSING, changed: [{ id: 1, time: at(-900), instance: id, kind: 'deploy', severity: 'info', text: 'deploy 1.4' }], innodb: 'INNODB MONITOR OUTPUT', deadlocks: [DEADLOCK],
  } }));
  return asked;
}

test('an incident is a story on a time line, with the film of it', async ({ page, request }) => {
  const errors = complaints(page);
  const id = await instance(request);
  await told(page, id);
  await page.goto('/');
  await expect(page.locator('[data-instance]').first()).toBeVisible();
  await page.keyboard.press('g');
  await page.keyboard.press('i');
  await expect(page).toHaveURL(/\/incidents/);
  await page.getByRole('link', { name: /stalled for 61 s/ }).click();
  await expect(page.locator('.sentence').first()).toContainText('kept 9 others waiting for a row lock');
  await expect(page.locator('.story li')).toHaveCount(5);
  // A step of the story leads to its second: the deadlock is drawn there, its statements as text.
  await page.locator('.story li').nth(3).getByRole('button').click();
  await expect(page).toHaveURL(/at=/);
  const dead = page.locator('.deadlock').first();
  await expect(dead.locator('.victim')).toContainText('rolled back');
  await expect(dead).toContainText('<img src=x onerror=alert(1)>');
  await expect(page.locator('.lock-tree > li > p').first()).toContainText('keeps 9 waiting');
  await expect(page.getByRole('button', { name: 'Copy: KILL 811' })).toBeVisible();
  await expect(page.locator('.sessions tbody tr')).toHaveCount(10);
  await expect(page.getByRole('link', { name: 'one HTML file' })).toHaveAttribute('href', /^\/api\/incident\.html\?id=/);
  expect(errors).toEqual([]);
});

test('a film goes second by second, says what is missing, and its link shows the same second', async ({ page, request }) => {
  const id = await instance(request);
  const asked = await told(page, id);
  await page.goto(`/server/${id}/film?at=${at(2).slice(0, 19)}Z`);
  await expect(page.locator('.sentence')).toContainText('keeps 3 others waiting');
  await page.getByRole('button', { name: 'A second later' }).click();
  await expect(page.locator('.sentence')).toContainText('keeps 4 others waiting');
  await expect(page).toHaveURL(new RegExp(`at=${at(3).slice(0, 19)}Z`.replace(/:/g, '(:|%3A)')));
  await page.reload();
  await expect(page.locator('.sentence')).toContainText('keeps 4 others waiting');
  // The fourth waits behind another that waits.
  await expect(page.locator('.lock-tree li li li')).toHaveCount(1);
  await page.getByRole('slider', { name: 'Second' }).focus();
  await page.keyboard.press('ArrowRight');
  await expect(page.locator('.sentence')).toContainText('keeps 5 others waiting');
  await page.getByRole('button', { name: '20×' }).click();
  await expect(page.locator('.sentence')).toContainText('keeps 9 others waiting');
  await expect(page.locator('.player')).toContainText('one part is missing');
  await expect(page.getByRole('button', { name: 'Play' })).toBeVisible({ timeout: 60_000 });
  // Seconds that are not kept are not asked for.
  expect(asked).not.toContain('21');
});

test('nothing keeps people out of an incident and its film', async ({ page, request }) => {
  const id = await instance(request);
  await told(page, id);
  for (const path of ['/incidents', `/incidents/${id}-1?at=${at(40).slice(0, 19)}Z`, `/server/${id}/film?at=${at(40).slice(0, 19)}Z`]) {
    await page.goto(path);
    await expect(page.locator('.sentence').first()).not.toHaveText('\u00a0');
    await openToAll(page, path);
    await page.setViewportSize({ width: 390, height: 800 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), path).toBeLessThanOrEqual(0);
    await page.setViewportSize({ width: 1440, height: 900 });
  }
});
