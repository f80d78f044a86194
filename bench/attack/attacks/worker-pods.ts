/** The token of a worker Pod, and Pods of users that have the name of a worker. No kubelet runs: tokens are bound to Pods by TokenRequest. */
import { labels, systemNamespace, workerResource } from '../../../src/api/index.ts'
import { serviceAccountResource } from '../../../src/kubernetes/client/index.ts'
import { describeResource } from '../../../src/kubernetes/object/index.ts'
import { actForOthers } from '../act-for-others.ts'
import type { Attack } from '../attack.ts'
import { sendForbidden } from '../forbidden-requests.ts'
import { attackerNamespace, type Target } from '../target.ts'

const own = '/apis/oarlock.dev/v1alpha1'
const account = 'oarlock-worker'
const podResource = describeResource<{ spec: object }>({ group: '', version: 'v1', kind: 'Pod', plural: 'pods', scope: 'Namespaced' })

/** Creates a Pod, as a controller or a user does, and requests a token for it. */
async function createPod({ admin }: Target, name: string, namespace: string): Promise<{ uid: string; token: string }> {
  await admin.resource(serviceAccountResource).apply({ metadata: { name: account, namespace } }, { force: true })
  const spec = { serviceAccountName: account, containers: [{ name: 'worker', image: 'none' }] }
  const { uid } = (await admin.resource(podResource).create({ metadata: { name, namespace }, spec })).metadata
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`
  const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name, uid }
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { boundObjectRef } }
  const response = await admin.request({ method: 'POST', path, body })
  return { uid, token: ((await response.json()) as { status: { token: string } }).status.token }
}

async function createWorkerPod(target: Target): Promise<{ name: string; token: string }> {
  const name = target.newName('pod')
  const { uid, token } = await createPod(target, name, systemNamespace)
  const pod = { namespace: systemNamespace, serviceAccountName: account, uid }
  await target.admin.resource(workerResource).create({
    metadata: { name, labels: { [labels.pool]: 'attack' } },
    spec: { pool: 'attack', slots: 1, lifecycle: 'OneShot', start: true, pod },
  })
  return { name, token }
}

const patch = (body: object) => ({ body, contentType: 'application/merge-patch+json' })
/** What its worker may do to its Worker. */
const ownStatus = (name: string) => ({
  what: 'wrote the status of the Worker of another Pod',
  method: 'PATCH',
  path: `${own}/workers/${name}/status`,
  options: patch({ status: { message: 'x' } }),
})

const podActs: Attack = {
  name: 'worker-pod-acts-for-others',
  actor: 'worker Pod',
  promise: 'Worker Pods',
  async attempt(target, control) {
    const { name, token } = await createWorkerPod(target)
    const { method, path, options } = ownStatus(name)
    control((await target.send(method, path, { ...options, token })).status === 200, 'a worker Pod cannot write the status of its Worker')
    const changes = [{ pool: 'victim' }, { trustDomain: 'shop' }, { run: 'other/web-1' }, { pod: { namespace: attackerNamespace } }]
    const requests = changes.map(spec => ({
      what: `changed ${Object.keys(spec)} of its Worker`,
      method: 'PATCH',
      path: `${own}/workers/${name}?dryRun=All`,
      options: patch({ spec }),
    }))
    return [...(await actForOthers(target, token, name, control)), ...(await sendForbidden(target, token, requests, control))]
  },
}

const impostors: Attack = {
  name: 'pod-with-the-name-of-a-worker',
  actor: 'account',
  promise: 'Worker Pods',
  async attempt(target, control) {
    const { name, token } = await createWorkerPod(target)
    const requests = [
      { ...ownStatus(name), allowed: { token } },
      { what: 'deleted the Worker of another Pod', method: 'DELETE', path: `${own}/workers/${name}?dryRun=All`, allowed: { token } },
    ]
    const elsewhere = await createPod(target, name, attackerNamespace)
    const gained = await sendForbidden(target, elsewhere.token, requests, control)
    // The worker that does not end: a local one has its name without a Pod.
    const local = (await target.victimRun()).spec.workerName ?? ''
    const ofLocal = await createPod(target, local, attackerNamespace)
    return [...gained, ...(await actForOthers(target, ofLocal.token, local, control))]
  },
}

export const workerPodAttacks: readonly Attack[] = [podActs, impostors]
