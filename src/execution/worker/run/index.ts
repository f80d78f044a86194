/**
 * @module worker/run: executes one assigned Run. Start reading at `execute-run.ts`.
 * In: an assigned Run, the worker's Lease and supervisor. Out: Run.status, state versions with the Run's epoch, log lines, the Secret of
 * outputs. The phases: prepare (`isolation.ts`, `inputs.ts`, `find-engine.ts`), `plan-and-apply.ts`, and the result (`failure.ts`,
 * `run-reporter.ts`). `run-stopper.ts` stops the engine, `decide-stop.ts` decides how.
 * Not here: which Run is executed and when (`../run-worker.ts`), when the Lease requires a stop (`../lease/`).
 * Loaded when the first Run is assigned, so nothing that registers a worker imports it.
 */
export { executeRun } from './execute-run.ts'
export { openRunLog } from './open-run-log.ts'
export { rejectRun } from './reject-run.ts'
