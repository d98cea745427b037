/** Questions about statements, asked again when the range moves on; the last answer stays until the next is there. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, serverNow } from '../api';
import { view } from '../common/router';
import { minutes } from './window';
import type { Span } from '../api';

const AGAIN_MS = 5000;

/** What a question has brought so far. */
export interface Answer<T> {
  /** the newest answer, perhaps to the question before */
  data: T | null;
  error: ApiError | null;
  /** the answer to this very question is not there yet */
  waiting: boolean;
}

/** Asks when the key changes, and again after an error; an empty key asks nothing. */
export function useAnswer<T>(key: string, ask: (signal: AbortSignal) => Promise<T>): Answer<T> {
  const [held, setHeld] = useState<{ key: string; data: T | null; error: ApiError | null }>({ key: '', data: null, error: null });
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    if (key === '') return;
    const abort = new AbortController();
    let timer = 0;
    const run = async (): Promise<void> => {
      try {
        const data = await latest.current(abort.signal);
        if (!abort.signal.aborted) setHeld({ key, data, error: null });
      } catch (e) {
        if (abort.signal.aborted) return;
        const error = e instanceof ApiError ? e : new ApiError(0, String(e));
        setHeld((h) => ({ key, data: h.data, error }));
        // What was wrong with the question stays wrong.
        if (error.status === 0 || error.status >= 500) timer = window.setTimeout(run, AGAIN_MS);
      }
    };
    void run();
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [key]);
  return { data: held.data, error: held.error, waiting: key !== '' && held.key !== key };
}

/** The whole minutes on the screen; a live range moves on with each minute. */
export function useMinutes(): Span {
  const { range } = view.value;
  const [, tick] = useState(0);
  const span = minutes(range, serverNow());
  const end = useRef(span.to);
  end.current = span.to;
  useEffect(() => {
    if (!range.live) return;
    const timer = setInterval(() => {
      if (!document.hidden && minutes(range, serverNow()).to !== end.current) tick((n) => n + 1);
    }, 1000);
    return () => clearInterval(timer);
  }, [range]);
  return span;
}
