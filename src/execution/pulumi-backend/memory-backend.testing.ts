import type { RawJournalEntry } from '../../stores/pulumi/index.ts'
import { type PulumiBackend, PulumiBackendError, type PulumiStackId, type PulumiUpdate, type RefusedWrite } from './pulumi-backend.ts'
import type { PulumiEvent } from './pulumi-event.ts'
import { stackKey } from './update-registry.ts'

type StoredStack = { tags: Record<string, string>; versions: Uint8Array[]; journal?: RawJournalEntry[] }

/** A backend in memory that records its calls. It does not replay journals: {@link MemoryBackend.replay} does. */
export class MemoryBackend implements PulumiBackend {
  readonly stacks = new Map<string, StoredStack>()
  readonly refused: RefusedWrite[] = []
  readonly events: PulumiEvent[] = []
  /** The calls that change something, as `name detail`. */
  readonly calls: string[] = []
  readonly started: PulumiUpdate[] = []
  /** Awaited before each call that changes something: to delay it or to reject it. */
  before: (call: string) => Promise<void> | void = () => {}
  /** Base and journal to a deployment; by default the base. */
  replay: (base: Uint8Array | undefined, entries: readonly RawJournalEntry[]) => Uint8Array | undefined = base => base

  /** The entries of all stacks that are not compacted. */
  get journal(): readonly RawJournalEntry[] {
    return [...this.stacks.values()].flatMap(stack => stack.journal ?? [])
  }

  async #record(name: string, detail = ''): Promise<void> {
    await this.before(name)
    this.calls.push(`${name} ${detail}`.trimEnd())
  }

  #stack(id: PulumiStackId): StoredStack {
    const found = this.stacks.get(stackKey(id))
    if (!found) throw new PulumiBackendError('NotFound', `stack ${stackKey(id)} does not exist`)
    return found
  }

  async readUser() {
    return { name: 'run', organizations: ['apps', 'other'] }
  }

  async listStacks(filter: { organization?: string | undefined; project?: string | undefined }, continueToken: string | undefined) {
    const all = [...this.stacks.keys()].map(toStackId)
    const matching = all.filter(
      id => (filter.organization ?? id.organization) === id.organization && (filter.project ?? id.project) === id.project,
    )
    const start = Number(continueToken ?? 0)
    const next = start + 2 < matching.length ? String(start + 2) : undefined
    return { stacks: matching.slice(start, start + 2).map(id => ({ id, resourceCount: 1 })), continueToken: next }
  }

  async projectExists(organization: string, project: string) {
    return [...this.stacks.keys()].some(key => key.startsWith(`${organization}/${project}/`))
  }

  async readStack(id: PulumiStackId) {
    const stack = this.stacks.get(stackKey(id))
    return stack && { id, version: stack.versions.length, tags: stack.tags }
  }

  async createStack(id: PulumiStackId, { tags, state }: { tags: Readonly<Record<string, string>>; state?: Uint8Array | undefined }) {
    await this.#record('createStack', stackKey(id))
    if (this.stacks.has(stackKey(id))) throw new PulumiBackendError('Conflict', `stack ${stackKey(id)} already exists`)
    this.stacks.set(stackKey(id), { tags: { ...tags }, versions: state ? [state] : [] })
  }

  async deleteStack(id: PulumiStackId, { force }: { force: boolean }) {
    await this.#record('deleteStack', stackKey(id))
    const newest = this.#stack(id).versions.at(-1)
    const { deployment } = newest ? JSON.parse(Buffer.from(newest).toString()) : { deployment: null }
    if (!force && deployment?.resources?.length > 0) throw new PulumiBackendError('HasResources', 'the stack has resources')
    this.stacks.delete(stackKey(id))
  }

  async renameStack(id: PulumiStackId, renamed: PulumiStackId) {
    await this.#record('renameStack', stackKey(renamed))
    this.stacks.set(stackKey(renamed), this.#stack(id))
    this.stacks.delete(stackKey(id))
  }

  async writeTags(id: PulumiStackId, tags: Readonly<Record<string, string>>) {
    await this.#record('writeTags', JSON.stringify(tags))
    this.#stack(id).tags = { ...tags }
  }

  async readDeployment(id: PulumiStackId, version?: number) {
    const { versions, journal = [] } = this.#stack(id)
    if (version !== undefined && versions[version - 1] === undefined)
      throw new PulumiBackendError('NotFound', `there is no version ${version}`)
    const base = versions[(version ?? versions.length) - 1]
    return version === undefined ? this.replay(base, journal) : base
  }

  async importDeployment(id: PulumiStackId, deployment: Uint8Array) {
    await this.#record('importDeployment', stackKey(id))
    const stack = this.#stack(id)
    // What is imported was made from base and journal.
    this.#compact(stack)
    stack.versions.push(deployment)
  }

  async listUpdates(_id: PulumiStackId, { page, pageSize }: { page: number; pageSize: number }) {
    const records = this.started.map((update, i) => ({
      ...{ kind: update.kind, version: i + 1, startSeconds: 1, endSeconds: 2, environment: {}, result: 'succeeded' as const },
    }))
    return records.reverse().slice((page - 1) * pageSize, page * pageSize)
  }

  /** Not encryption: reversed bytes behind the name of the stack, so that a value of another stack is refused. */
  async encrypt(id: PulumiStackId, plaintexts: readonly Uint8Array[]) {
    this.#stack(id)
    return plaintexts.map(each => Buffer.concat([Buffer.from(`${stackKey(id)}:`), Buffer.from(each).reverse()]))
  }

  async decrypt(id: PulumiStackId, ciphertexts: readonly Uint8Array[]) {
    const prefix = `${stackKey(id)}:`
    return ciphertexts.map(each => {
      if (!Buffer.from(each).toString('latin1').startsWith(prefix))
        throw new PulumiBackendError('Invalid', 'the value was not encrypted here')
      return Buffer.from(each.subarray(prefix.length)).reverse()
    })
  }

  async startUpdate(update: PulumiUpdate, tags: Readonly<Record<string, string>> | undefined) {
    await this.#record('startUpdate', `${update.kind}${update.isPreview ? ' preview' : ''} ${update.number}`)
    const stack = this.#stack(update.stack)
    if (tags) stack.tags = { ...tags }
    if (!update.isPreview) {
      this.started.push(update)
      // Of an update that was killed.
      this.#compact(stack)
    }
    return { version: stack.versions.length + 1 }
  }

  async renewUpdate(update: PulumiUpdate) {
    await this.#record('renewUpdate', String(update.number))
  }

  async appendJournalEntries(update: PulumiUpdate, entries: readonly RawJournalEntry[]) {
    await this.#record('appendJournalEntries', `${update.number}: ${entries.map(each => each.sequenceId).join(' ')}`)
    const stack = this.#stack(update.stack)
    stack.journal = [...(stack.journal ?? []), ...entries]
  }

  async writeCheckpoint(update: PulumiUpdate, deployment: Uint8Array) {
    await this.#record('writeCheckpoint', String(update.number))
    this.#stack(update.stack).versions.push(deployment)
  }

  async keepRefused(update: PulumiUpdate, write: RefusedWrite) {
    await this.#record('keepRefused', `${update.number} ${write.kind}`)
    this.refused.push(write)
  }

  async recordEvents(_update: PulumiUpdate, events: readonly PulumiEvent[]) {
    await this.before('recordEvents')
    this.events.push(...events)
  }

  async completeUpdate(update: PulumiUpdate, status: string) {
    await this.#record('completeUpdate', `${update.number} ${status}`)
    if (update.isPreview) return
    this.#compact(this.#stack(update.stack))
  }

  #compact(stack: StoredStack): void {
    if (!stack.journal) return
    const deployment = this.replay(stack.versions.at(-1), stack.journal)
    if (deployment) stack.versions.push(deployment)
    delete stack.journal
  }
}

function toStackId(key: string): PulumiStackId {
  const [organization = '', project = '', stack = ''] = key.split('/')
  return { organization, project, stack }
}
