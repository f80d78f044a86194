import { type Client, selfAccessReviewResource } from '../../kubernetes/client/index.ts'
import type { ComponentName } from '../worker-identity.ts'
import { rulesOf } from './component-roles.ts'

/**
 * What the user of `client` may not do, of what the role of a component needs, such as `patch workers/status`. Empty for an administrator. One
 * verb of each resource is reviewed, because roles grant them together.
 * @throws {StatusError} if the server rejects the credential. @throws {ConnectionError} if it does not answer.
 */
export async function missingRights(client: Client, component: ComponentName): Promise<string[]> {
  const needed = rulesOf(component).flatMap(({ namespace, rules }) =>
    rules.flatMap(({ apiGroups: [group], resources, resourceNames: [name] = [], verbs }) =>
      resources.map(text => {
        const [resource, subresource] = text.split('/')
        return { verb: verbs.at(-1) ?? '', group, resource, subresource, namespace, name }
      }),
    ),
  )
  const reviewed = await Promise.all(
    needed.map(async resourceAttributes => {
      const { status } = await client.resource(selfAccessReviewResource).create({ metadata: { name: '' }, spec: { resourceAttributes } })
      return { ...resourceAttributes, isAllowed: status?.allowed === true }
    }),
  )
  return reviewed.flatMap(({ verb, resource, subresource, namespace, name, isAllowed }) => {
    if (isAllowed) return []
    const what = [resource, subresource].filter(part => part !== undefined).join('/')
    return [`${verb} ${what}${name === undefined ? '' : ` ${name}`}${namespace === undefined ? '' : ` in ${namespace}`}`]
  })
}
