/**
 * @module console/protocol: what the console's server and its page send each other. Start reading at `views.ts`.
 * A page opens one stream for all its tabs (server-sent events) and names the views that are visible; the server sends each view once and then what
 * changes of it, at most every {@link deltaIntervalMs}. What users do is one request for each object (`actions.ts`).
 * Types and pure functions only: the page is built from it too, so nothing here imports Node or the rest of Oarlock at run time.
 */
export type { Action, ActionName, ActionRequest, ActionResult, BulkRequest, BulkResult, Destruction } from './actions.ts'
export { actionNames, bulkActionNames, destructiveActions } from './actions.ts'
export { type Filter, FilterError, filterFields, matchesFilter, parseFilter } from './filter.ts'
export { apiPath, csrfHeader, type ErrorBody, pagePath, type SignIn, type SignInOptions } from './paths.ts'
export type * from './rows.ts'
export { phaseTones, stateTones } from './rows.ts'
export {
  recentSignInMs,
  type Session,
  type SignInMethod,
  type SignInProblem,
  type SignOut,
  signInProblems,
  signInTooOld,
} from './session.ts'
export type * from './stack-details.ts'
export {
  maxAttributeBytes,
  maxAttributeChanges,
  maxAttributes,
  maxGraphNodes,
  maxResourceChanges,
  sensitiveText,
  stackSections,
} from './stack-details.ts'
export type * from './views.ts'
export { defaultPageSize, deltaIntervalMs, historySeries, intervalSeries, maxPageSize, poolSeries } from './views.ts'
