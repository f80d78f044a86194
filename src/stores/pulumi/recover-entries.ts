import { isDeepStrictEqual } from 'node:util'
import type { Deployment, PendingOperation, Resource, SecretsProvider, UntypedDeployment } from './deployment.ts'
import { featuresOf } from './deployment-features.ts'
import type { JournalEntry, UnreadableEntry } from './journal-entry.ts'
import { removeDanglingReferences } from './remove-dangling-references.ts'
import { isEncrypted, secretsIn } from './secret-values.ts'

export type RecoveredEntries = {
  state: UntypedDeployment & { deployment: Deployment }
  /** URNs of resources that the state did not have. */
  added: string[]
  /** URNs of resources whose creation had begun. */
  pending: string[]
  /** What cannot be recovered, each with the reason. */
  skipped: string[]
}

/**
 * Adds to a state what journal entries have created that it lacks: entries that arrived too late refer to a state that is not the current one, so they
 * cannot be replayed. A resource that the state has with the same id is newer there; which resource was removed is not known from its index.
 */
export function recoverEntries(
  current: UntypedDeployment | undefined,
  entries: readonly (JournalEntry | UnreadableEntry)[],
): RecoveredEntries {
  const deployment = current?.deployment ?? {}
  const live = new Map((deployment.resources ?? []).filter(resource => resource.delete !== true).map(resource => [resource.urn, resource]))
  const found = new FoundEntries(live)
  for (const entry of entries.toSorted((a, b) => a.sequenceId - b.sequenceId)) found.add(entry)
  const { added, begun, skipped, extensions } = found
  const before = deployment.resources ?? []
  // References to what the state does not have are removed from the added resources only.
  const resources = [...before, ...removeDanglingReferences([...before, ...added.values()]).slice(before.length)]
  const operations = [...begun.values()].filter(({ resource }) => !live.has(resource.urn) && !added.has(resource.urn))
  const pending = operations.filter(({ type }) => type === 'creating')
  for (const { type, resource } of begun.values())
    if (type !== 'creating') skipped.push(`${resource.urn}: an operation (${type}) had begun, and its result is not known`)
  const pendingOperations = [...(deployment.pending_operations ?? []), ...pending]
  const provider = deployment.secrets_providers ?? found.secretsProvider
  if (provider && found.secretsProvider && !isSameProvider(provider, found.secretsProvider)) skipped.push(...found.otherSecrets(provider))
  const recovered: Deployment = {
    ...deployment,
    ...(provider && { secrets_providers: provider }),
    resources,
    ...(pendingOperations.length > 0 && { pending_operations: pendingOperations }),
    ...(Object.keys(extensions).length > 0 && { extensions: { ...extensions, ...deployment.extensions } }),
  }
  const features = featuresOf(
    recovered,
    current?.features?.includes('byteString') === true || entries.some(requiresByteString),
    current?.features ?? [],
  )
  return {
    state: { version: features.length > 0 ? 4 : 3, ...(features.length > 0 && { features }), deployment: recovered },
    ...{ added: [...added.keys()], pending: pending.map(({ resource }) => resource.urn), skipped },
  }
}

/** What entries contain, compared with the resources that the state has. */
class FoundEntries {
  readonly added = new Map<string, Resource>()
  readonly begun = new Map<number, PendingOperation>()
  readonly skipped: string[] = []
  readonly extensions: Record<string, unknown> = {}
  secretsProvider: SecretsProvider | undefined
  readonly #live: ReadonlyMap<string, Resource>

  constructor(live: ReadonlyMap<string, Resource>) {
    this.#live = live
  }

  add(entry: JournalEntry | UnreadableEntry): void {
    const skip = (reason: string) => this.skipped.push(`entry ${entry.sequenceId}: ${reason}`)
    switch (entry.kind) {
      case 'unreadable':
        skip(entry.message)
        break
      case 'Begin':
        if (entry.operation) this.begun.set(entry.operationId, entry.operation)
        break
      case 'Failure':
        this.begun.delete(entry.operationId)
        break
      case 'Success':
        this.begun.delete(entry.operationId)
        if (!entry.state) skip('a resource was deleted, which the entry does not name')
        else this.#addResource(entry.state, 'an operation')
        break
      case 'Outputs':
        if (entry.state) this.#addResource(entry.state, 'its outputs')
        break
      case 'RefreshSuccess':
        this.begun.delete(entry.operationId)
        // What a refresh finds is a resource of the state: one that was created is known by another entry.
        if (!entry.state) skip('a refresh has found that a resource does not exist any more, which the entry does not name')
        else if (this.added.has(entry.state.urn)) this.added.set(entry.state.urn, entry.state)
        else if (!isDeepStrictEqual(this.#live.get(entry.state.urn), entry.state))
          this.skipped.push(`${entry.state.urn}: what a refresh has found, which "oarlock run STACK --refresh-only" finds again`)
        break
      case 'SecretsManager':
        this.secretsProvider = entry.secretsProvider
        break
      case 'ExtensionParameterize':
        this.extensions[entry.extensionRef ?? ''] = entry.extension
        break
      case 'Write':
        this.secretsProvider ??= entry.newSnapshot?.secrets_providers
        skip('the state was replaced before the update')
        break
      case 'Snippets':
        skip('snippets were changed')
        break
      case 'RebuiltBaseState':
        break
      default:
        entry satisfies never
    }
  }

  /** Resources that the update has added, with secrets of its provider, which a state with `provider` cannot decrypt. */
  otherSecrets({ type }: SecretsProvider): string[] {
    const reason = `its secrets were encrypted by the provider ${this.secretsProvider?.type}, and the state has the provider ${type}`
    return [...this.added].filter(([, resource]) => secretsIn(resource).some(isEncrypted)).map(([urn]) => `${urn}: ${reason}`)
  }

  #addResource(state: Resource, what: string): void {
    const present = this.#live.get(state.urn)
    if (!present || this.added.has(state.urn)) this.added.set(state.urn, state)
    else if (present.id !== state.id)
      this.skipped.push(`${state.urn}: the state has it with id ${String(present.id)}, the entry with id ${String(state.id)}`)
    else if (!isDeepStrictEqual(present, state))
      this.skipped.push(`${state.urn}: the state has it with other content than ${what} of the journal has left`)
  }
}

/** The address in the state of the provider `service` is that of the endpoint, which differs with every Run. */
const isSameProvider = (a: SecretsProvider, b: SecretsProvider): boolean =>
  a.type === b.type && (a.type === 'service' || isDeepStrictEqual(a.state, b.state))

const requiresByteString = (entry: JournalEntry | UnreadableEntry): boolean => entry.kind !== 'unreadable' && entry.requiresByteString
