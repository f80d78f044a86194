/** A setting that is missing or wrong: exit code 2. */
export class WorkerOptionError extends Error {
  override readonly name = 'WorkerOptionError'
}
