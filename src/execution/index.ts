/**
 * @module execution: one Run, from its assignment to its end.
 * `worker/` executes Runs and reports them, with a supervisor process that enforces its deadlines; `engine/` has an adapter for each
 * engine; `workspace/` provides sources, private directories, sandboxes and processes.
 * In: an assigned Run. Out: its status, state versions, log lines, outputs. Not here: which Run is executed where
 * (`controllers/`). Import the index.ts of a module; this file exports nothing.
 */
export {}
