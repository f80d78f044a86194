/**
 * @module console: the web page of an installation. Start reading at `status-page.ts`.
 * In: the current Stacks, Runs and Workers. Out: HTML, without outputs and variables (invariant 9).
 * Out of scope: reading the objects, and serving the page (`app/`).
 */
export { renderStatusPage, type StatusPageFacts } from './status-page.ts'
