/** The one place that speaks HTTP with the server, by what it is about. */
export { ApiError, login, mayAct, needLogin, NO_ACT, serverNow, silentSince, type Span } from './http';
export * from './advice';
export * from './alerts';
export * from './benchmarks';
export * from './incidents';
export * from './protect';
export * from './queries';
export * from './sizes';
export * from './topology';
export * from './watch';
