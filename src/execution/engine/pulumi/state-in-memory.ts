import {
  parseJournalEntry,
  type RawJournalEntry,
  replayJournal,
  splitJournalBatch,
  type UntypedDeployment,
} from '../../../stores/pulumi/index.ts'
import { StateClientError } from '../../../stores/state/index.ts'
import type { RunPulumiState } from '../engine.ts'

/** A state that a command of the CLI changes without any effect on the stored one. Secrets are those of `stored`. */
export class StateInMemory implements RunPulumiState {
  readonly #stored: RunPulumiState
  readonly #version: number
  readonly #journal: RawJournalEntry[] = []
  #state: UntypedDeployment

  /** `version` is the number that the state is read with. */
  constructor(stored: RunPulumiState, state: UntypedDeployment, version: number) {
    this.#stored = stored
    this.#state = state
    this.#version = version
  }

  get state(): UntypedDeployment {
    return this.#state
  }

  set state(state: UntypedDeployment) {
    this.#state = state
  }

  async readPulumiState() {
    return { version: this.#version, epoch: 0, bytes: Buffer.from(JSON.stringify(this.#state)) }
  }

  async readPulumiVersion() {
    return { version: this.#version, isFull: false }
  }

  async writePulumiState(bytes: Uint8Array) {
    this.#state = JSON.parse(Buffer.from(bytes).toString('utf8')) as UntypedDeployment
    return this.#version
  }

  async appendJournal(_update: number, batch: Uint8Array) {
    this.#journal.push(...splitJournalBatch(Buffer.from(batch).toString('utf8')))
    return this.#version
  }

  async completeJournal() {
    const entries = this.#journal.splice(0).map(({ text }) => parseJournalEntry(JSON.parse(text)))
    if (entries.length === 0) return this.#version
    const manifest = this.#state.deployment?.manifest ?? { time: new Date().toISOString(), magic: '', version: '' }
    const result = replayJournal(this.#state, entries, { manifest })
    if (result.kind === 'unreadable') throw new StateClientError(409, 'JournalUnreadable', result.message)
    this.#state = result.result
    return this.#version
  }

  async keepPulumiState() {}

  async keepJournal() {}

  encrypt(values: readonly Uint8Array[]) {
    return this.#stored.encrypt(values)
  }

  decrypt(values: readonly Uint8Array[]) {
    return this.#stored.decrypt(values)
  }
}
