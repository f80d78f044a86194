/**
 * @module execution: one Run, from its assignment to its end.
 * `worker/` takes the Run and reports it, with a supervisor process that keeps its deadlines; `engine/` has an adapter per engine;
 * `workspace/` provides sources, private directories, sandboxes and processes.
 * In: an assigned Run. Out: its status, state versions, log lines, outputs. Not done here: deciding which Run, and where
 * (`controllers/`). Import a module's own index.ts; this file exports nothing.
 */
export {}
