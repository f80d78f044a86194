import type { Control } from './attack.ts'
import { sendForbidden } from './forbidden-requests.ts'
import type { SendOptions } from './send-request.ts'
import { attackerNamespace, type Target, victimNamespace } from './target.ts'

const own = '/apis/oarlock.dev/v1alpha1'
const patch = (body: object) => ({ body, contentType: 'application/merge-patch+json' })

/** What no worker may do to Runs, workers and states of others. `worker` has the credential. */
export async function actForOthers(target: Target, token: string, worker: string, control: Control): Promise<string[]> {
  const run = await target.victimRun()
  const { name } = run.metadata
  const runs = `${own}/namespaces/${victimNamespace}/runs`
  const state = `/state/${victimNamespace}/long/run/${name}`
  const epoch = { 'oarlock-epoch': String(run.spec.epoch) }
  const object = (apiVersion: string, kind: string, metadata: object, more: object = {}) => ({ apiVersion, kind, metadata, ...more })
  const lease = (holder: string) => object('coordination.k8s.io/v1', 'Lease', { name: holder }, { spec: { holderIdentity: holder } })
  const leases = '/apis/coordination.k8s.io/v1/namespaces/oarlock-system/leases'
  const other = run.spec.workerName ?? ''
  const owner = await target.victimWorkerToken()
  const ended = await target.victimRun('web')
  const attempts: [string, string, string, Omit<SendOptions, 'token'>?, 'of its worker'?][] = [
    [
      'reported the result of a Run of another worker',
      'PATCH',
      `${runs}/${name}/status`,
      patch({ status: { phase: 'Succeeded' } }),
      'of its worker',
    ],
    ['assigned a Run to itself', 'PATCH', `${runs}/${name}`, patch({ spec: { workerName: worker } })],
    ['canceled a Run', 'PATCH', `${runs}/${name}`, patch({ spec: { cancel: true } })],
    ['deleted a Run', 'DELETE', `${runs}/${name}?dryRun=All`],
    [
      'created a Run',
      'POST',
      `${own}/namespaces/${attackerNamespace}/runs`,
      { body: object('oarlock.dev/v1alpha1', 'Run', { name: 'of-a-worker' }, { spec: { ...run.spec, stackRef: run.spec.stackRef } }) },
    ],
    ['changed a Stack', 'PATCH', `${own}/namespaces/${victimNamespace}/stacks/long`, patch({ spec: { suspend: true } })],
    ['read the state of a Run of another worker', 'GET', `${state}/state`, { headers: epoch }, 'of its worker'],
    [
      'wrote the state of a Run of another worker',
      'PUT',
      `${state}/state`,
      { headers: epoch, body: { version: 4, serial: 99 } },
      'of its worker',
    ],
    ['read the inventory of a Run of another worker', 'GET', `${state}/inventory`, { headers: epoch }, 'of its worker'],
    ['locked the state of another Stack', 'POST', `${state}/lock`, { headers: epoch, body: {} }, 'of its worker'],
    ['read a state', 'GET', `/state/${victimNamespace}/web`],
    ['got the token of a Stack', 'GET', `/state/${victimNamespace}/web/token`],
    [
      'wrote to the log of a Run of another worker',
      'POST',
      `/logs/${victimNamespace}/${name}?offset=0`,
      { body: 'forged\n', contentType: 'text/plain' },
      'of its worker',
    ],
    ['read a log', 'GET', `/logs/${victimNamespace}/${ended.metadata.name}`],
    ['listed Secrets', 'GET', `/api/v1/namespaces/${victimNamespace}/secrets`],
    ['listed the Secrets of the system', 'GET', '/api/v1/namespaces/oarlock-system/secrets'],
    [
      'made a token of another worker',
      'POST',
      `/api/v1/namespaces/oarlock-workers/serviceaccounts/default/token`,
      { body: object('authentication.k8s.io/v1', 'TokenRequest', {}, { spec: {} }) },
    ],
    [
      'made a token of a ServiceAccount',
      'POST',
      `/api/v1/namespaces/${victimNamespace}/serviceaccounts/default/token`,
      { body: object('authentication.k8s.io/v1', 'TokenRequest', {}, { spec: {} }) },
    ],
    [
      'created a Worker of another name',
      'POST',
      `${own}/workers`,
      {
        body: object(
          'oarlock.dev/v1alpha1',
          'Worker',
          { name: 'forged-worker' },
          { spec: { pool: 'victim', slots: 1, lifecycle: 'Warm' } },
        ),
      },
    ],
    ['changed another Worker', 'PATCH', `${own}/workers/${other}`, patch({ spec: { drain: true } })],
    ['changed the status of another Worker', 'PATCH', `${own}/workers/${other}/status`, patch({ status: { phase: 'Draining' } })],
    ['deleted another Worker', 'DELETE', `${own}/workers/${other}?dryRun=All`],
    ['created a Lease of another name', 'POST', leases, { body: lease('forged-lease') }],
    ['took the Lease of another worker', 'PATCH', `${leases}/${other}`, patch({ spec: { holderIdentity: worker } })],
    ['took the Lease of the stores', 'PATCH', `${leases}/oarlock-stores`, patch({ spec: { holderIdentity: worker } })],
    ['created the Lease of a controller', 'POST', leases, { body: lease('oarlock-controller') }],
    ['deleted the Lease of another worker', 'DELETE', `${leases}/${other}?dryRun=All`],
    [
      'changed a WorkerPool',
      'PATCH',
      `${own}/workerpools/attack`,
      patch({ spec: { minimumIsolation: 'Sandbox', allowedNetworks: ['Host'] } }),
    ],
    ['read a backup', 'GET', '/backup'],
    ['rotated the keys', 'POST', '/encryption/rotate', { body: {} }],
    ['deleted many objects', 'DELETE', `/api/v1/namespaces/${victimNamespace}/configmaps`],
    [
      'wrote the address of the stores',
      'PUT',
      '/api/v1/namespaces/oarlock-system/configmaps/oarlock-endpoint-stores',
      { body: object('v1', 'ConfigMap', { name: 'oarlock-endpoint-stores' }, { data: { url: 'https://127.0.0.1:1' } }) },
    ],
    [
      'reviewed a token',
      'POST',
      '/apis/authentication.k8s.io/v1/tokenreviews',
      { body: object('authentication.k8s.io/v1', 'TokenReview', {}, { spec: { token } }) },
    ],
    [
      'changed the definition of Runs',
      'PATCH',
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/runs.oarlock.dev',
      patch({ metadata: { labels: { owned: 'yes' } } }),
    ],
    [
      'bound itself to a role',
      'POST',
      '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
      {
        body: object(
          'rbac.authorization.k8s.io/v1',
          'ClusterRoleBinding',
          { name: 'owned' },
          {
            roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
            subjects: [{ kind: 'User', name: `system:oarlock:worker:${worker}` }],
          },
        ),
      },
    ],
  ]
  return await sendForbidden(
    target,
    token,
    attempts.map(([what, method, path, options, by]) => ({
      what,
      method,
      path,
      ...(options && { options }),
      ...(by && { allowed: { token: owner } }),
    })),
    control,
  )
}
