/** A setting is missing or invalid: exit code 2. */
export class WorkerOptionError extends Error {
  override readonly name = 'WorkerOptionError'
}
