/** For how long after the end of its Run a worker can store a last version. The clock of the worker, which reports the end, may differ by as much. */
export const lastVersionWithinMs = 10 * 60_000
