import { dependentsBlockers, destructionBlockers, formatBlocker, oarlockCommand, type Stack } from '../../api/index.ts'
import { dependentsOf, isNamespaceTerminating } from '../../controllers/stack/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { describeHolder } from '../../stores/state/index.ts'
import { CliError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { readKnownState } from '../expect-runnable.ts'
import { describeMissingRight, hasRight, type StackRight } from '../require-rights.ts'
import { StateApi } from '../state/state-api.ts'

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
export async function findBlockers(client: Client, stack: Stack, { others, together, isPlanned }: BlockerOptions): Promise<Blocker[]> {
  const { name, namespace = 'default' } = stack.metadata
  const [rights, state, lock, isTerminating] = await Promise.all([
    missingRights(client, stack, isPlanned),
    readKnownState(client, stack),
    new StateApi(client, namespace, name).currentLock().catch(() => undefined),
    isNamespaceTerminating(client, namespace),
  ])
  const facts = {
    dependents: dependentsOf(stack, others, together),
    isNamespaceTerminating: isTerminating,
    state,
    lockedBy: lock?.holder.kind === 'User' ? describeHolder(lock.holder) : undefined,
  }
  return [...rights, ...destructionBlockers(stack, facts).map(blocker => ({ text: formatBlocker(blocker) }))]
}

/** The Stacks that depend on it and are not destroyed together with it. */
export function dependentsBlocker(stack: Stack, { others, together }: Pick<BlockerOptions, 'others' | 'together'>): Blocker[] {
  return dependentsBlockers(stack, dependentsOf(stack, others, together)).map(blocker => ({ text: formatBlocker(blocker) }))
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
