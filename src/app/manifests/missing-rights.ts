import { systemNamespace } from '../../api/index.ts'
import { type Client, selfAccessReviewResource } from '../../kubernetes/client/index.ts'
import { accessReviewResource } from '../delegated-auth/review-resources.ts'
import { type ComponentName, componentAccount } from '../worker-identity.ts'
import { rulesOf } from './component-roles.ts'

type Right = { verb: string; group?: string; resource?: string; subresource?: string; namespace?: string; name?: string }

/**
 * What the user of `client` may not do, of what the role of a component needs, such as `patch workers/status`. Empty for an administrator. One
 * verb of each resource is reviewed, because roles grant them together.
 * @throws {StatusError} if the server rejects the credential. @throws {ConnectionError} if it does not answer.
 */
export async function missingRights(client: Client, component: ComponentName): Promise<string[]> {
  return await missingOf(component, resourceAttributes => isAllowed(client, resourceAttributes))
}

/**
 * As {@link missingRights}, for the ServiceAccount of the component in `oarlock-system`.
 * @throws {StatusError} Forbidden for a user who may not create SubjectAccessReviews.
 */
export async function missingAccountRights(client: Client, component: ComponentName): Promise<string[]> {
  const user = `system:serviceaccount:${systemNamespace}:${componentAccount(component)}`
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${systemNamespace}`, 'system:authenticated']
  const reviews = client.resource(accessReviewResource)
  return await missingOf(component, async resourceAttributes => {
    const { status } = await reviews.create({ metadata: { name: '' }, spec: { user, groups, resourceAttributes } })
    return status?.allowed === true
  })
}

/** Whether the user of `client` has a right. */
export async function isAllowed(client: Client, resourceAttributes: Right): Promise<boolean> {
  const { status } = await client.resource(selfAccessReviewResource).create({ metadata: { name: '' }, spec: { resourceAttributes } })
  return status?.allowed === true
}

async function missingOf(component: ComponentName, review: (right: Right) => Promise<boolean>): Promise<string[]> {
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
      return { ...resourceAttributes, isAllowed: await review(resourceAttributes) }
    }),
  )
  return reviewed.flatMap(({ verb, resource, subresource, namespace, name, isAllowed }) => {
    if (isAllowed) return []
    const what = [resource, subresource].filter(part => part !== undefined).join('/')
    return [`${verb} ${what}${name === undefined ? '' : ` ${name}`}${namespace === undefined ? '' : ` in ${namespace}`}`]
  })
}
