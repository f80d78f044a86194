import { apiGroup, workerResource } from '../../api/index.ts'
import type { Manifest } from './rule.ts'

/** A policy and its binding, both of this name. All expressions are CEL. */
export type Policy = {
  readonly name: string
  readonly group: string
  readonly version: string
  readonly resources: readonly string[]
  readonly operations: readonly ('CREATE' | 'UPDATE' | 'DELETE')[]
  /** Which requests are checked; all have to be true. */
  readonly conditions?: Readonly<Record<string, string>>
  readonly variables?: Readonly<Record<string, string>>
  readonly validations: readonly { readonly expression: string; readonly message: string; readonly messageExpression?: string }[]
  /** Objects of this kind in the namespace of the request, or in the Namespace of the request, each of which has to satisfy all validations as `params`. */
  readonly params?: { readonly apiVersion: string; readonly kind: string }
  /** Admits the request if the policy cannot be evaluated. Default: rejects it. */
  readonly failsOpen?: boolean
}

// A request in another version of the API is converted to this one before it is checked (matchPolicy: Equivalent).
export const ownKinds = { group: apiGroup, version: workerResource.version }

export const text = (value: string) => JSON.stringify(value)

/** Empty fields of a request are missing. */
export const subresource = 'request.?subResource.orValue("")'

export function manifestsOf(policy: Policy): Manifest[] {
  const { name, group, version, resources, operations, conditions = {}, variables = {}, validations, params, failsOpen } = policy
  const kind = { apiVersion: 'admissionregistration.k8s.io/v1' } as const
  const pairs = (expressions: Readonly<Record<string, string>>) =>
    Object.entries(expressions).map(([name, expression]) => ({ name, expression }))
  return [
    {
      ...kind,
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name },
      spec: {
        failurePolicy: failsOpen ? 'Ignore' : 'Fail',
        ...(params && { paramKind: params }),
        // With the defaults: server-side apply by another manager compares the whole field with what the server has stored.
        matchConstraints: {
          matchPolicy: 'Equivalent',
          namespaceSelector: {},
          objectSelector: {},
          resourceRules: [{ apiGroups: [group], apiVersions: [version], resources, operations, scope: '*' }],
        },
        matchConditions: pairs(conditions),
        variables: pairs(variables),
        validations: validations.map(validation => ({ ...validation, reason: 'Forbidden' })),
      },
    },
    {
      ...kind,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name },
      spec: {
        policyName: name,
        validationActions: ['Deny'],
        ...(params && { paramRef: { selector: {}, parameterNotFoundAction: 'Allow' } }),
      },
    },
  ]
}
