/**
 * The users of workers: their names and groups on the API server. A worker is one of
 * - a user of the embedded server, whose token that server signed,
 * - the ServiceAccount of its name in the namespace `oarlock-workers`, which works on every Kubernetes API server: it joined with a token,
 * - the Pod of its name that a controller created, whose token of a ServiceAccount is bound to it (pools of mode Pod). Any user who may create Pods
 *   can create one of that name elsewhere, so it acts for a Worker only if that is recorded to be this Pod: {@link isWorkerOf}.
 */
import { podAccountName, type Run, systemNamespace, type Worker, type WorkerPod, workersNamespace } from '../api/index.ts'

export const workersGroup = 'oarlock:workers'
const workerUserPrefix = 'system:oarlock:worker:'

export const workerUserName = (workerName: string) => `${workerUserPrefix}${workerName}`

/** The group that a Kubernetes API server gives to the ServiceAccounts of workers. */
export const workerAccountsGroup = `system:serviceaccounts:${workersNamespace}`
export const workerAccountPrefix = `system:serviceaccount:${workersNamespace}:`

/** The users of worker Pods, in a syntax that RegExp and CEL (RE2) have in common. */
export const podUserPattern = `^system:serviceaccount:[^:]+:${podAccountName}(-[^:]*)?$`
const podAccountPattern = new RegExp(podUserPattern)

const podExtra = 'authentication.kubernetes.io/'
/** What kube-apiserver adds to the user of a token that is bound to a Pod. */
export const podExtraKeys = { name: `${podExtra}pod-name`, uid: `${podExtra}pod-uid` } as const

/** The processes of an installation whose roles run apart, which have a ServiceAccount each (manifests/component-roles.ts). */
const componentNames = ['controller', 'stores', 'join-service', 'pool', 'console-server'] as const
export type ComponentName = (typeof componentNames)[number]

const componentPrefix = 'oarlock-'

/** The ServiceAccount of a component in `oarlock-system`; also the name of its Roles, and of the Lease of the leading controller. */
export const componentAccount = (name: ComponentName): string => `${componentPrefix}${name}`

/**
 * The names that no worker has: its Lease, which has the same name, would be that of a component, or its account the one that every
 * namespace has.
 */
export const reservedWorkerNames: readonly string[] = ['default', podAccountName, ...componentNames.map(componentAccount)]

/** Also names that a later component may have. Workers are named after their pool, so those of a pool `oarlock-a` begin with its name. */
const isReservedWorkerName = (name: string, pool: string): boolean =>
  reservedWorkerNames.includes(name) || (name.startsWith(componentPrefix) && !name.startsWith(`${pool}-`))

/** Why a worker of the pool cannot have this name. */
export const reservedNameError = (name: string, pool: string): string | undefined =>
  isReservedWorkerName(name, pool)
    ? `name ${name} is reserved for components of Oarlock: use one that does not begin with "${componentPrefix}"`
    : undefined

type HasName = {
  readonly name: string
  readonly groups: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined
}

/** The Pod of a user whose ServiceAccount is one of worker Pods. */
export type PodUser = { readonly name: string; readonly namespace: string; readonly uid: string }

/** The Pod that the token of a worker Pod is bound to. Undefined for every other user, and for a token of such a ServiceAccount without a Pod. */
export function podOf(user: HasName | undefined): PodUser | undefined {
  if (!user || !podAccountPattern.test(user.name)) return undefined
  const namespace = user.name.split(':')[2]
  if (!namespace || namespace === workersNamespace || !user.groups.includes(`system:serviceaccounts:${namespace}`)) return undefined
  const [name, ...moreNames] = user.extra?.[podExtraKeys.name] ?? []
  const [uid, ...moreUids] = user.extra?.[podExtraKeys.uid] ?? []
  return name && uid && moreNames.length + moreUids.length === 0 ? { name, namespace, uid } : undefined
}

/** Why a write of a worker Pod is rejected. The messages of the policies are the same. */
export const podWorkerMessages = {
  token: `a token of a ServiceAccount ${podAccountName} acts for a worker only if it is bound to a Pod`,
  create: 'the controller creates the Worker of a Pod',
  own: 'a worker can only write its own Worker, from the Pod that the controller created for it',
  fields: 'a worker Pod can only write the status of its Worker and set its Pod UID once',
  lease: `a worker can only write the Lease with its own name in ${systemNamespace}, with the UID of its Pod as holderIdentity`,
} as const

type HasPod = { readonly pod?: WorkerPod | undefined }

/** Whether this user acts for a worker that is recorded to be `pod`; undefined for one that is no Pod. A record without a UID is of a worker that has not registered. */
function isPod(user: HasName, { pod }: HasPod): boolean {
  const own = podOf(user)
  if (!own || !pod) return !own && !pod
  return own.namespace === pod.namespace && (pod.uid === undefined || own.uid === pod.uid)
}

/** Whether the user is the worker that the Worker records: of its name and, if it is a Pod, that Pod. */
export const isWorkerOf = (user: HasName, { metadata, spec }: Pick<Worker, 'metadata' | 'spec'>): boolean =>
  workerOf(user) === metadata.name && isPod(user, { pod: spec.pod })

/** Whether the Run is assigned to the worker that the user is. */
export const isWorkerOfRun = (user: HasName, { spec }: { readonly spec: Pick<Run['spec'], 'workerName' | 'workerPod'> }): boolean =>
  spec.workerName !== undefined && workerOf(user) === spec.workerName && isPod(user, { pod: spec.workerPod })

/**
 * The name of the Worker that the user claims to be, if it is a worker; decide with {@link isWorkerOf} or {@link isWorkerOfRun} whether it is. Both name
 * and group must match, and the name must not be reserved.
 */
export function workerOf(user: HasName | undefined): string | undefined {
  if (!user) return undefined
  const pod = podOf(user)
  if (pod) return reservedWorkerNames.includes(pod.name) ? undefined : pod.name
  const isWorkerUser = user.groups.includes(workersGroup) && user.name.startsWith(workerUserPrefix)
  if (!isWorkerUser && !isWorkerAccount(user)) return undefined
  const name = user.name.slice((isWorkerUser ? workerUserPrefix : workerAccountPrefix).length)
  return reservedWorkerNames.includes(name) ? undefined : name
}

const isWorkerAccount = ({ name, groups }: HasName) => groups.includes(workerAccountsGroup) && name.startsWith(workerAccountPrefix)

/** Whether a role or binding has the name of one of Oarlock's own. One that has less than before stops a component. */
export const isOwnRightsName = (name: string): boolean => ownRightsPrefixes.some(prefix => name.startsWith(prefix))
export const ownRightsPrefixes: readonly string[] = ['oarlock:', componentPrefix]

/** Workers that joined with a token, and worker Pods: they run on other machines. The rules for them and for local workers differ for the engine `manifests` only. */
export const joinedGroup = 'oarlock:joined-workers'

export const hasJoined = (user: HasName): boolean => user.groups.includes(joinedGroup) || isWorkerAccount(user) || podOf(user) !== undefined

const poolGroupPrefix = 'oarlock:pool:'

/** The group of every worker of the pool. RBAC can grant it more, such as the objects that the manifests engine applies. */
export const poolGroup = (pool: string): string => `${poolGroupPrefix}${pool}`

/** The pool of a worker. */
export const poolOf = ({ groups }: { groups: readonly string[] }): string | undefined =>
  groups.find(group => group.startsWith(poolGroupPrefix))?.slice(poolGroupPrefix.length)
