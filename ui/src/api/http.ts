/** How the page speaks HTTP with the server. Times are unix seconds. */
import { computed, signal } from '@preact/signals';

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

/** True when the server asked who is there; the page then shows the login form. */
export const needLogin = signal(false);

/** What a viewer may do; each role includes those before it. */
const ROLES = ['look', 'change', 'failover', 'admin'] as const;
/** A role. */
export type Role = (typeof ROLES)[number];
/** The viewer's role. Until the first answer nothing is known, and nothing is barred: the server checks each request. */
export const role = signal<Role | null>(null);
/** Who the viewer is; empty where nobody is asked. */
export const who = signal('');

/** Whether a role includes another. */
export const includes = (has: Role | null, needed: Role): boolean => has === null || ROLES.indexOf(has) >= ROLES.indexOf(needed);

/** False when the viewer may look and not change anything. */
export const mayAct = computed(() => includes(role.value, 'change'));
/** False when the viewer may not switch or fail over. */
export const mayFailOver = computed(() => includes(role.value, 'failover'));
/** Why a button that changes something does nothing then. */
export const NO_ACT = 'You may only look. Changing something needs the role change: risso user role NAME change, or risso token create NAME --role change';
/** Why a button that fails over does nothing then. */
export const NO_FAILOVER = 'You may not fail over. That needs the role failover: risso user role NAME failover, or risso token create NAME --role failover';
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
export async function request<T>(path: string, init: RequestInit, signal?: AbortSignal, ms = TIMEOUT_MS): Promise<T> {
  const timeout = AbortSignal.timeout(ms);
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
  takeViewer(response.headers);
  // A wrong password is answered with 401, too, and the form is shown already.
  if (response.status === 401) needLogin.value = true;
  if (!response.ok) {
    const body = (await response.json().catch(() => ({}))) as { error?: string; remedy?: string };
    throw new ApiError(response.status, body.error ?? `${response.status} ${response.statusText}`, body.remedy);
  }
  return (await response.json()) as T;
}

/** Takes who the viewer is, and what he may do, from an answer. */
export function takeViewer(headers: Headers): void {
  const has = headers.get('Risso-Role');
  if (!has) return;
  role.value = ROLES.find((r) => r === has) ?? 'look';
  who.value = decodeURIComponent(headers.get('Risso-Who') ?? '');
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

const post = (path: string, body: unknown): Promise<unknown> =>
  request<unknown>(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });

/** What somebody signs in with. */
export type Credentials = { token: string } | { user: string; password: string };

/** Trades a token, or a user and a password, for a session in a cookie. */
export async function login(by: Credentials): Promise<void> {
  await post('/api/login', by);
  needLogin.value = false;
}

/** Ends this session, or all of the viewer. */
export async function logout(everywhere = false): Promise<void> {
  await post(everywhere ? '/api/logout/everywhere' : '/api/logout', {});
  who.value = '';
  role.value = null;
  needLogin.value = true;
}

/** Asks who the viewer is: how he signed in, and what his changes are limited to. */
export const fetchViewer = (): Promise<{ via: string; limits: string[][] }> => get('/api/whoami');

/** Changes the viewer's password; all other sessions end. */
export async function changePassword(current: string, next: string): Promise<void> {
  await post('/api/password', { current, new: next });
}
