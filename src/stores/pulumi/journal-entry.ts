import type { SecretsProvider, Snippet } from './deployment.ts'
import { checkDeployment, checkOperation, checkResource, type Deployment, type PendingOperation, type Resource } from './deployment.ts'

/** Kinds of journal entries, numbers as in Pulumi's `apitype.JournalEntryKind` (CLI 3.260). */
export const journalEntryKinds = [
  ...['Begin', 'Success', 'Failure', 'RefreshSuccess', 'Outputs', 'Write'],
  ...['SecretsManager', 'RebuiltBaseState', 'ExtensionParameterize', 'Snippets'],
] as const

export type JournalEntryKind =
  | 'Begin'
  | 'Success'
  | 'Failure'
  | 'RefreshSuccess'
  | 'Outputs'
  | 'Write'
  | 'SecretsManager'
  | 'RebuiltBaseState'
  | 'ExtensionParameterize'
  | 'Snippets'

/**
 * One change of a state. A resource of the base is referred to by its index in the base's list (`…Old`), one that this update has added by the operation
 * that added it (`…New`).
 */
export type JournalEntry = {
  kind: JournalEntryKind
  /** Unique in an update and increasing in the order of the engine's decisions: the order of replay, whatever the order of arrival. */
  sequenceId: number
  operationId: number
  removeOld?: number | undefined
  removeNew?: number | undefined
  pendingReplacementOld?: number | undefined
  pendingReplacementNew?: number | undefined
  deleteOld?: number | undefined
  deleteNew?: number | undefined
  state?: Resource | undefined
  operation?: PendingOperation | undefined
  isRefresh: boolean
  secretsProvider?: SecretsProvider | undefined
  snippets?: Snippet[] | undefined
  newSnapshot?: Deployment | undefined
  extensionRef?: string | undefined
  extension?: unknown
  requiresByteString: boolean
}

/** An entry that this version of Oarlock must not interpret. `message` names what, in the words of the protocol. */
export type UnreadableEntry = { kind: 'unreadable'; entryKind: string; sequenceId: number; message: string }

const references = ['removeOld', 'removeNew', 'pendingReplacementOld', 'pendingReplacementNew', 'deleteOld', 'deleteNew'] as const
const fields = new Set<string>([
  ...['version', 'kind', 'sequenceID', 'operationID', ...references, 'state', 'operation', 'isRefresh', 'secretsProvider', 'snippets'],
  ...['newSnapshot', 'extensionRef', 'extension', 'requiresByteString'],
])

/** The format that CLIs since 3.225 write. */
const journalVersion = 1

/**
 * Interprets an entry of {@link splitJournalBatch}. An entry of another version, of an unknown kind or with an unknown field is unreadable: what it changes is
 * not known, and a state without this change is wrong.
 */
export function parseJournalEntry(value: Record<string, unknown>): JournalEntry | UnreadableEntry {
  // An index, not the name of a property of lists.
  const kind = typeof value.kind === 'number' ? (journalEntryKinds[value.kind] as JournalEntryKind | undefined) : undefined
  const sequenceId = value.sequenceID as number
  const unreadable = (message: string) => ({
    ...{ kind: 'unreadable' as const, entryKind: kind ?? String(value.kind).slice(0, 40), sequenceId, message },
  })
  if (value.version !== journalVersion) return unreadable(`unknown version ${String(value.version).slice(0, 40)} of the journal`)
  if (kind === undefined) return unreadable(`unknown entry kind ${String(value.kind).slice(0, 40)}`)
  const unknown = Object.keys(value).find(field => !fields.has(field) && value[field] !== null)
  if (unknown !== undefined) return unreadable(`unknown field ${JSON.stringify(unknown.slice(0, 60))} of an entry of kind ${kind}`)
  const { operationID: operationId = 0, isRefresh = false, requiresByteString = false } = value
  if (!isIndex(operationId)) return unreadable(`an entry of kind ${kind}: operationID is not a whole number`)
  if (typeof isRefresh !== 'boolean' || typeof requiresByteString !== 'boolean')
    return unreadable(`an entry of kind ${kind}: a flag is not a boolean`)
  const wrongReference = references.find(field => value[field] != null && !isIndex(value[field]))
  if (wrongReference) return unreadable(`an entry of kind ${kind}: ${wrongReference} is not a whole number`)
  const { state, operation, newSnapshot, secretsProvider, snippets, extensionRef, extension } = value
  try {
    if (state != null) checkResource(state, 'state')
    if (operation != null) checkOperation(operation, 'operation')
    checkDeployment({ snippets: snippets ?? [], secrets_providers: secretsProvider ?? {} })
    checkDeployment(newSnapshot ?? null)
  } catch (error) {
    return unreadable(`an entry of kind ${kind}: ${(error as Error).message}`)
  }
  if (kind === 'Write' && newSnapshot == null) return unreadable('an entry of kind Write without newSnapshot')
  if (kind === 'ExtensionParameterize' && (typeof extensionRef !== 'string' || extension == null))
    return unreadable('an entry of kind ExtensionParameterize without extension')
  const index = (field: (typeof references)[number]) => (value[field] ?? undefined) as number | undefined
  return {
    ...{ kind, sequenceId, operationId, isRefresh, requiresByteString },
    ...{ removeOld: index('removeOld'), removeNew: index('removeNew'), deleteOld: index('deleteOld'), deleteNew: index('deleteNew') },
    ...{ pendingReplacementOld: index('pendingReplacementOld'), pendingReplacementNew: index('pendingReplacementNew') },
    state: (state ?? undefined) as Resource | undefined,
    operation: (operation ?? undefined) as PendingOperation | undefined,
    secretsProvider: (secretsProvider ?? undefined) as SecretsProvider | undefined,
    snippets: (snippets ?? undefined) as Snippet[] | undefined,
    newSnapshot: (newSnapshot ?? undefined) as Deployment | undefined,
    extensionRef: (extensionRef ?? undefined) as string | undefined,
    extension: extension ?? undefined,
  }
}

const isIndex = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
