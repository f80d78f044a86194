import type { KubeObject } from '../../object/index.ts'

/** The user of a request. */
export type User = {
  readonly name: string
  readonly groups: readonly string[]
  readonly uid?: string
  /** Further attributes, such as the Pod that a service account token is bound to. */
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

export const adminsGroup = 'system:masters'
const authenticatedGroup = 'system:authenticated'

/** The attributes of a request that authorization uses. A resource request has a resource, any other a path. */
export type Attributes = {
  user: User
  /** A Kubernetes verb such as `list`; the lower-case HTTP method for paths. */
  verb: string
  group: string
  resource: string
  subresource?: string
  namespace?: string
  name?: string
  path?: string
  /** The field selector of a list or watch, as it was sent. */
  fieldSelector?: string
}

/** True, or the reason for a 403; empty when there is nothing to add. */
export type Authorizer = (attributes: Attributes) => true | string

/** The authorizer of the program that embeds the server: as {@link Authorizer}, or undefined to leave the decision to RBAC. */
export type AuthorizerPlugin = (attributes: Attributes) => true | string | undefined

/** The write that an {@link AdmissionPlugin} decides on. */
export type AdmissionRequest = {
  readonly user: User
  readonly verb: string
  readonly kind: { readonly group: string; readonly plural: string }
  readonly namespace: string
  /** Of the request path; empty for a create, which names its object in the body only. */
  readonly name: string
  readonly subresource: string
  /** Nothing is stored, whatever the plugin decides. */
  readonly isDryRun: boolean
  /** Whether the user has a permission besides that for the request, as `authorizer` in CEL: for rights on single fields. */
  readonly isAllowed: (request: Omit<Attributes, 'user'>) => boolean
  /** Adds an annotation to the audit event of the request, if it has one. */
  readonly auditAnnotation: (key: string, value: string) => void
}

/**
 * Validates an object before it is written, knowing who writes it, as Kubernetes' plugin NodeRestriction does. `oldObject` is the object that
 * would be replaced. Returns the reason for a 403, or undefined to admit the object.
 * It may also record what only the server knows, such as the user, in annotations: by replacing `object.metadata`, whose values are shared
 * with `oldObject`.
 * @throws {StatusError} to reject it with another status.
 */
export type AdmissionPlugin = (request: AdmissionRequest, object: KubeObject, oldObject: KubeObject | undefined) => string | undefined

/**
 * Decides whether a user may delete an object, alone or with its collection. Not called for what the garbage collector deletes, nor for the
 * content of a deleted namespace. Returns the reason for a 403, or undefined to admit the deletion.
 * It may also record who deletes an object that its finalizers keep, in annotations: by replacing `object.metadata`, also of one that is being
 * deleted already.
 */
export type DeletionPlugin = (request: AdmissionRequest, object: KubeObject) => string | undefined

export function authenticatedUser(name: string, groups: readonly string[]): User {
  return { name, groups: groups.includes(authenticatedGroup) ? groups : [...groups, authenticatedGroup] }
}
