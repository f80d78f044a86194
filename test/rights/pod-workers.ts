/** Workers that are Pods, for the rows of `pod-worker-rows.ts`: their tokens are bound to Pods that no kubelet runs. */
import {
  labels,
  podAccountName,
  type Run,
  systemNamespace,
  type Worker,
  type WorkerPod,
  workerPoolResource,
  workerResource,
} from '../../src/api/index.ts'
import { podWorkerBindings } from '../../src/app/manifests/worker-roles.ts'
import { type Client, leaseResource, serviceAccountResource } from '../../src/kubernetes/client/index.ts'
import { describeResource, isReason } from '../../src/kubernetes/object/index.ts'

export const podResource = describeResource<{ spec: object; status?: { phase?: string } }>({
  group: '',
  version: 'v1',
  kind: 'Pod',
  plural: 'pods',
  scope: 'Namespaced',
})
/** A namespace with Stacks whose worker Pods are in it. */
export const podNamespace = 'shop'
const cloudAccount = `${podAccountName}-cloud`

type PodWorker = {
  readonly namespace: string
  readonly account?: string
  /** Of the Pod that the Worker records; default: the UID of the Pod, or none if it has not registered. */
  readonly recordedUid?: string
  readonly state: 'registered' | 'requested' | 'gone'
}

/** By name. p3 was another Pod of this name. p4 has not registered. The Pod of p5 was deleted after its token was made. */
const podWorkers: Readonly<Record<string, PodWorker>> = {
  p1: { namespace: systemNamespace, state: 'registered' },
  p2: { namespace: systemNamespace, state: 'registered' },
  p3: { namespace: systemNamespace, recordedUid: '6f1e2f4a-earlier', state: 'registered' },
  p4: { namespace: systemNamespace, state: 'requested' },
  p5: { namespace: systemNamespace, state: 'gone' },
  s1: { namespace: podNamespace, state: 'registered' },
  s2: { namespace: podNamespace, account: cloudAccount, state: 'registered' },
}

export type PodWorkers = {
  /** By user: those of the workers, and `p1-in-shop` (another Pod of the name), `no-pod` and `deployer-p1`. */
  readonly tokens: Readonly<Record<string, string>>
  readonly podUids: Readonly<Record<string, string>>
}

/** Creates a Run that is assigned to the worker, of a Stack with this name. */
export type CreateRun = (stack: string, workerName: string, workerPod: WorkerPod) => Promise<Run>

export async function createPodWorkers(client: Client, createRun: CreateRun): Promise<PodWorkers> {
  const tokens: Record<string, string> = {}
  const podUids: Record<string, string> = {}
  const serviceAccounts = client.resource(serviceAccountResource)
  const accounts = [
    [systemNamespace, podAccountName],
    [systemNamespace, 'deployer'],
    [podNamespace, podAccountName],
    [podNamespace, cloudAccount],
  ] as const
  for (const [namespace, name] of accounts) await serviceAccounts.apply({ metadata: { name, namespace } }, { force: true })
  for (const name of [podAccountName, cloudAccount])
    for (const manifest of podWorkerBindings(podNamespace, name))
      await client.resource(await client.discover(manifest.apiVersion, manifest.kind)).create(manifest as never)
  await client.resource(workerPoolResource).create({ metadata: { name: 'pods' }, spec: { mode: 'External' } })

  for (const [name, { namespace, account = podAccountName, recordedUid, state }] of Object.entries(podWorkers)) {
    const uid = await createPod(client, name, namespace, account)
    podUids[name] = recordedUid ?? uid
    tokens[name] = await podToken(client, { name, uid }, namespace, account)
    const isRegistered = state !== 'requested'
    const pod = { namespace, serviceAccountName: account, ...(isRegistered && { uid: podUids[name] }) }
    await createPodWorker(client, createRun, name, pod)
    if (state === 'gone') await deletePod(client, name, namespace)
  }
  const inShop = await createPod(client, 'p1', podNamespace, podAccountName)
  tokens['p1-in-shop'] = await podToken(client, { name: 'p1', uid: inShop }, podNamespace, podAccountName)
  tokens['no-pod'] = await podToken(client, undefined, systemNamespace, podAccountName)
  const deployer = await createPod(client, 'deployer-p1', systemNamespace, 'deployer')
  tokens['deployer-p1'] = await podToken(client, { name: 'deployer-p1', uid: deployer }, systemNamespace, 'deployer')
  return { tokens, podUids }
}

/** Creates what a controller creates for a worker Pod, and, with its UID, what the worker registers with and a Run of the Stack `of-NAME`. */
export async function createPodWorker(
  client: Client,
  createRun: CreateRun,
  name: string,
  pod: WorkerPod & { serviceAccountName: string },
): Promise<Worker> {
  const worker = await client.resource(workerResource).create({
    metadata: { name, labels: { [labels.pool]: 'pods', gpu: 'a100' } },
    spec: { pool: 'pods', slots: 1, lifecycle: 'OneShot', start: true, pod },
  })
  if (pod.uid !== undefined) await registerPodWorker(client, createRun, name, { namespace: pod.namespace, uid: pod.uid })
  return worker
}

export async function registerPodWorker(client: Client, createRun: CreateRun, name: string, pod: Required<WorkerPod>): Promise<void> {
  await client.resource(workerResource).patch(name, { spec: { pod: { uid: pod.uid } } } as object, { type: 'merge' })
  await client.resource(workerResource).patchStatus(name, { status: { phase: 'Ready' } })
  const lease = { holderIdentity: pod.uid, leaseDurationSeconds: 10 }
  await client.resource(leaseResource).create({ metadata: { name, namespace: systemNamespace }, spec: lease })
  await createRun(`of-${name}`, name, pod)
}

async function createPod(client: Client, name: string, namespace: string, serviceAccountName: string): Promise<string> {
  const spec = { serviceAccountName, containers: [{ name: 'worker', image: 'oarlock:test' }] }
  return (await client.resource(podResource).create({ metadata: { name, namespace }, spec })).metadata.uid
}

async function deletePod(client: Client, name: string, namespace: string): Promise<void> {
  const pods = client.resource(podResource)
  await pods.delete(name, { namespace, gracePeriodSeconds: 0 } as never)
  if (await pods.getOrUndefined(name, { namespace })) throw new Error(`Pod ${name} was not deleted`)
}

async function podToken(
  client: Client,
  pod: { name: string; uid: string } | undefined,
  namespace: string,
  account: string,
): Promise<string> {
  const spec = pod ? { boundObjectRef: { apiVersion: 'v1', kind: 'Pod', ...pod } } : {}
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec }
  for (;;) {
    try {
      const response = await client.request({ method: 'POST', path, body })
      return ((await response.json()) as { status: { token: string } }).status.token
    } catch (error) {
      // The server reads Pods from a cache, which may not have the new one.
      if (!isReason(error, 'NotFound') || !pod) throw error
    }
  }
}
