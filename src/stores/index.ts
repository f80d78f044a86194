/**
 * @module stores: what a Run leaves behind: state versions with their locks and epochs (`state/`), and run logs (`log/`).
 * Both are served over HTTP with the helpers of `http/`; `pulumi/` has the format of Pulumi's states.
 * In: writes that carry the Run's epoch. Out: durable versions and log lines. Not done here: who may read or write them
 * (`app/`, passed in). Import a module's own index.ts; this file exports nothing.
 */
export {}
