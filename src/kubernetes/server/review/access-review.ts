import { badRequest, invalid, invalidValue, type KubeObject, type StatusCause, StatusError } from '../../object/index.ts'
import type { Attributes, Authorization, PolicyRule, User } from '../auth/index.ts'
import type { Call, Decoded } from '../rest/index.ts'
import { objectIn, textIn, textsIn } from './review-fields.ts'

/**
 * Evaluates a SelfSubjectAccessReview, SubjectAccessReview or LocalSubjectAccessReview.
 * @throws {StatusError} Invalid.
 */
export function reviewAccess(
  { target: { kind, namespace }, caller: { user } }: Call,
  { object, sent }: Decoded,
  authorization: Authorization,
): Record<string, unknown> {
  const spec = objectIn(object.spec)
  const { resourceAttributes, nonResourceAttributes } = spec
  const isLocal = kind.kind === 'LocalSubjectAccessReview'
  const isSelf = kind.kind === 'SelfSubjectAccessReview'
  const causes: StatusCause[] = []
  const reject = (field: string, value: unknown, why: string) => causes.push(invalidValue(field, value, why))
  if (resourceAttributes && nonResourceAttributes) {
    reject('spec.nonResourceAttributes', goPath(nonResourceAttributes), 'cannot be specified in combination with resourceAttributes')
  }
  if (!resourceAttributes && !nonResourceAttributes) {
    reject('spec.resourceAttributes', null, 'exactly one of nonResourceAttributes or resourceAttributes must be specified')
  }
  if (!isSelf && !spec.user && textsIn(spec.groups).length === 0) {
    reject('spec.user', '', 'at least one of user or group must be specified')
  }
  const { namespace: sentNamespace, managedFields: _, ...meta } = sent
  if (Object.keys(meta).length > 0 || (sentNamespace && !isLocal)) {
    reject('metadata', { ...sent }, isLocal ? 'must be empty except for namespace' : 'must be empty')
  }
  if (isLocal) {
    const within = textIn(objectIn(resourceAttributes).namespace)
    if (resourceAttributes && within !== namespace) reject('spec.resourceAttributes.namespace', within, 'must match metadata.namespace')
    if (nonResourceAttributes) reject('spec.nonResourceAttributes', goPath(nonResourceAttributes), 'disallowed on this kind of request')
  }
  if (causes.length > 0) {
    // As in Kubernetes, the message omits the kind.
    const { message } = invalid({ group: kind.group, plural: kind.plural, kind: '' }, '', causes)
    throw new StatusError('Invalid', message, { details: { group: kind.group, causes } })
  }
  const subject = isSelf ? user : subjectIn(spec)
  const requested = resourceAttributes ? resourceRequest(objectIn(resourceAttributes)) : pathRequest(objectIn(nonResourceAttributes))
  const { allowed, denied, reason } = authorization.explain({ ...requested, user: subject })
  return {
    ...(isLocal && { metadata: { namespace } }),
    spec,
    status: { allowed, ...(denied && { denied }), ...(reason && { reason }) },
  }
}

/** @throws {StatusError} BadRequest without a namespace. */
export function reviewRules(object: KubeObject, user: User, authorization: Authorization): Record<string, unknown> {
  const namespace = textIn(objectIn(object.spec).namespace)
  if (!namespace) throw badRequest('no namespace on request')
  const { rules, error, isIncomplete } = authorization.rulesFor(user, namespace)
  return {
    spec: {},
    status: {
      resourceRules: rules.filter(rule => rule.resources?.length).map(resourceRule),
      nonResourceRules: rules
        .filter(rule => rule.nonResourceURLs?.length)
        .map(({ verbs, nonResourceURLs }) => ({ verbs, nonResourceURLs })),
      incomplete: isIncomplete,
      ...(error && { evaluationError: error }),
    },
  }
}

function resourceRule({ verbs, apiGroups, resources, resourceNames }: PolicyRule): object {
  return { verbs, apiGroups, resources, ...(resourceNames?.length && { resourceNames }) }
}

function subjectIn(spec: Record<string, unknown>): User {
  return { name: textIn(spec.user), groups: textsIn(spec.groups), uid: textIn(spec.uid) || undefined }
}

function resourceRequest({ verb, group, resource, subresource, namespace, name }: Record<string, unknown>): Omit<Attributes, 'user'> {
  return {
    verb: textIn(verb),
    group: textIn(group),
    resource: textIn(resource),
    subresource: textIn(subresource) || undefined,
    namespace: textIn(namespace) || undefined,
    name: textIn(name) || undefined,
  }
}

function pathRequest({ verb, path }: Record<string, unknown>): Omit<Attributes, 'user'> {
  return { verb: textIn(verb), group: '', resource: '', path: textIn(path) }
}

// The words of Go, which prints the struct.
function goPath(value: unknown): object {
  const { path, verb } = objectIn(value)
  return { Path: textIn(path), Verb: textIn(verb) }
}
