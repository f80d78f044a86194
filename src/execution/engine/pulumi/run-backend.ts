import type { RawJournalEntry } from '../../../stores/pulumi/index.ts'
import { LockedError, StaleEpochError, StateClientError } from '../../../stores/state/index.ts'
import {
  type PulumiBackend,
  PulumiBackendError,
  type PulumiEvent,
  type PulumiStackId,
  type PulumiUpdate,
  type RefusedWrite,
} from '../../pulumi-backend/index.ts'
import type { RunPulumiState } from '../engine.ts'

export type RunBackendOptions = {
  readonly state: RunPulumiState
  /** Of the Run. */
  readonly stack: PulumiStackId
  /** What a StackReference to another stack finds; undefined: there is none, or the Stack may not read it. */
  readonly readOther: (stack: PulumiStackId) => Promise<Uint8Array | undefined>
  /** Gets the events of the update or preview of the command that runs. */
  readonly onEvents: (events: readonly PulumiEvent[]) => void
  /** The store refuses the Run's writes for good. */
  readonly onRefused: (error: Error) => void
}

/** The backend of one Run: its own stack in the state store, with the epoch of the Run, and the outputs of stacks that it may refer to. */
export class RunBackend implements PulumiBackend {
  readonly #options: RunBackendOptions
  /** Of the command that runs; undefined until it has started one. */
  #updateId: string | undefined

  constructor(options: RunBackendOptions) {
    this.#options = options
  }

  /** A command of the CLI starts. It has one update: a further one is of a CLI that the program runs, and its events are not those of the command. */
  beginCommand(): void {
    this.#updateId = undefined
  }

  async readUser() {
    const { organization } = this.#options.stack
    return { name: organization, organizations: [organization] }
  }

  async listStacks() {
    return { stacks: [{ id: this.#options.stack }] }
  }

  async projectExists(organization: string, project: string) {
    return organization === this.#options.stack.organization && project === this.#options.stack.project
  }

  async readStack(id: PulumiStackId) {
    if (this.#isOwn(id)) {
      const newest = await this.#call(() => this.#options.state.readPulumiVersion())
      return { id, version: newest?.version ?? 0, tags: {} }
    }
    return (await this.#options.readOther(id)) ? { id, version: 1, tags: {} } : undefined
  }

  async createStack(id: PulumiStackId): Promise<never> {
    if (this.#isOwn(id)) throw new PulumiBackendError('Conflict', `stack ${format(id)} exists`)
    throw new PulumiBackendError('Forbidden', `a Run cannot create ${format(id)}; create a Stack of Oarlock for it`)
  }

  async deleteStack(id: PulumiStackId): Promise<never> {
    throw new PulumiBackendError('Forbidden', `a Run cannot delete ${format(id)}; use "oarlock destroy"`)
  }

  async renameStack(id: PulumiStackId): Promise<never> {
    throw new PulumiBackendError('Forbidden', `a Run cannot rename ${format(id)}; set spec.pulumi.stack`)
  }

  /** Tags are for lists of stacks; labels of the Stack do that here. */
  async writeTags(): Promise<void> {}

  async readDeployment(id: PulumiStackId, version?: number) {
    if (!this.#isOwn(id)) return await this.#options.readOther(id)
    if (version !== undefined) throw new PulumiBackendError('NotFound', 'a Run reads the newest version only; use "oarlock state pull"')
    return (await this.#call(() => this.#options.state.readPulumiState()))?.bytes
  }

  async importDeployment(): Promise<never> {
    throw new PulumiBackendError('Forbidden', 'a Run cannot replace the state; use "oarlock state push"')
  }

  async listUpdates() {
    return []
  }

  async encrypt(id: PulumiStackId, plaintexts: readonly Uint8Array[]) {
    this.#checkOwn(id)
    return await this.#call(() => this.#options.state.encrypt(plaintexts))
  }

  async decrypt(id: PulumiStackId, ciphertexts: readonly Uint8Array[]) {
    this.#checkOwn(id)
    return await this.#call(() => this.#options.state.decrypt(ciphertexts))
  }

  async startUpdate(update: PulumiUpdate) {
    this.#checkOwn(update.stack)
    const newest = await this.#call(() => this.#options.state.readPulumiVersion())
    // With a journal the store rejects an operation before it begins; a checkpoint that is too large is rejected after it.
    if (newest?.isFull && !update.isPreview && !update.isJournaled && update.kind !== 'destroy')
      throw new PulumiBackendError('TooLarge', tooLargeForCheckpoints)
    this.#updateId ??= update.id
    return { version: (newest?.version ?? 0) + 1 }
  }

  async renewUpdate(): Promise<void> {}

  async appendJournalEntries(update: PulumiUpdate, entries: readonly RawJournalEntry[]) {
    await this.#call(() => this.#options.state.appendJournal(update.number, toBatch(entries), update.cliVersion))
  }

  async writeCheckpoint(update: PulumiUpdate, deployment: Uint8Array) {
    await this.#call(() => this.#options.state.writePulumiState(deployment, update.number))
  }

  /** As an orphan, never as the state: the Run may still hold the lock, and a newer state may be stored. */
  async keepRefused(_update: PulumiUpdate, write: RefusedWrite) {
    const { state } = this.#options
    await (write.kind === 'checkpoint' ? state.keepPulumiState(write.deployment) : state.keepJournal(toBatch(write.entries)))
  }

  async recordEvents({ id }: PulumiUpdate, events: readonly PulumiEvent[]) {
    if (id === this.#updateId) this.#options.onEvents(events)
  }

  async completeUpdate(update: PulumiUpdate) {
    if (update.isPreview || !update.isJournaled) return
    await this.#call(() => this.#options.state.completeJournal(update.number))
  }

  #isOwn({ organization, project, stack }: PulumiStackId): boolean {
    const own = this.#options.stack
    return organization === own.organization && project === own.project && stack === own.stack
  }

  #checkOwn(id: PulumiStackId): void {
    if (!this.#isOwn(id))
      throw new PulumiBackendError('Forbidden', `this Run may not use ${format(id)}: its stack is ${format(this.#options.stack)}`)
  }

  /** @throws {PulumiBackendError} in place of an error of the state store. */
  async #call<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw this.#translate(error)
    }
  }

  #translate(error: unknown): unknown {
    if (!(error instanceof StateClientError)) return error
    const { message } = error
    const isFinal =
      error instanceof StaleEpochError || error instanceof LockedError || error.code === 'JournalClosed' || error.code === 'RunEnded'
    if (isFinal) {
      this.#options.onRefused(error)
      return new PulumiBackendError('Fenced', message, { cause: error })
    }
    if (error.status === 413) return new PulumiBackendError('TooLarge', message, { cause: error })
    if (error.status === 400) return new PulumiBackendError('Invalid', message, { cause: error })
    if (error.status === 409) return new PulumiBackendError('Conflict', message, { cause: error })
    return new PulumiBackendError('Unavailable', message, { cause: error })
  }
}

/** The bytes of the CLI, not parsed values: what it wrote is what is stored. */
const toBatch = (entries: readonly RawJournalEntry[]) => Buffer.from(`{"entries":[${entries.map(({ text }) => text).join(',')}]}`)

const tooLargeForCheckpoints =
  'the state is too large for a CLI that sends it as a whole after each change: use a version of the CLI that sends journal entries (docs/pulumi.md), or destroy the Stack'

const format = ({ organization, project, stack }: PulumiStackId) => `${organization}/${project}/${stack}`
