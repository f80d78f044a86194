import { defaults, labels, systemNamespace, type WorkerPool } from '../../../../api/index.ts'
import { controllerReference, isJsonObject, type JsonObject, parseDuration } from '../../../../kubernetes/object/index.ts'
import { workerEnvironment } from '../worker-environment.ts'

/** After the drain grace: the signals to the engine (SIGINT, 60 s, SIGTERM, 10 s, SIGKILL) and some time to report. */
const afterGraceSeconds = 90

const credentialDirectory = '/var/run/secrets/oarlock.dev/worker'

export type WorkerPodInput = {
  readonly pool: WorkerPool
  readonly workerName: string
  /** Added to {@link workerEnvironment}: the address of the server. */
  readonly environment: Readonly<Record<string, string>>
  /** True: a Secret with the name of the worker is mounted at {@link credentialDirectory}. */
  readonly hasCredential: boolean
}

export const podNamespace = ({ spec }: WorkerPool) => spec.namespace ?? systemNamespace

/** The container of the worker: the one named `worker`, else the first. */
export function workerContainer({ spec }: WorkerPool): string {
  const containers = containersOf(spec.template?.spec)
  const found = containers.find(({ name }) => name === 'worker') ?? containers[0]
  return typeof found?.name === 'string' ? found.name : 'worker'
}

/**
 * Builds the Pod of one worker from the pool's template. A Pod and not a Job, because no other controller may retry it, a rejected creation is
 * reported to this controller, and deleting it is a single request. The pool owns it, so it is deleted with the pool.
 */
export function makeWorkerPod({ pool, workerName, environment, hasCredential }: WorkerPodInput) {
  const { metadata, spec } = pool
  const template: JsonObject = structuredClone((spec.template?.spec ?? {}) as JsonObject)
  const containers = containersOf(template)
  const target = workerContainer(pool)
  // Isolation level Pod requires that no other Run ever shares the Pod.
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
      // Process 1 of a Pod reaps the processes that engines leave behind. A worker does not, and its supervisor refuses to watch over process 1.
      shareProcessNamespace: true,
      // The worker has its own credential and needs no service account token.
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
