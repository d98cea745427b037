/** Questions about benchmarks: asked once, and again when Risso did not answer. */
import { useEffect, useState } from 'preact/hooks';
import { ApiError } from '../api';

const AGAIN_MS = 3000;

/** The answer to a question, or why there is none yet. */
export interface Asked<T> {
  data: T | null;
  error: ApiError | null;
}

/** Asks when the key changes; an empty key asks nothing. */
export function useAsked<T>(key: string, ask: (signal: AbortSignal) => Promise<T>): Asked<T> {
  const [held, setHeld] = useState<Asked<T>>({ data: null, error: null });
  useEffect(() => {
    if (key === '') return;
    const abort = new AbortController();
    let timer = 0;
    const run = (): void => {
      ask(abort.signal).then(
        (data) => !abort.signal.aborted && setHeld({ data, error: null }),
        (e: unknown) => {
          if (abort.signal.aborted) return;
          const error = e instanceof ApiError ? e : new ApiError(0, String(e));
          setHeld((h) => ({ data: h.data, error }));
          if (error.status === 0 || error.status >= 500) timer = window.setTimeout(run, AGAIN_MS);
        },
      );
    };
    run();
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [key]);
  return held;
}
