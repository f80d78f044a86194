/**
 * @module console: the web page of an installation. Start reading at `status-page.ts`.
 * In: Stacks, Runs and Workers as they are now. Out: HTML. It shows no outputs and no variables (invariant 9).
 * Not done here: serving it and reading the objects (`app/`).
 */
export { renderStatusPage, type StatusPageFacts } from './status-page.ts'
