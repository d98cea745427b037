/** The one place that speaks HTTP with the server, by what it is about. */
export { ApiError, changePassword, fetchViewer, includes, login, logout, mayAct, mayFailOver, needLogin, NO_ACT, NO_FAILOVER, role, serverNow, silentSince, who, type Credentials, type Role, type Span } from './http';
export * from './advice';
export * from './alerts';
export * from './benchmarks';
export * from './groups';
export * from './incidents';
export * from './protect';
export * from './queries';
export * from './sizes';
export * from './topology';
export * from './watch';
