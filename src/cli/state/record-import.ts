import { annotations, pendingImport, type Stack, stackResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { newestNumber } from '../../stores/state/index.ts'
import { CliError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { visibleStacks } from '../targets.ts'
import type { StateApi } from './state-api.ts'

/**
 * Stores a state with `write` and records its lineage. As pending before: a Stack without a Run is otherwise deleted as one that has created nothing, and its
 * state with it. When it is stored, the Stack requires a state. If nothing was stored, nothing is recorded. Returns the version.
 */
export async function recordImport(
  { client, stack, state }: { client: Client; stack: Stack; state: Pick<StateApi, 'versions'> },
  lineage: string,
  write: () => Promise<number>,
): Promise<number> {
  const { name, namespace, annotations: all } = stack.metadata
  const record = async (value: string | null) => {
    const metadata = { annotations: { [annotations.importedState]: value } }
    await client.resource(stackResource).patch(name, { metadata }, { type: 'merge', namespace })
  }
  const newest = newestNumber(await state.versions())
  await record(pendingImport + lineage)
  let version: number
  try {
    version = await write()
  } catch (error) {
    // The state may be stored although its response was lost, or the lock was not released.
    const isStored = await state.versions().then(
      versions => newestNumber(versions) > newest,
      () => true,
    )
    // If this fails too, the record stays pending, which requires no state.
    if (!isStored) await record(all?.[annotations.importedState] ?? null).catch(() => undefined)
    throw error
  }
  await record(lineage)
  return version
}

/** Two Stacks with one state would change and destroy the same resources. @throws {CliError} if a Stack that the user can list has imported it. */
export async function rejectSecondImport(client: Client, { metadata }: Stack, lineage: string): Promise<void> {
  const stacks = await visibleStacks(client, metadata.namespace ?? 'default')
  const other = stacks.find(
    ({ metadata: { uid, annotations: all } }) =>
      uid !== metadata.uid && [lineage, pendingImport + lineage].includes(all?.[annotations.importedState] ?? ''),
  )
  if (!other) return
  throw new CliError(
    `stack/${other.metadata.name} in namespace ${other.metadata.namespace} has already imported this state (lineage ${lineage})`,
    {
      exitCode: exitCodes.rejected,
      hint: 'two Stacks with one state would change and destroy the same resources; --force imports it anyway',
    },
  )
}
