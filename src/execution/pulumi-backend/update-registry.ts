import type { PulumiStackId, PulumiUpdate, PulumiUpdateStatus } from './pulumi-backend.ts'

/**
 * Of one update, in this order: created, running, then one of the last four. `fenced` and `canceled` are final: what still arrives is refused.
 * `abandoned`: its CLI ended without completing it.
 */
export type UpdateState = 'created' | 'running' | 'completed' | 'fenced' | 'canceled' | 'abandoned'

/** The last checkpoint that was stored, which the next delta is applied to. */
export type CheckpointBase = { readonly sequence: number; readonly bytes: Uint8Array }

/** What the handler knows about an update. */
export class TrackedUpdate {
  readonly token: string
  update: PulumiUpdate
  state: UpdateState = 'created'
  /** Set when it has ended. */
  status: PulumiUpdateStatus | undefined
  /** Why writes are refused, for the CLI. */
  refusal = ''
  base: CheckpointBase | undefined
  /** Bytes passed as refused writes. */
  refusedBytes = 0
  /** A refused write was dropped. */
  hasDropped = false
  #last: Promise<unknown> = Promise.resolve()

  constructor(update: PulumiUpdate, token: string) {
    this.update = update
    this.token = token
  }

  /** Runs `work` after everything that was passed before: the writes of an update are never concurrent, and its completion is last. */
  async inOrder<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#last.then(work, work)
    this.#last = run.catch(() => {})
    return await run
  }

  refuse(state: 'fenced' | 'canceled' | 'abandoned', reason: string): void {
    if (this.state === 'completed' || this.refusal !== '') return
    this.state = state
    this.refusal = reason
    this.base = undefined
  }
}

export const stackKey = ({ organization, project, stack }: PulumiStackId): string => `${organization}/${project}/${stack}`

/** The updates of a handler: at most one that writes is running for each stack. Old ones are forgotten above `maxUpdates` (invariant 10). */
export class UpdateRegistry {
  readonly #maxUpdates: number
  readonly #updates = new Map<string, TrackedUpdate>()
  /** By stack: the update that writes. */
  readonly #active = new Map<string, TrackedUpdate>()
  #started = 0

  constructor(maxUpdates: number) {
    this.#maxUpdates = maxUpdates
  }

  /** False: too many are running. */
  add(tracked: TrackedUpdate): boolean {
    if (this.#updates.size >= this.#maxUpdates) {
      const oldest = this.#updates.values().find(each => each.state !== 'running')
      if (!oldest) return false
      this.#updates.delete(oldest.update.id)
    }
    this.#updates.set(tracked.update.id, tracked)
    return true
  }

  /** Undefined also if the update belongs to another stack. */
  find(stack: PulumiStackId, id: string): TrackedUpdate | undefined {
    const found = this.#updates.get(id)
    return found && stackKey(found.update.stack) === stackKey(stack) ? found : undefined
  }

  active(stack: PulumiStackId): TrackedUpdate | undefined {
    return this.#active.get(stackKey(stack))
  }

  /** Takes the stack for an update that writes, and numbers it. False: another one is active. */
  begin(tracked: TrackedUpdate, isJournaled: boolean): boolean {
    const { stack, isPreview } = tracked.update
    if (isPreview) {
      tracked.update = { ...tracked.update, isJournaled }
    } else {
      if (this.active(stack)) return false
      this.#active.set(stackKey(stack), tracked)
      tracked.update = { ...tracked.update, isJournaled, number: ++this.#started }
    }
    tracked.state = 'running'
    return true
  }

  /** The stack is free for another update. Call it after the state of the update has changed. */
  end(tracked: TrackedUpdate): void {
    const key = stackKey(tracked.update.stack)
    if (this.#active.get(key) === tracked) this.#active.delete(key)
    tracked.base = undefined
  }

  /** Those that were started and have not ended. */
  running(): TrackedUpdate[] {
    return [...this.#updates.values()].filter(each => each.state === 'running')
  }
}
