/** Who makes a request. */
export type User = {
  readonly name: string
  readonly groups: readonly string[]
  readonly uid?: string
}

export const adminsGroup = 'system:masters'
export const authenticatedGroup = 'system:authenticated'

/** What a request is allowed or refused by. Resource requests have a resource, all others a path. */
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
}

/** True, or the reason for a 403; empty when there is nothing to add. */
export type Authorizer = (attributes: Attributes) => true | string

/** Administrators may do everything, everyone else nothing. */
export const adminsOnly: Authorizer = ({ user }) => user.groups.includes(adminsGroup) || ''

export function named(name: string, groups: readonly string[]): User {
  return { name, groups: groups.includes(authenticatedGroup) ? groups : [...groups, authenticatedGroup] }
}
