import { defaults, labels, systemNamespace, type WorkerPool } from '../../../../api/index.ts'
import { controllerReference, isJsonObject, type JsonObject, parseDuration } from '../../../../kubernetes/object/index.ts'
import { workerEnvironment } from '../worker-environment.ts'

/** After the grace of a drain: the ladder of the engines (SIGINT, 60 s, SIGTERM, 10 s, SIGKILL) and some time to report. */
const afterGraceSeconds = 90

export const credentialDirectory = '/var/run/secrets/oarlock.dev/worker'

export type WorkerPodInput = {
  readonly pool: WorkerPool
  readonly workerName: string
  /** Added to what {@link workerEnvironment} says: where the server is. */
  readonly environment: Readonly<Record<string, string>>
  /** True: a Secret of the worker's name is mounted at {@link credentialDirectory}. */
  readonly hasCredential: boolean
}

export const podNamespace = ({ spec }: WorkerPool) => spec.namespace ?? systemNamespace

/** The container that the worker runs in: the one called `worker`, else the first. */
export function workerContainer({ spec }: WorkerPool): string {
  const containers = containersOf(spec.template?.spec)
  const found = containers.find(({ name }) => name === 'worker') ?? containers[0]
  return typeof found?.name === 'string' ? found.name : 'worker'
}

/**
 * The Pod of one worker, from the pool's template. A Pod and not a Job: nothing is to be tried again by others, the cause of a
 * refusal comes back to who asked, and deleting it when it has ended is one request. It belongs to the pool and goes with it.
 */
export function makeWorkerPod({ pool, workerName, environment, hasCredential }: WorkerPodInput) {
  const { metadata, spec } = pool
  const template: JsonObject = structuredClone((spec.template?.spec ?? {}) as JsonObject)
  const containers = containersOf(template)
  const target = workerContainer(pool)
  // What makes isolation level Pod true: no other Run ever shares it.
  const isExclusive = (spec.lifecycle ?? 'OneShot') === 'OneShot' && (spec.slots ?? 1) === 1
  const variables = { ...workerEnvironment(pool, workerName), ...(isExclusive && { OARLOCK_ISOLATION: 'Pod' }), ...environment }
  const env = Object.entries(variables).map(([name, value]) => ({ name, value }))
  if (hasCredential) env.push({ name: 'OARLOCK_TOKEN_FILE', value: `${credentialDirectory}/token` })
  const names = new Set(env.map(({ name }) => name))
  const mount = { name: 'oarlock-credential', mountPath: credentialDirectory, readOnly: true }
  const volume = { name: 'oarlock-credential', secret: { secretName: workerName, defaultMode: 0o400 } }
  return {
    metadata: {
      name: workerName,
      namespace: podNamespace(pool),
      labels: {
        ...spec.template?.metadata?.labels,
        [labels.pool]: metadata.name,
        'app.kubernetes.io/managed-by': 'oarlock',
        'app.kubernetes.io/component': 'worker',
      },
      ...(spec.template?.metadata?.annotations && { annotations: spec.template.metadata.annotations }),
      ownerReferences: [controllerReference(pool)],
    },
    spec: {
      terminationGracePeriodSeconds: Math.ceil(parseDuration(spec.drainGrace ?? defaults.drainGrace) / 1_000) + afterGraceSeconds,
      // It has a credential of its own, and needs no other.
      ...(hasCredential && { automountServiceAccountToken: false }),
      ...template,
      restartPolicy: 'Never',
      containers: containers.map(container => {
        if (container.name !== target) return container
        const own = Array.isArray(container.env) ? container.env : []
        const kept = own.filter(entry => !(isJsonObject(entry) && typeof entry.name === 'string' && names.has(entry.name)))
        const mounts = Array.isArray(container.volumeMounts) ? container.volumeMounts : []
        return { ...container, env: [...kept, ...env], ...(hasCredential && { volumeMounts: [...mounts, mount] }) }
      }),
      ...(hasCredential && { volumes: [...(Array.isArray(template.volumes) ? template.volumes : []), volume] }),
    } as JsonObject,
  }
}

function containersOf(spec: unknown): JsonObject[] {
  const containers = isJsonObject(spec) ? spec.containers : undefined
  return Array.isArray(containers) ? (containers.filter(isJsonObject) as JsonObject[]) : []
}
