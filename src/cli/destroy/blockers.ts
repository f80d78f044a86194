import { expectedStateVersion, isStateError, oarlockCommand, type Stack } from '../../api/index.ts'
import { dependencyNames, findCycle } from '../../controllers/stack/index.ts'
import { type Client, namespaceResource } from '../../kubernetes/client/index.ts'
import { findCondition } from '../../kubernetes/object/index.ts'
import { decideStateError, describeHolder, formatStateError } from '../../stores/state/index.ts'
import { CliError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { describeMissingRight, hasRight, type StackRight } from '../require-rights.ts'
import { hasJournal, newestNumber, StateApi, unlockHint } from '../state/state-api.ts'

/** Why a Stack cannot be destroyed, with what to do. */
export type Blocker = {
  readonly text: string
  readonly hint?: string
}

export type BlockerOptions = {
  /** The Stacks of the namespace. */
  readonly others: readonly Stack[]
  /** Uids of those that are destroyed together. */
  readonly together: ReadonlySet<string>
  /** Whether a plan is requested and confirmed. */
  readonly isPlanned: boolean
}

/** Everything that blocks the destruction of a Stack, as far as it is known before a Run has planned it. */
export async function findBlockers(client: Client, stack: Stack, options: BlockerOptions): Promise<Blocker[]> {
  const { metadata, spec, status } = stack
  const [rights, state, namespace] = await Promise.all([
    missingRights(client, stack, options.isPlanned),
    stateBlockers(client, stack),
    isNamespaceTerminating(client, metadata.namespace ?? 'default'),
  ])
  const found: Blocker[] = [...rights]
  if (spec.deletionProtection) found.push({ text: 'spec.deletionProtection of the Stack is true: set it to false to delete the Stack' })
  found.push(...dependentsBlocker(stack, options))
  if (spec.suspend) found.push({ text: 'the Stack is suspended: set spec.suspend to false' })
  if (status?.restored) {
    const accept = oarlockCommand('restore accept', metadata)
    found.push({
      text: `the Stack was restored from a backup: show what differs with "${oarlockCommand('plan', metadata)}", then use "${accept}"`,
    })
  }
  if (namespace) {
    const text = `namespace ${metadata.namespace} is being deleted and accepts no new Run: set spec.deletion to Orphan to keep the resources`
    found.push({ text })
  }
  return [...found, ...state]
}

/** The Stacks that depend on it and are not destroyed together with it. */
export function dependentsBlocker(stack: Stack, { others, together }: Pick<BlockerOptions, 'others' | 'together'>): Blocker[] {
  const dependents = dependentsOf(stack, others, together)
  if (dependents.length === 0) return []
  const all = oarlockCommand('destroy', { name: '--all', namespace: stack.metadata.namespace ?? 'default' })
  return [{ text: `Stacks depend on it: ${dependents.join(', ')}; destroy them first, or all Stacks of the namespace with: ${all}` }]
}

/** @throws {CliError} with all of them. */
export function expectNoBlockers(what: string, blockers: readonly Blocker[]): void {
  const [first] = blockers
  if (!first) return
  const hint = blockers.find(blocker => blocker.hint)?.hint
  throw new CliError(
    blockers.length === 1 ? `cannot destroy ${what}: ${first.text}` : `cannot destroy ${what}, for ${blockers.length} reasons:`,
    {
      exitCode: exitCodes.rejected,
      details: blockers.length === 1 ? [] : blockers.map(({ text }) => `- ${text}`),
      ...(hint !== undefined && { hint }),
    },
  )
}

async function missingRights(client: Client, { metadata, spec }: Stack, isPlanned: boolean): Promise<Blocker[]> {
  const { name, namespace = 'default' } = metadata
  const keepsResources = spec.deletion === 'Orphan'
  const needed: StackRight[] = [
    { verb: 'delete', subresource: 'destroy' },
    { verb: 'delete' },
    { verb: 'patch' },
    ...(isPlanned ? [{ verb: 'get', subresource: 'plan' }] : []),
    ...(keepsResources ? [{ verb: 'update' }] : []),
  ]
  const allowed = await Promise.all(needed.map(right => hasRight(client, { namespace, name }, right)))
  return needed
    .filter((_, index) => !allowed[index])
    .map(right => {
      const { text, hint } = describeMissingRight(right, namespace)
      const remedy = keepsResources
        ? `${hint}; "${oarlockCommand('delete', { name: `stack/${name}`, namespace })}" deletes the Stack alone`
        : hint
      const purpose = keepsResources
        ? `stack/${name} keeps its resources when it is deleted (spec.deletion: Orphan); destroying them needs the`
        : 'it needs the'
      return { text: `${purpose} ${text}`, hint: remedy }
    })
}

/** A missing or old state, and a lock of a user. Without the right to read states, what the status reports. */
async function stateBlockers(client: Client, stack: Stack): Promise<Blocker[]> {
  const { name, namespace = 'default' } = stack.metadata
  const api = new StateApi(client, namespace, name)
  const [versions, lock] = await Promise.all([api.versions().catch(() => undefined), api.currentLock().catch(() => undefined)])
  const found: Blocker[] = []
  const stalled = findCondition(stack.status?.conditions, 'Stalled')
  const error = versions && decideStateError(expectedStateVersion(stack), newestNumber(versions))
  const isStalled = stalled?.status === 'True' && isStateError(stalled.reason)
  const isReported = isStalled && (versions === undefined || (stalled.reason === 'JournalUnreadable' && hasJournal(versions)))
  if (error || isReported) {
    const problem = error ? `${error.reason}: ${formatStateError(error)}` : `${stalled?.reason}: ${stalled?.message}`
    const force = oarlockCommand('delete', { name: `stack/${name}`, namespace })
    found.push({ text: `${problem}; "${force} --force" deletes the Stack and leaves its resources` })
  }
  if (lock?.holder.kind === 'User')
    found.push({ text: `the state is locked by ${describeHolder(lock.holder)}: ${unlockHint(lock, `${namespace}/${name}`)}` })
  return found
}

/** The Stacks that depend on the Stack, and that are not being deleted. Those of a cycle do not wait for each other. */
function dependentsOf({ metadata }: Stack, others: readonly Stack[], together: ReadonlySet<string>): string[] {
  const specOf = (name: string) => others.find(other => other.metadata.name === name)?.spec
  const cycle = findCycle(metadata.name, specOf)
  return others
    .filter(
      other =>
        !other.metadata.deletionTimestamp && !together.has(other.metadata.uid) && dependencyNames(other.spec).includes(metadata.name),
    )
    .map(other => other.metadata.name)
    .filter(name => !cycle?.includes(name))
}

/** False if the user may not read it. */
async function isNamespaceTerminating(client: Client, name: string): Promise<boolean> {
  const namespace = await client
    .resource(namespaceResource)
    .getOrUndefined(name)
    .catch(() => undefined)
  return namespace?.metadata.deletionTimestamp !== undefined
}
