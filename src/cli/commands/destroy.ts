import { annotations, type Stack } from '../../api/index.ts'
import { readRequiresApproval } from '../../controllers/stack/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { usageError } from '../cli-error.ts'
import { countOf } from '../count-of.ts'
import { destroyNamespace } from '../destroy/destroy-namespace.ts'
import { executeDestruction } from '../destroy/execute-destruction.ts'
import { type PlannedDestruction, planDestructions, setSource, showDestruction } from '../destroy/plan-destruction.ts'
import { hasRight } from '../require-rights.ts'
import { getStack, visibleStacks } from '../targets.ts'
import { confirm, note, print } from '../terminal.ts'

export type DestroyOptions = AccessOptions & { all?: boolean; yes?: boolean; useCurrentSource?: boolean; wait: boolean; timeout: string }

const approvalRight = { verb: 'update', subresource: 'approval' } as const

/**
 * `oarlock destroy STACK`: shows what would be destroyed, asks, destroys exactly that, whatever spec.deletion is, and deletes the Stack.
 * `oarlock destroy --all -n NAMESPACE` does that with all Stacks of the namespace.
 */
export async function destroy(target: string | undefined, options: DestroyOptions): Promise<void> {
  const timeoutMs = parseDuration(options.timeout)
  const useCurrentSource = options.useCurrentSource === true
  const selected = selection(target, options)
  if (selected.stack === undefined && useCurrentSource)
    throw usageError('--use-current-source needs a Stack', 'use oarlock destroy STACK --use-current-source')
  await withClient(options, async client => {
    if (selected.stack === undefined) return await destroyNamespace(client, selected.namespace, { ...options, timeoutMs })
    const stack = await getStack(client, selected.stack, namespaceOf(client, options))
    const { name, namespace = 'default' } = stack.metadata
    const listOthers = async () => (await visibleStacks(client, namespace)).filter(({ metadata }) => metadata.namespace === namespace)
    const planned = await keepSourceUnless(client, stack, useCurrentSource, async () => {
      const planOptions = { what: `stack/${name}`, timeoutMs, useCurrentSource, listOthers, includesOthers: false }
      const [planned] = await planDestructions(client, [stack], planOptions)
      await showDestruction(client, planned!)
      if (planned!.plan && (await readRequiresApproval(client, stack)) && !(await hasRight(client, { namespace, name }, approvalRight)))
        note(
          `stack/${name} is then deleted when a user with the permission to ${approvalRight.verb} stacks/${approvalRight.subresource} approves this plan`,
        )
      await confirm(questionOf(planned!), options)
      return planned!
    })
    await executeDestruction(client, planned, { wait: options.wait, timeoutMs })
    print(options.wait ? `stack/${name} destroyed` : `stack/${name} is being destroyed`)
  })
}

/**
 * All Stacks of a namespace only with --all and -n: an unset variable of a script, as in `oarlock destroy $STACK -n prod --yes`, must not select them.
 * @throws {CliError} usage
 */
function selection(
  target: string | undefined,
  { all, namespace }: DestroyOptions,
): { stack: string } | { stack?: undefined; namespace: string } {
  if (target && !all) return { stack: target }
  if (!target && all && namespace) return { namespace }
  throw usageError(
    'specify either a Stack, or all Stacks of a namespace with --all and --namespace',
    'use "oarlock destroy STACK", or "oarlock destroy --all -n NAMESPACE"',
  )
}

function questionOf({ stack, plan, changesSource }: PlannedDestruction): string {
  const { name, namespace, deletionTimestamp } = stack.metadata
  if (deletionTimestamp)
    return `continue the destruction of stack/${name} in namespace ${namespace}${changesSource ? ' with its present source' : ''}?`
  const resources = plan ? `destroy ${countOf(plan.destroy, 'resource')} of` : 'delete'
  return `${resources} stack/${name} in namespace ${namespace}${plan ? ', and delete the Stack' : ''}?`
}

/** If the user does not continue, the annotation that selects the source is removed again. */
async function keepSourceUnless<T>(client: Client, stack: Stack, isSet: boolean, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (isSet && stack.metadata.annotations?.[annotations.destroySource] === undefined) await setSource(client, stack, null).catch(() => {})
    throw error
  }
}
