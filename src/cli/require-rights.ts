import { apiGroup } from '../api/index.ts'
import { type Client, selfAccessReviewResource } from '../kubernetes/client/index.ts'
import { CliError, rightHint } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'

/** A permission on Stacks, such as `{ verb: 'delete', subresource: 'destroy' }`. */
export type StackRight = { readonly verb: string; readonly subresource?: string }

/**
 * For a command that asks the user, or changes something, before the request that needs the rights.
 * @param purpose the beginning of the message, which `needs the permission to VERB stacks` completes.
 * @throws {CliError} if the user lacks one of the rights on the Stack; its hint names the role that grants the first one.
 */
export async function requireRights(
  client: Client,
  stack: { namespace: string; name: string },
  needed: readonly StackRight[],
  { purpose, alternative }: { purpose: string; alternative?: string },
): Promise<void> {
  for (const right of needed) {
    if (await hasRight(client, stack, right)) continue
    const { text, hint } = describeMissingRight(right, stack.namespace)
    throw new CliError(`${purpose} needs the ${text}`, {
      exitCode: exitCodes.rejected,
      hint: alternative ? `${hint}; ${alternative}` : hint,
    })
  }
}

/** Whether the user has the right on the Stack. */
export async function hasRight(client: Client, stack: { namespace: string; name: string }, right: StackRight): Promise<boolean> {
  const { verb, subresource } = right
  const resourceAttributes = { verb, group: apiGroup, resource: 'stacks', ...(subresource && { subresource }), ...stack }
  const { status } = await client.resource(selfAccessReviewResource).create({ metadata: { name: '' }, spec: { resourceAttributes } })
  return status?.allowed === true
}

/** `permission to delete stacks/destroy in namespace shop`, and how to get it. */
export function describeMissingRight({ verb, subresource }: StackRight, namespace: string): { text: string; hint: string } {
  const resource = subresource ? `stacks/${subresource}` : 'stacks'
  return { text: `permission to ${verb} ${resource} in namespace ${namespace}`, hint: rightHint(verb, resource, namespace) }
}
