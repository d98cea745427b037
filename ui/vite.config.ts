import { defineConfig } from 'vitest/config';

// The built page is committed and embedded into the Go binary, so its files keep their names
// and hold nothing that depends on the time or the machine: script/test rebuilds and compares.
export default defineConfig({
  build: {
    target: 'es2022',
    assetsInlineLimit: 0, // a data: URL would need a hole in the content security policy
    cssCodeSplit: false,
    modulePreload: false,
    reportCompressedSize: false,
    rollupOptions: {
      output: {
        entryFileNames: 'app.js',
        chunkFileNames: 'app-[name].js',
        assetFileNames: 'app[extname]',
      },
    },
  },
  server: {
    proxy: { '/api': process.env.RISSO_URL ?? 'http://127.0.0.1:8306' },
  },
  test: { include: ['src/**/*.test.ts'] },
});
