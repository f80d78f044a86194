import type { LockHolder } from './lock-holder.ts'

/** A failed request to the state store. `status` is 0 without a response; `code` is the store's, or `Unreachable`, `InvalidResponse`. */
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

/** A newer Run has started (invariant 3): stop writing and do not retry. A rejected write is stored as `orphan`. */
export class StaleEpochError extends StateClientError {
  readonly orphan: number | undefined

  constructor(message: string, orphan: number | undefined) {
    super(409, 'StaleEpoch', message)
    this.orphan = orphan
  }
}

/** Another holder has the lock. A rejected write is stored as `orphan`. */
export class LockedError extends StateClientError {
  readonly holder: LockHolder | undefined
  readonly orphan: number | undefined

  constructor(status: number, message: string, holder: LockHolder | undefined, orphan?: number) {
    super(status, 'Locked', message)
    this.holder = holder
    this.orphan = orphan
  }
}
