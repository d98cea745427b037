import { defineConfig } from '@playwright/test';

// Runs against a Risso that is already up: RISSO_URL says where. CHROMIUM names the browser.
export default defineConfig({
  testDir: 'e2e',
  // A machine that runs all tests at once takes its time: these bound what hangs, and say nothing of what is fast.
  timeout: 240_000,
  expect: { timeout: 30_000 },
  workers: 1,
  outputDir: 'test-results',
  reporter: [['list']],
  use: {
    baseURL: process.env.RISSO_URL ?? 'http://127.0.0.1:8306',
    viewport: { width: 1440, height: 900 },
    screenshot: 'only-on-failure',
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: [
        '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
        '--disable-component-update', '--disable-sync',
      ],
    },
  },
});
