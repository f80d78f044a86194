/**
 * @module workspace: the private place of a Run: its directory, its source, its processes. Start reading at `source.ts` and `process/`.
 * In: a source as written in a Stack, a revision, a Run's UID. Out: files in a directory, programs run to their end with nothing left behind.
 * Not here: engines, state, logs, or who may run what.
 */
export * from './process/index.ts'
