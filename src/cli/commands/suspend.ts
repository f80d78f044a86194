import { endedPhases, oarlockCommand, type RunPhase, type Stack, stackResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { formatError, usageError } from '../cli-error.ts'
import { getStack } from '../targets.ts'
import { note, print } from '../terminal.ts'

export type SuspendOptions = AccessOptions & { all?: boolean; selector?: string }

/** `oarlock suspend STACK…`, `oarlock resume STACK…`: sets `spec.suspend`. One Stack that fails does not prevent the others; the first error is thrown. */
export async function setSuspended(suspend: boolean, names: string[], options: SuspendOptions): Promise<void> {
  const command = `oarlock ${suspend ? 'suspend' : 'resume'}`
  const { all, selector, allNamespaces } = options
  if ([names.length > 0, all === true, selector !== undefined].filter(Boolean).length !== 1)
    throw usageError('specify Stacks by name, or with --all, or with --selector', `${command} --help`)
  if (names.length > 0 && allNamespaces) throw usageError('a name cannot be combined with --all-namespaces', 'choose the namespace with -n')
  await withClient(options, async client => {
    const namespace = allNamespaces ? undefined : namespaceOf(client, options)
    const stacks =
      names.length > 0
        ? await namedStacks(client, names, namespaceOf(client, options))
        : (await client.resource(stackResource).listAll({ namespace, ...(selector !== undefined && { labelSelector: selector }) })).items
    if (stacks.length === 0)
      note(`no Stacks found${namespace === undefined ? '' : ` in namespace ${namespace}; use -A for all namespaces`}`)
    let failure: unknown
    for (const stack of stacks) {
      const subject = `stack/${stack.metadata.name}${allNamespaces ? ` -n ${stack.metadata.namespace}` : ''}`
      try {
        print(`${subject} ${await change(client, stack, suspend)}`)
        noteConsequence(stack, suspend)
      } catch (error) {
        if (stacks.length === 1) throw error
        note(`${subject}: ${formatError(error).message}`)
        failure ??= error
      }
    }
    if (failure !== undefined) throw failure
  })
}

async function namedStacks(client: Client, names: readonly string[], namespace: string): Promise<Stack[]> {
  const stacks: Stack[] = []
  // All names are checked before the first change.
  for (const name of names) stacks.push(await getStack(client, name, namespace))
  return stacks
}

async function change(client: Client, { metadata, spec }: Stack, suspend: boolean): Promise<string> {
  if ((spec.suspend ?? false) === suspend) return suspend ? 'is already suspended' : 'is not suspended'
  const { name, namespace } = metadata
  await client.resource(stackResource).patch(name, { spec: { suspend } }, { type: 'merge', namespace })
  return suspend ? 'suspended' : 'resumed'
}

function noteConsequence({ metadata, spec, status }: Stack, suspend: boolean): void {
  const { lastRun, restored } = status ?? {}
  const isActive = lastRun !== undefined && !endedPhases.includes(lastRun.phase as RunPhase)
  if (suspend && isActive) note(`  run/${lastRun.name} is active and continues; to stop it: ${oarlockCommand('cancel', metadata)}`)
  if (metadata.deletionTimestamp !== undefined && spec.deletion !== 'Orphan')
    note(
      suspend
        ? `  it is being deleted: ${isActive ? 'that Run may still destroy resources, and ' : ''}no other Run starts until it is resumed`
        : '  it is being deleted: this continues, and its resources are destroyed, after an approval where one is required',
    )
  if (!suspend && restored) note(`  it was restored from a backup and waits for its review: ${oarlockCommand('restore accept', metadata)}`)
}
