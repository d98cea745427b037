/** Polling, politely: never two requests at a time, and none while the page is hidden. */
import { useEffect, useRef } from 'preact/hooks';

/** Runs f now and then every so many milliseconds after it ended, while the page is visible. */
export function usePoll(f: (still: () => boolean) => Promise<unknown>, ms: number, on: unknown[]): void {
  const latest = useRef(f);
  latest.current = f;
  useEffect(() => {
    let timer = 0;
    let ended = false;
    let running = false;
    const run = async (): Promise<void> => {
      if (running) return;
      running = true;
      clearTimeout(timer);
      const start = performance.now();
      try {
        await latest.current(() => !ended);
      } catch {
        // The banner and the login form say what is wrong; the next turn tries again.
      }
      running = false;
      if (!ended && !document.hidden) timer = window.setTimeout(run, Math.max(100, ms - (performance.now() - start)));
    };
    const wake = (): void => {
      if (!document.hidden) void run();
    };
    void run();
    document.addEventListener('visibilitychange', wake);
    return () => {
      ended = true;
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', wake);
    };
  }, [ms, ...on]);
}

/** Asks like usePoll, and takes the answer, unless something of `on` changed meanwhile: an answer that is late must not replace a newer one. */
export function usePolled<T>(ask: () => Promise<T>, take: (got: T) => void, ms: number, on: unknown[]): void {
  usePoll(async (still) => {
    const got = await ask();
    if (still()) take(got);
  }, ms, on);
}
