import type { RawJournalEntry } from '../../stores/pulumi/index.ts'
import type { PulumiEvent } from './pulumi-event.ts'

/** `<organization>/<project>/<stack>` as in the paths of the protocol. In Oarlock the organization is the namespace. */
export type PulumiStackId = { readonly organization: string; readonly project: string; readonly stack: string }

export type PulumiUpdateKind = 'update' | 'preview' | 'refresh' | 'destroy'

/** One operation of the CLI on a stack, from its start to its completion. Without what only a history of updates has. */
export type PulumiUpdate = {
  readonly id: string
  readonly stack: PulumiStackId
  readonly kind: PulumiUpdateKind
  /** Of any kind. It takes no lock and writes no state. */
  readonly isPreview: boolean
  /** Counts the updates that this handler has started, from 1. 0 for a preview. */
  readonly number: number
  /** As in the `User-Agent`, without a leading `v`; undefined if the CLI did not report it. */
  readonly cliVersion: string | undefined
  /** The CLI sends journal entries; otherwise it sends whole checkpoints. */
  readonly isJournaled: boolean
}

/** What arrived after the update lost its right to write. It is kept as an orphan: it may name resources that exist. */
export type RefusedWrite =
  | { readonly kind: 'journalEntries'; readonly entries: readonly RawJournalEntry[] }
  /** An UntypedDeployment. */
  | { readonly kind: 'checkpoint'; readonly deployment: Uint8Array }

export type PulumiStack = {
  readonly id: PulumiStackId
  /** Number of the newest version; 0 without a state. */
  readonly version: number
  readonly tags: Readonly<Record<string, string>>
  /** The id of an update that another client has started, if one is active. Those of this handler are added by the handler. */
  readonly activeUpdate?: string | undefined
}

export type PulumiStackSummary = {
  readonly id: PulumiStackId
  /** Unix time in seconds of the last update's start. */
  readonly lastUpdateSeconds?: number | undefined
  readonly resourceCount?: number | undefined
}

export type PulumiStackFilter = {
  readonly organization?: string | undefined
  readonly project?: string | undefined
  readonly tagName?: string | undefined
  readonly tagValue?: string | undefined
}

/** An update in the history of a stack, without its configuration. */
export type PulumiUpdateRecord = {
  readonly kind: PulumiUpdateKind | 'import' | 'rename'
  readonly version: number
  readonly startSeconds: number
  readonly endSeconds: number
  /** What the CLI reported about where it runs: commit, author, CI system. */
  readonly environment: Readonly<Record<string, string>>
  readonly result: 'not-started' | 'in-progress' | 'succeeded' | 'failed'
  readonly resourceChanges?: Readonly<Record<string, number>> | undefined
  readonly resourceCount?: number | undefined
}

export type PulumiUpdateStatus = 'succeeded' | 'failed' | 'cancelled'

/**
 * Why a call of the backend is refused, and the status that the CLI gets.
 * - `NotFound` 404: no such stack or version, or the Run may not know that it exists.
 * - `Forbidden` 403: not allowed for this stack.
 * - `Fenced` 403: the update may not write any more (old epoch, lost lock). Final: the handler refuses everything that follows from it.
 * - `Conflict` 409: the stack is locked, exists already, or stored data differs (another entry has this sequence id).
 * - `HasResources` 400: a stack with resources is deleted only with force.
 * - `Invalid` 400: the content is invalid.
 * - `TooLarge` 413: of a journal request, the CLI sends its halves.
 * - `Unavailable` 503: retry. The CLI tries 4 times: after 1, 2 and 4 s.
 */
export type PulumiBackendErrorCode =
  | 'NotFound'
  | 'Forbidden'
  | 'Fenced'
  | 'Conflict'
  | 'HasResources'
  | 'Invalid'
  | 'TooLarge'
  | 'Unavailable'

/** A refused call. The message is shown to the user by the CLI, so it must not contain secrets (invariant 9). */
export class PulumiBackendError extends Error {
  override readonly name = 'PulumiBackendError'
  readonly code: PulumiBackendErrorCode

  constructor(code: PulumiBackendErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

/**
 * What the handler needs. A promise that resolves means durable (invariant 5): the CLI gets its answer after it. All methods may reject
 * with {@link PulumiBackendError}; any other error is answered 503 without its text, and reported to `onError`.
 * Writes of one update are never concurrent, and arrive in the order of their requests. Deployments are the JSON text of an UntypedDeployment:
 * `{"version":3|4,"features":[…],"deployment":{…}}`.
 */
export interface PulumiBackend {
  /** Who the CLI is logged in as, and the organizations that it may use; the first is the default one. */
  readUser(): Promise<{ readonly name: string; readonly organizations: readonly string[] }>

  listStacks(
    filter: PulumiStackFilter,
    continueToken: string | undefined,
  ): Promise<{ readonly stacks: readonly PulumiStackSummary[]; readonly continueToken?: string | undefined }>
  projectExists(organization: string, project: string): Promise<boolean>
  /** Undefined: there is none. */
  readStack(stack: PulumiStackId): Promise<PulumiStack | undefined>
  /** `state`: the first deployment. Rejects with `Conflict` if the stack exists. */
  createStack(
    stack: PulumiStackId,
    options: { readonly tags: Readonly<Record<string, string>>; readonly state?: Uint8Array | undefined },
  ): Promise<void>
  deleteStack(stack: PulumiStackId, options: { readonly force: boolean }): Promise<void>
  renameStack(stack: PulumiStackId, newStack: PulumiStackId): Promise<void>
  /** Replaces all tags. */
  writeTags(stack: PulumiStackId, tags: Readonly<Record<string, string>>): Promise<void>

  /** Base and journal, replayed (invariant 12). Undefined: the stack has no state. `version`: an older one. */
  readDeployment(stack: PulumiStackId, version?: number): Promise<Uint8Array | undefined>
  /**
   * A new version that no update wrote. It replaces base and journal: the CLI has read both before. Commands of a Run import too:
   * `pulumi refresh --clear-pending-creates` and `pulumi state …` export, change and import.
   */
  importDeployment(stack: PulumiStackId, deployment: Uint8Array): Promise<void>
  /** Newest first; `page` from 1. */
  listUpdates(stack: PulumiStackId, page: { readonly page: number; readonly pageSize: number }): Promise<readonly PulumiUpdateRecord[]>

  /** Results are in the order of the values. */
  encrypt(stack: PulumiStackId, plaintexts: readonly Uint8Array[]): Promise<readonly Uint8Array[]>
  /** Also called for other stacks, whose outputs a StackReference reads. */
  decrypt(stack: PulumiStackId, ciphertexts: readonly Uint8Array[]): Promise<readonly Uint8Array[]>

  /**
   * An update or a preview starts; `Conflict` if the stack is locked. At most one update of a stack is active in a handler.
   * @returns the number of the version that the update creates.
   */
  startUpdate(update: PulumiUpdate, tags: Readonly<Record<string, string>> | undefined): Promise<{ readonly version: number }>
  /** The CLI is alive. Called every 2.5 minutes of an update or preview. */
  renewUpdate(update: PulumiUpdate): Promise<void>
  /**
   * Stores entries, all or none. The same entry again changes nothing. On `Fenced` the backend has kept them as an orphan.
   * No entries of an update are passed to it after one of its calls rejected with `Fenced`: those go to {@link keepRefused}.
   */
  appendJournalEntries(update: PulumiUpdate, entries: readonly RawJournalEntry[]): Promise<void>
  /** Stores the whole state, from a CLI that does not send a journal. On `Fenced` the backend has kept it as an orphan. */
  writeCheckpoint(update: PulumiUpdate, deployment: Uint8Array): Promise<void>
  /** The handler refuses this write: the update was fenced or canceled before. At most `maxRefusedBytes` of each update are passed. */
  keepRefused(update: PulumiUpdate, write: RefusedWrite): Promise<void>
  /** For progress. Delivered at most once, possibly out of order: sort by `sequence`. */
  recordEvents(update: PulumiUpdate, events: readonly PulumiEvent[]): Promise<void>
  /** Called once, after everything that was acknowledged is stored. The journal can be compacted. */
  completeUpdate(update: PulumiUpdate, status: PulumiUpdateStatus): Promise<void>
}
