import { expect, test, type Page } from '@playwright/test';
import { openToAll } from './axe';

const PASSWORD = 'correct horse battery staple';

const shot = async (page: Page, name: string): Promise<void> => {
  if (process.env.RISSO_SHOTS) await page.screenshot({ path: `${process.env.RISSO_SHOTS}/${name}.png` });
};

async function signIn(page: Page, user: string, password = PASSWORD): Promise<void> {
  await page.goto('/alerts');
  await page.getByLabel('User').fill(user);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}

const menu = (page: Page, user: string) => page.getByRole('button', { name: `Signed in as ${user}` });

// Users ann, who may manage access, and bob, who may look, as tests/page makes them.
test.describe('signing in', () => {
  test.skip(!process.env.RISSO_SIGNIN, 'RISSO_SIGNIN is not set: no users');

  test('a wrong password is said, a right one lets in, and signing out ends it for good', async ({ page, context }) => {
    await signIn(page, 'ann', 'a wrong password');
    await expect(page.getByRole('alert')).toContainText('do not belong together');
    await expect(page.getByLabel('Password')).toHaveValue('');
    await openToAll(page);
    await shot(page, 'signin');
    await signIn(page, 'Ann');
    await expect(menu(page, 'ann')).toBeVisible();
    const cookies = await context.cookies();
    const session = cookies.find((c) => c.name === 'risso_session');
    expect(session?.httpOnly && session.sameSite === 'Strict').toBe(true);
    expect(await page.evaluate(() => document.cookie)).toBe('');
    await menu(page, 'ann').click();
    await expect(page.locator('.viewer-menu')).toContainText('ann may manage access; signed in by password');
    await openToAll(page);
    await shot(page, 'signed-in');
    await page.getByRole('button', { name: 'Sign out', exact: true }).click();
    await expect(page.getByLabel('Password')).toBeVisible();
    await context.addCookies([session!]);
    await page.goto('/');
    await expect(page.getByLabel('Password')).toBeVisible();
  });

  test('who may look sees that changing is not for him', async ({ page }) => {
    await signIn(page, 'bob');
    await expect(menu(page, 'bob')).toBeVisible();
    const set = page.getByRole('button', { name: 'Set', exact: true });
    await expect(set).toBeDisabled();
    await expect(set).toHaveAttribute('title', /--role change/);
    await menu(page, 'bob').click();
    await page.keyboard.press('Escape');
    await expect(page.locator('.viewer-menu')).toHaveCount(0);
  });

  test('a new password ends other sessions, and a token lets in, too', async ({ page, browser, baseURL }) => {
    const other = await browser.newPage({ baseURL });
    await signIn(other, 'kim');
    await expect(menu(other, 'kim')).toBeVisible();
    await signIn(page, 'kim');
    await menu(page, 'kim').click();
    await page.getByRole('button', { name: 'Change password…' }).click();
    await page.getByLabel('Present password').fill(PASSWORD);
    await page.getByLabel(/New password/).fill('another long password');
    await page.getByRole('button', { name: 'Change it' }).click();
    await expect(page.getByRole('status')).toContainText('was changed');
    await expect(other.getByLabel('Password')).toBeVisible({ timeout: 60_000 });
    await other.getByRole('button', { name: 'Sign in with a token' }).click();
    await other.getByLabel('Token').fill(process.env.RISSO_SIGNIN!);
    await other.getByRole('button', { name: 'Sign in', exact: true }).click();
    await expect(menu(other, 'wall')).toBeVisible();
    await menu(other, 'wall').click();
    await expect(other.locator('.viewer-menu')).toContainText('signed in by token');
    await expect(other.getByRole('button', { name: 'Change password…' })).toHaveCount(0);
    await other.close();
  });
});
