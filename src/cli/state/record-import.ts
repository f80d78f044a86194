import { annotations, type Stack, stackResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { CliError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { visibleStacks } from '../targets.ts'

/** Before the state is stored: a Stack without a Run is otherwise deleted as one that has created nothing, and its state with it. */
export async function recordImport(client: Client, { metadata: { name, namespace } }: Stack, lineage: string): Promise<void> {
  const recorded = { [annotations.importedState]: lineage }
  await client.resource(stackResource).patch(name, { metadata: { annotations: recorded } }, { type: 'merge', namespace })
}

/** Two Stacks with one state would change and destroy the same resources. @throws {CliError} if a Stack that the user can list has imported it. */
export async function rejectSecondImport(client: Client, { metadata }: Stack, lineage: string): Promise<void> {
  const stacks = await visibleStacks(client, metadata.namespace ?? 'default')
  const other = stacks.find(
    ({ metadata: { uid, annotations: all } }) => uid !== metadata.uid && all?.[annotations.importedState] === lineage,
  )
  if (!other) return
  throw new CliError(
    `stack/${other.metadata.name} in namespace ${other.metadata.namespace} has imported this state already (lineage ${lineage})`,
    {
      exitCode: exitCodes.rejected,
      hint: 'two Stacks with one state would change and destroy the same resources; --force imports it nevertheless',
    },
  )
}
