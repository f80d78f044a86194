/**
 * The users of workers: their names and groups on the API server. A worker is either a user of the embedded server, whose token that server
 * signed, or the ServiceAccount of its name in the namespace `oarlock-workers`, which works on every Kubernetes API server.
 */
import { workersNamespace } from '../api/index.ts'

export const workersGroup = 'oarlock:workers'
const workerUserPrefix = 'system:oarlock:worker:'

export const workerUserName = (workerName: string) => `${workerUserPrefix}${workerName}`

/** The group that a Kubernetes API server gives to the ServiceAccounts of workers. */
export const workerAccountsGroup = `system:serviceaccounts:${workersNamespace}`
export const workerAccountPrefix = `system:serviceaccount:${workersNamespace}:`
/** The processes of an installation whose roles run apart, which have a ServiceAccount each (manifests/component-roles.ts). */
const componentNames = ['controller', 'stores', 'join-service', 'pool'] as const
export type ComponentName = (typeof componentNames)[number]

const componentPrefix = 'oarlock-'

/** The ServiceAccount of a component in `oarlock-system`; also the name of its Roles, and of the Lease of the leading controller. */
export const componentAccount = (name: ComponentName): string => `${componentPrefix}${name}`

/**
 * The names that no worker has: its Lease, which has the same name, would be that of a component, or its account the one that every
 * namespace has.
 */
export const reservedWorkerNames: readonly string[] = ['default', ...componentNames.map(componentAccount)]

/** Also names that a later component may have. Workers are named after their pool, so those of a pool `oarlock-a` begin with its name. */
const isReservedWorkerName = (name: string, pool: string): boolean =>
  reservedWorkerNames.includes(name) || (name.startsWith(componentPrefix) && !name.startsWith(`${pool}-`))

/** Why a worker of the pool cannot have this name. */
export const reservedNameError = (name: string, pool: string): string | undefined =>
  isReservedWorkerName(name, pool)
    ? `name ${name} is reserved for components of Oarlock: use one that does not begin with "${componentPrefix}"`
    : undefined

type HasName = { readonly name: string; readonly groups: readonly string[] }

/** The name of the Worker, if the user is one. Both name and group must match, and the name must not be reserved. */
export function workerOf(user: HasName | undefined): string | undefined {
  if (!user) return undefined
  const isWorkerUser = user.groups.includes(workersGroup) && user.name.startsWith(workerUserPrefix)
  if (!isWorkerUser && !isWorkerAccount(user)) return undefined
  const name = user.name.slice((isWorkerUser ? workerUserPrefix : workerAccountPrefix).length)
  return reservedWorkerNames.includes(name) ? undefined : name
}

const isWorkerAccount = ({ name, groups }: HasName) => groups.includes(workerAccountsGroup) && name.startsWith(workerAccountPrefix)

/** Whether a role or binding has the name of one of Oarlock's own. One that has less than before stops a component. */
export const isOwnRightsName = (name: string): boolean => ownRightsPrefixes.some(prefix => name.startsWith(prefix))
export const ownRightsPrefixes: readonly string[] = ['oarlock:', componentPrefix]

/** Workers that joined with a token: they run on other machines. The rules for them and for local workers differ for the engine `manifests` only. */
export const joinedGroup = 'oarlock:joined-workers'

export const hasJoined = (user: HasName): boolean => user.groups.includes(joinedGroup) || isWorkerAccount(user)

const poolGroupPrefix = 'oarlock:pool:'

/** The group of every worker of the pool. RBAC can grant it more, such as the objects that the manifests engine applies. */
export const poolGroup = (pool: string): string => `${poolGroupPrefix}${pool}`

/** The pool of a worker. */
export const poolOf = ({ groups }: { groups: readonly string[] }): string | undefined =>
  groups.find(group => group.startsWith(poolGroupPrefix))?.slice(poolGroupPrefix.length)
