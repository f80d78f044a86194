import {
  type Deployment,
  interruptedOperations,
  isOfStateOnly,
  type Resource,
  type UntypedDeployment,
} from '../../../stores/pulumi/index.ts'
import type { EngineContext } from '../engine.ts'
import { EngineError } from '../engine-error.ts'
import { liveResources } from './results.ts'
import { nameOf, typeOf } from './urn.ts'

const maxListed = 10

/** Resources whose creation was interrupted: the provider may have created them, and the state has no ID of them. */
export const pendingCreates = (deployment: Deployment): Resource[] =>
  interruptedOperations(deployment)
    .filter(({ type }) => type === 'creating')
    .map(({ resource }) => resource)

/** `aws:s3/bucket:Bucket logs, aws:s3/bucket:Bucket data`, at most 10. */
export const formatPending = (urns: readonly string[]): string => list(urns.map(urn => `${typeOf(urn)} ${nameOf(urn)}`))

const list = (items: readonly string[]): string =>
  items.length > maxListed ? `${items.slice(0, maxListed).join(', ')} and ${items.length - maxListed} more` : items.join(', ')

type Rules = Pick<EngineContext, 'spec'>

/** The IDs that the Stack names for interrupted creations, by URN. */
function importIds({ spec }: Rules): ReadonlyMap<string, string> {
  const { pendingCreates: rule, importPendingCreates: imports = [] } = spec.pulumi ?? {}
  return new Map(rule === 'Import' || rule === 'Clear' ? imports.map(({ urn, id }) => [urn, id]) : [])
}

/**
 * What a Stack does with such resources until a user decides: nothing, because creating them again could leave the first ones without an owner.
 * @throws {EngineError} PendingCreates
 */
export function rejectPendingCreates({ spec }: Rules, deployment: Deployment): void {
  const rule = spec.pulumi?.pendingCreates ?? 'Stop'
  const ids = importIds({ spec })
  const undecided = pendingCreates(deployment).filter(({ urn }) => !ids.has(urn))
  if (undecided.length === 0 || rule === 'Clear') return
  const urns = undecided.map(({ urn }) => urn)
  const what = urns.length === 1 ? 'the creation of 1 resource was' : `the creation of ${urns.length} resources was`
  const isUnknown = `${what} interrupted, and it is unknown whether the provider finished: ${formatPending(urns)}`
  throw new EngineError(
    'PendingCreates',
    rule === 'Import'
      ? `${isUnknown}; add their IDs to spec.pulumi.importPendingCreates, for ${list(urns)}; or, if none of them exists, set spec.pulumi.pendingCreates to Clear`
      : `${isUnknown}; delete what exists there, then set spec.pulumi.pendingCreates to Clear, which creates them again, or name their IDs in spec.pulumi.importPendingCreates and set it to Import`,
    { retryable: false },
  )
}

/** What the CLI reads from the provider to import interrupted creations: the state with them as resources that have an ID and no outputs. */
export type PendingImport = { readonly urns: readonly string[]; readonly state: UntypedDeployment }

/**
 * Undefined if the Stack names no ID of an interrupted creation. The CLI's own `refresh --import-pending-creates` forgets them without an import (3.260),
 * so that they would be created again.
 * @throws {EngineError} PendingCreates for one that was to replace another resource: which of the two exist is known only to the provider.
 */
export function pendingImport(context: Rules, state: UntypedDeployment | undefined): PendingImport | undefined {
  const { deployment } = state ?? {}
  const ids = importIds(context)
  if (!state || !deployment || ids.size === 0) return undefined
  const imported = pendingCreates(deployment).filter(({ urn }) => ids.has(urn))
  if (imported.length === 0) return undefined
  const existing = new Set(liveResources(deployment).map(({ urn }) => urn))
  const replacing = imported.filter(({ urn }) => existing.has(urn)).map(({ urn }) => urn)
  if (replacing.length > 0) {
    throw new EngineError(
      'PendingCreates',
      `an interrupted replacement cannot be imported: ${list(replacing)} of spec.pulumi.importPendingCreates; delete the new resource at the provider, remove the entry, and set spec.pulumi.pendingCreates to Clear`,
      { retryable: false },
    )
  }
  const resources = [...(deployment.resources ?? []), ...imported.map(resource => ({ ...resource, id: ids.get(resource.urn) as string }))]
  return { urns: imported.map(({ urn }) => urn), state: { ...state, deployment: { ...deployment, resources } } }
}

/**
 * The state after the CLI has read the imported resources.
 * @throws {EngineError} PendingCreates if the provider does not have all of them.
 */
export function withImported(context: Rules, { urns }: PendingImport, read: UntypedDeployment): UntypedDeployment {
  const deployment = read.deployment ?? {}
  const found = new Set(liveResources(deployment).map(({ urn }) => urn))
  const ids = importIds(context)
  const missing = urns.filter(urn => !found.has(urn))
  if (missing.length > 0) {
    const named = missing.map(urn => `${typeOf(urn)} ${nameOf(urn)} with ID ${JSON.stringify(ids.get(urn))}`)
    throw new EngineError(
      'PendingCreates',
      `the provider does not have ${list(named)}; correct it in spec.pulumi.importPendingCreates, or remove the entry and set spec.pulumi.pendingCreates to Clear`,
      { retryable: false },
    )
  }
  const others = (deployment.pending_operations ?? []).filter(({ type, resource }) => type !== 'creating' || !urns.includes(resource.urn))
  return { ...read, deployment: { ...deployment, pending_operations: others } }
}

/**
 * The state without interrupted creations: all of them if the Stack clears them, otherwise those that have created nothing outside of the state. Undefined if it
 * has none. Other operations that were interrupted have an ID: the CLI finds out what became of them.
 */
export function withoutPendingCreates({ spec }: Rules, state: UntypedDeployment): UntypedDeployment | undefined {
  const { deployment } = state
  const pending = deployment?.pending_operations ?? []
  const isCleared = (operation: (typeof pending)[number]) =>
    spec.pulumi?.pendingCreates === 'Clear' ? operation.type === 'creating' : isOfStateOnly(operation)
  const others = pending.filter(operation => !isCleared(operation))
  return others.length === pending.length ? undefined : { ...state, deployment: { ...deployment, pending_operations: others } }
}
