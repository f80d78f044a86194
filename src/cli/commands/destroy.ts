import { stackResource } from '../../api/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { type AccessOptions, namespaceOf, withClient } from '../access.ts'
import { CliError } from '../cli-error.ts'
import { confirm, print } from '../console.ts'
import { exitCodes } from '../exit-codes.ts'
import { requireRights } from '../require-rights.ts'
import { getStack } from '../targets.ts'
import { whenDestroyed } from '../when-destroyed.ts'

export type DestroyOptions = AccessOptions & { yes?: boolean; wait: boolean; timeout: string }

/** `oarlock destroy STACK`: destroys the resources of the Stack, whatever its spec.deletion is, and then deletes the Stack. */
export async function destroy(target: string, options: DestroyOptions): Promise<void> {
  await withClient(options, async client => {
    const stack = await getStack(client, target, namespaceOf(client, options))
    const { name, namespace = '', uid } = stack.metadata
    const count = stack.status?.resources
    const keepsResources = stack.spec.deletion === 'Orphan'
    if (stack.spec.deletionProtection)
      throw new CliError(
        `cannot destroy stack/${name}: spec.deletionProtection of the Stack is true: set it to false to delete the Stack`,
        {
          exitCode: exitCodes.rejected,
        },
      )
    // Before anything changes: when the deletion is rejected, the Stack must still be one whose resources are kept.
    await requireRights(
      client,
      { namespace, name },
      [{ verb: 'delete', subresource: 'destroy' }, { verb: 'delete' }, ...(keepsResources ? [{ verb: 'update' }, { verb: 'patch' }] : [])],
      keepsResources
        ? {
            purpose: `stack/${name} keeps its resources when it is deleted (spec.deletion: Orphan); destroying them`,
            alternative: `"oarlock delete stack/${name} -n ${namespace}" deletes the Stack alone`,
          }
        : { purpose: `destroying the resources of stack/${name}` },
    )
    await confirm(
      `destroy ${count === undefined ? 'all' : `the ${count}`} resources of stack/${name} in namespace ${namespace}, and delete the Stack?`,
      options,
    )
    const stacks = client.resource(stackResource)
    if (keepsResources) await stacks.patch(name, { spec: { deletion: 'Destroy' } }, { type: 'merge', namespace })
    await stacks.delete(name, { namespace, preconditions: { uid } })
    if (!options.wait) return print(`stack/${name} is being destroyed`)
    await whenDestroyed(client, stack, parseDuration(options.timeout))
    print(`stack/${name} destroyed`)
  })
}
