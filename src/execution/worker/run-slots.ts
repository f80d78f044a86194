import type { Run } from '../../api/index.ts'
import { objectKey } from '../../kubernetes/object/index.ts'
import type { ExecuteResult, Execution } from './run/execution.ts'
import type { StopCause } from './run/stop-cause.ts'

export type RunSlotsOptions = {
  /** Starts the execution. It may resolve late: the code is loaded with the first Run. */
  execute(run: Run): Promise<Execution>
  /** The Run has ended; its slot is still occupied. */
  onResult(run: Run, result: ExecuteResult): void
  /** The execution threw, which is a bug; its slot is still occupied. */
  onCrash(error: unknown): void
  /** A slot was occupied or freed. */
  onChange(): void
}

type Slot = { readonly key: string; execution: Execution | undefined }

/** The Runs that a worker executes. */
export class RunSlots {
  readonly #options: RunSlotsOptions
  readonly #slots = new Map<string, Slot>()
  /** Set once: a Run that starts later is stopped for the same cause. */
  #stopCause: StopCause | undefined

  constructor(options: RunSlotsOptions) {
    this.#options = options
  }

  get runningCount(): number {
    return this.#slots.size
  }

  /** Keys of the Runs, as `namespace/name`. */
  get keys(): string[] {
    return [...this.#slots.values()].map(({ key }) => key)
  }

  /** All Runs are being stopped. */
  get isStopping(): boolean {
    return this.#stopCause !== undefined
  }

  start(run: Run): void {
    const { uid } = run.metadata
    const slot: Slot = { key: objectKey(run), execution: undefined }
    this.#slots.set(uid, slot)
    void this.#run(run, slot)
      .catch(error => this.#options.onCrash(error))
      .finally(() => {
        this.#slots.delete(uid)
        this.#options.onChange()
      })
    this.#options.onChange()
  }

  async #run(run: Run, slot: Slot): Promise<void> {
    slot.execution = await this.#options.execute(run)
    if (this.#stopCause) slot.execution.stop(this.#stopCause)
    this.#options.onResult(run, await slot.execution.done)
  }

  /** Takes a version of a Run. Returns false if it has no slot. */
  observe(run: Run): boolean {
    const slot = this.#slots.get(run.metadata.uid)
    slot?.execution?.observe(run)
    return slot !== undefined
  }

  stop(uid: string, cause: StopCause): void {
    this.#slots.get(uid)?.execution?.stop(cause)
  }

  stopAll(cause: StopCause): void {
    this.#stopCause ??= cause
    for (const { execution } of this.#slots.values()) execution?.stop(cause)
  }

  /** Stops every Run that a complete list does not contain. */
  stopMissing(uids: ReadonlySet<string>, cause: StopCause): void {
    for (const uid of this.#slots.keys()) if (!uids.has(uid)) this.stop(uid, cause)
  }

  /** The Lease was renewed. */
  renewed(): void {
    for (const { execution } of this.#slots.values()) execution?.renewed()
  }
}
