export type SupervisorUnavailableOptions = {
  /** Path of its socket. */
  readonly address: string
  /** Since the worker began to connect. */
  readonly waitedMs: number
  /** What happened, after the address. Default: that it did not respond in this time. */
  readonly problem?: string
  /** Why it could not be started, if that is known. */
  readonly cause?: Error | undefined
}

/** The supervisor of a host cannot be reached and cannot be started: of the machine, and not of a Run. Without it no engine may run (invariant 2). */
export class SupervisorUnavailableError extends Error {
  override readonly name = 'SupervisorUnavailableError'
  readonly address: string
  readonly waitedMs: number

  constructor({ address, waitedMs, problem, cause }: SupervisorUnavailableOptions) {
    const what = problem ?? `did not respond within ${Math.round(waitedMs / 100) / 10} s`
    const advice = 'check the load, memory and process limit of the machine, or give the worker fewer slots'
    super(`the supervisor at ${address} ${what}${cause ? ` (${cause.message})` : ''}; ${advice}`, { cause })
    this.address = address
    this.waitedMs = waitedMs
  }
}
