import {
  checkWorkerLabels,
  defaults,
  isPodAccountName,
  labels,
  parsePairs,
  podAccountName,
  systemNamespace,
  type Worker,
  type WorkerPool,
} from '../../../../api/index.ts'
import { isJsonObject, type JsonObject, parseDuration } from '../../../../kubernetes/object/index.ts'
import { StartError, type WorkerPurpose } from '../pool-driver.ts'
import { workerEnvironment } from '../worker-environment.ts'
import { disruptionMarks } from './decide-disruption.ts'
import { mergePodSpecs } from './merge-template.ts'

/** After the drain grace: the signals to the engine (SIGINT, 60 s, SIGTERM, 10 s, SIGKILL) and some time to report. */
const afterGraceSeconds = 90

const credentialDirectory = '/var/run/secrets/oarlock.dev/worker'
/** The kubelet replaces the token after four fifths of it. */
const tokenExpirationSeconds = 3_600

export type WorkerPodInput = {
  readonly pool: WorkerPool
  /** Owns the Pod, which has its name and is in the namespace of its `spec.pod`. */
  readonly worker: Worker
  /** Added to {@link workerEnvironment}: the address of the server, unless it is that of the cluster. */
  readonly environment: Readonly<Record<string, string>>
}

export const podNamespace = ({ spec }: WorkerPool) => spec.namespace ?? systemNamespace

/**
 * The Worker of a Pod. It exists before the Pod and owns it. The pool does not own the Worker: the garbage collector would delete it with the pool, also
 * during a Run. It has the labels that the template sets with OARLOCK_LABELS: the worker itself cannot change them.
 * @throws {StartError} if the template names a ServiceAccount by which no policy recognises a worker, or invalid labels.
 */
export function makeWorker(pool: WorkerPool, name: string, purpose?: WorkerPurpose) {
  const { slots = 1, lifecycle = 'OneShot' } = pool.spec
  const { pod: place, run, trustDomain } = purpose ?? {}
  const pod = {
    namespace: place?.namespace ?? podNamespace(pool),
    serviceAccountName: place?.serviceAccountName ?? templateAccount(pool),
  }
  return {
    metadata: {
      name,
      labels: { ...templateLabels(pool), [labels.pool]: pool.metadata.name, [labels.worker]: name },
    },
    spec: {
      ...{ pool: pool.metadata.name, slots, lifecycle, start: true, pod },
      ...(run !== undefined && { run }),
      ...(trustDomain !== undefined && { trustDomain }),
    },
  }
}

function templateAccount({ metadata, spec }: WorkerPool): string {
  const { serviceAccountName: account = podAccountName } = (spec.template?.spec ?? {}) as JsonObject
  if (typeof account === 'string' && isPodAccountName(account)) return account
  const message = `spec.template.spec.serviceAccountName of pool ${metadata.name} is ${JSON.stringify(account)}; it must be ${podAccountName} or begin with "${podAccountName}-"`
  throw new StartError({ reason: 'CreateFailed', message })
}

function templateLabels(pool: WorkerPool): Readonly<Record<string, string>> {
  const container = containersOf(pool.spec.template?.spec).find(({ name }) => name === workerContainer(pool))
  const value = environmentOf(container).find(({ name }) => name === 'OARLOCK_LABELS')?.value
  try {
    return typeof value === 'string' ? checkWorkerLabels(parsePairs('OARLOCK_LABELS', value.split(','))) : {}
  } catch (error) {
    throw new StartError(
      { reason: 'CreateFailed', message: `template of pool ${pool.metadata.name}: ${(error as Error).message}` },
      { cause: error },
    )
  }
}

/** The container of the worker: the one named `worker`, else the first. */
export function workerContainer({ spec }: WorkerPool): string {
  const containers = containersOf(spec.template?.spec)
  const found = containers.find(({ name }) => name === 'worker') ?? containers[0]
  return typeof found?.name === 'string' ? found.name : 'worker'
}

/**
 * Builds the Pod of one worker: the pool's template is merged over Oarlock's own Pod, and what makes it a worker over both. A Pod and not a Job, because no other controller may retry it, a rejected creation is
 * reported to this controller, and deleting it is a single request. Its Worker owns it, so it is deleted with that.
 */
export function makeWorkerPod({ pool, worker, environment }: WorkerPodInput) {
  const { metadata, spec } = pool
  const {
    apiVersion,
    kind,
    metadata: { name: workerName, uid },
  } = worker
  const name = workerContainer(pool)
  const namespace = worker.spec.pod?.namespace ?? podNamespace(pool)
  const variables = {
    ...workerEnvironment(pool, workerName),
    // Dispatch assigns Runs of one trust domain only (`placement/trust-domain.ts`).
    OARLOCK_ISOLATION: 'Pod',
    OARLOCK_WORKER_UID: uid,
    // Several are deleted with one request (`../ended-workers.ts`).
    OARLOCK_DEREGISTERED_BY: 'Controller',
    // Its ServiceAccount reads Runs of this namespace only.
    ...(namespace !== podNamespace(pool) && { OARLOCK_RUN_NAMESPACE: namespace }),
    ...environment,
    OARLOCK_TOKEN_FILE: `${credentialDirectory}/token`,
    OARLOCK_CA_FILE: `${credentialDirectory}/ca.crt`,
  }
  // Null: a template that takes one of these from elsewhere would have two sources.
  const env = [
    ...Object.entries(variables).map(([name, value]) => ({ name, value, valueFrom: null })),
    { name: 'OARLOCK_POD_UID', value: null, valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } },
  ]
  const mount = { name: 'oarlock-credential', mountPath: credentialDirectory, readOnly: true }
  const sources: JsonObject[] = [
    { serviceAccountToken: { path: 'token', expirationSeconds: tokenExpirationSeconds } },
    { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
  ]
  const base = {
    terminationGracePeriodSeconds: Math.ceil(parseDuration(spec.drainGrace ?? defaults.drainGrace) / 1_000) + afterGraceSeconds,
    // Process 1 of a Pod reaps the processes that engines leave behind. A worker does not, and its supervisor refuses to watch over process 1.
    shareProcessNamespace: true,
    // Only the worker gets a token, and not the other containers.
    automountServiceAccountToken: false,
    containers: [{ name }],
  }
  const required = {
    serviceAccountName: worker.spec.pod?.serviceAccountName ?? podAccountName,
    restartPolicy: 'Never',
    containers: [{ name, env, volumeMounts: [mount] }],
    volumes: [{ name: 'oarlock-credential', projected: { sources } }],
  }
  // A OneShot worker is created for a Run: it needs no patch when it gets it.
  const marks = disruptionMarks((spec.lifecycle ?? 'OneShot') === 'OneShot')
  return {
    metadata: {
      name: workerName,
      namespace,
      labels: {
        ...spec.template?.metadata?.labels,
        [labels.pool]: metadata.name,
        'app.kubernetes.io/managed-by': 'oarlock',
        'app.kubernetes.io/component': 'worker',
        ...marks.labels,
      },
      annotations: { ...spec.template?.metadata?.annotations, ...marks.annotations },
      ownerReferences: [{ apiVersion, kind, name: workerName, uid, controller: true }],
    },
    spec: [(spec.template?.spec ?? {}) as JsonObject, required as JsonObject].reduce(mergePodSpecs, base as JsonObject),
  }
}

const environmentOf = (container: JsonObject | undefined): JsonObject[] =>
  Array.isArray(container?.env) ? (container.env.filter(isJsonObject) as JsonObject[]) : []

function containersOf(spec: unknown): JsonObject[] {
  const containers = isJsonObject(spec) ? spec.containers : undefined
  return Array.isArray(containers) ? (containers.filter(isJsonObject) as JsonObject[]) : []
}
