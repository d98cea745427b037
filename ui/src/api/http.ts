/** How the page speaks HTTP with the server. Times are unix seconds. */
import { signal } from '@preact/signals';

/** An answer that was not what was asked for; the remedy says what to do. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly remedy: string = '',
  ) {
    super(message);
  }
}

/** True when the server asked for a token; the page then shows the login form. */
export const needLogin = signal(false);
/** False when the viewer's token may look and not act. */
export const mayAct = signal(true);
/** Why a button that acts does nothing then. */
export const NO_ACT = 'This token may only look. To act, create one by: risso token create NAME --role act';
/** Since when (viewer's clock, ms) the server does not answer; null while it does. */
export const silentSince = signal<number | null>(null);
/** Server's clock minus the viewer's, in seconds. */
let skew = 0;

/** The server's idea of now, in unix seconds. */
export function serverNow(): number {
  return Date.now() / 1000 + skew;
}

/** Takes the server's time of an answer. */
export function setClock(now: number): void {
  const seen = now - Date.now() / 1000;
  // Follow big differences immediately, small ones slowly: jitter of the network is no clock.
  skew = Math.abs(seen - skew) > 1 ? seen : skew + (seen - skew) / 8;
}

const TIMEOUT_MS = 15_000;

/** Asks the server; what it says against it becomes an ApiError. */
export async function request<T>(path: string, init: RequestInit, signal?: AbortSignal): Promise<T> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  const both = signal ? AbortSignal.any([signal, timeout]) : timeout;
  let response: Response;
  try {
    response = await fetch(path, { ...init, signal: both, headers: { Accept: 'application/json', ...init.headers } });
  } catch (e) {
    if (signal?.aborted) throw e;
    silentSince.value ??= Date.now();
    throw new ApiError(0, 'Risso does not answer');
  }
  silentSince.value = null;
  const role = response.headers.get('Risso-Role');
  if (role) mayAct.value = role === 'act';
  if (response.status === 401) needLogin.value = true;
  if (!response.ok) {
    const body = (await response.json().catch(() => ({}))) as { error?: string; remedy?: string };
    throw new ApiError(response.status, body.error ?? `${response.status} ${response.statusText}`, body.remedy);
  }
  return (await response.json()) as T;
}

/** Asks for something. */
export function get<T>(path: string, query: [string, string | number][] = [], signal?: AbortSignal): Promise<T> {
  const params = new URLSearchParams(query.map(([k, v]) => [k, String(v)]));
  const text = params.toString();
  return request<T>(text ? `${path}?${text}` : path, {}, signal);
}

/** A span of time in unix seconds, up to but without its end. */
export interface Span {
  from: number;
  to: number;
}

/** What follows the ? of an address. */
export type Pairs = [string, string | number][];

/** A pair, if there is a value. */
export const only = (name: string, value: string): Pairs => (value === '' ? [] : [[name, value]]);

/** Trades the token for a cookie. */
export async function login(token: string): Promise<void> {
  await request<unknown>('/api/login', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ token }),
  });
  needLogin.value = false;
}
