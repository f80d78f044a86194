import type { LockHolder } from './lock-holder.ts'

/** A failed request to the state store. `status` is 0 when no answer came; `code` is the store's, or `Unreachable`, `BadAnswer`. */
export class StateClientError extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = new.target.name
    this.status = status
    this.code = code
  }
}

/** A newer Run has taken over (invariant 3): stop writing. A refused write is kept as `orphan`. Trying again never helps. */
export class StaleEpochError extends StateClientError {
  readonly orphan: number | undefined

  constructor(message: string, orphan: number | undefined) {
    super(409, 'StaleEpoch', message)
    this.orphan = orphan
  }
}

/** The lock is somebody else's. A refused write is kept as `orphan`. */
export class LockedError extends StateClientError {
  readonly holder: LockHolder | undefined
  readonly orphan: number | undefined

  constructor(status: number, message: string, holder: LockHolder | undefined, orphan?: number) {
    super(status, 'Locked', message)
    this.holder = holder
    this.orphan = orphan
  }
}
