import { namespace, runSpec, tokenRequest } from './fixture.ts'
import { api, core, create, get, inputs, leases, object, outputs, own, patch, type Row, remove, secret, state, stores } from './rows.ts'

const inShop = (path: string) => own(`namespaces/${namespace}/${path}`)
const elsewhere = (path: string) => own(`namespaces/elsewhere/${path}`)
const holder = (uid: string) => ({ spec: { holderIdentity: uid } })
const leaseOf = (name: string, uid: string) => object('coordination.k8s.io/v1', 'Lease', name, holder(uid))
const renewal = { spec: { renewTime: '2026-06-01T10:00:00.000000Z' } }
const status = (stack: string) => patch(inShop(`runs/${stack}-1/status`), { status: { phase: 'Succeeded' } })
const stateOf = (stack: string, epoch = 1) => ({
  ...{ method: 'PUT', path: `/state/${namespace}/${stack}/run/${stack}-1/state`, body: '{"version":4}' },
  headers: { 'oarlock-epoch': String(epoch) },
})
const readOf = (stack: string) => ({ ...stateOf(stack), method: 'GET', body: undefined })
const worker = (name: string, more: object = {}) => ({
  ...object('oarlock.dev/v1alpha1', 'Worker', name),
  metadata: { name, labels: { 'oarlock.dev/pool': 'pods' } },
  spec: { pool: 'pods', slots: 1, lifecycle: 'OneShot', ...more },
})
const binding = (name: string) =>
  object('rbac.authorization.k8s.io/v1', 'ClusterRoleBinding', name, {
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', name: 'oarlock-worker', namespace: 'oarlock-system' }],
  })

const noReadPolicies = { may: true, reason: 'a policy sees writes only, so a worker reads every object of the kinds that it needs' }
const readsWithoutPod = { may: true, reason: 'RBAC knows the ServiceAccount only, and a policy sees writes only' }

/** What a worker Pod may do, and nothing else, whatever code runs in it. */
export const ownRows = (user: string, uid: string): Row[] => [
  api(user, true, get(inShop(`runs/of-${user}-1`))),
  // A Pod in the namespace of Stacks reads Runs in that namespace only.
  api(user, true, get((user.startsWith('s') ? inShop : own)(`runs?fieldSelector=spec.workerName%3D${user}`))),
  api(user, true, status(`of-${user}`)),
  api(user, true, get(own(`workers/${user}`))),
  api(user, true, patch(own(`workers/${user}/status`), { status: { phase: 'Busy' } })),
  // What it registers with.
  api(user, true, patch(own(`workers/${user}`), { spec: { slots: 1, lifecycle: 'OneShot', pod: { uid } } })),
  api(user, true, remove(own(`workers/${user}`))),
  api(user, true, patch(leases('oarlock-system', `/${user}`), renewal)),
  api(user, true, remove(leases('oarlock-system', `/${user}`))),
  stores(user, true, stateOf(`of-${user}`)),
  stores(user, true, inputs(`of-${user}`, `of-${user}-1`)),
  stores(user, false, stateOf(`of-${user}`, 2)),
  stores(user, true, { method: 'POST', path: `/logs/${namespace}/of-${user}-1?offset=0`, body: 'x' }),
]

/** What no worker Pod may do. `p2` is another worker, with a Run. */
export const foreignRows = (user: string): Row[] => [
  // Runs
  api(user, false, status('of-p2')),
  api(user, false, status('web')),
  api(user, false, patch(inShop('runs/web-2/status'), { status: { phase: 'Succeeded' } })),
  api(user, false, patch(inShop(`runs/of-${user}-1`), { spec: { cancel: true } })),
  api(user, false, patch(inShop(`runs/of-${user}-1`), { spec: { workerPod: { namespace: 'oarlock-system', uid: 'x' } } })),
  api(user, false, patch(inShop(`runs/of-${user}-1`), { spec: { epoch: 9 } })),
  api(user, false, patch(inShop('runs/web-2'), { spec: { workerName: user } })),
  api(
    user,
    false,
    create(inShop('runs'), object('oarlock.dev/v1alpha1', 'Run', 'new', { spec: runSpec('web', 'u', { workerName: user }) })),
  ),
  api(user, false, remove(inShop(`runs/of-${user}-1`))),
  api(user, false, patch(inShop('stacks/web'), { spec: { suspend: false } })),
  api(user, false, patch(inShop('stacks/web/status'), { status: { observedGeneration: 9 } })),
  api(user, false, get(inShop('stacks'))),
  // its Worker: what decides which Runs it gets
  api(user, false, patch(own(`workers/${user}`), { spec: { pool: 'private' } })),
  api(user, false, patch(own(`workers/${user}`), { spec: { trustDomain: 'shop' } })),
  api(user, false, patch(own(`workers/${user}`), { spec: { run: 'other/web-1' } })),
  api(user, false, patch(own(`workers/${user}`), { spec: { start: false } })),
  api(user, false, patch(own(`workers/${user}`), { metadata: { labels: { zone: 'west' } } })),
  api(user, false, patch(own(`workers/${user}`), { metadata: { labels: { gpu: null } } })),
  api(user, false, patch(own(`workers/${user}`), { metadata: { labels: { 'oarlock.dev/pool': 'private' } } })),
  api(user, false, patch(own(`workers/${user}`), { metadata: { finalizers: ['example.com/keep'] } })),
  api(user, false, patch(own(`workers/${user}`), { spec: { pod: { namespace: 'elsewhere' } } })),
  api(user, false, patch(own(`workers/${user}`), { spec: { pod: { uid: 'another' } } })),
  api(user, false, patch(own(`workers/${user}`), { spec: { pod: { serviceAccountName: 'oarlock-worker-admin' } } })),
  api(user, false, patch(own(`workers/${user}`), { spec: { pod: null } })),
  // other workers
  api(user, false, create(own('workers'), worker('new'))),
  api(user, false, create(own('workers'), worker('new', { pod: { namespace: 'oarlock-system', serviceAccountName: 'oarlock-worker' } }))),
  api(user, false, patch(own('workers/p2'), { spec: { drain: true } })),
  api(user, false, patch(own('workers/p2/status'), { status: { phase: 'Draining' } })),
  api(user, false, remove(own('workers/p2'))),
  api(user, false, patch(own('workers/w1/status'), { status: { phase: 'Draining' } })),
  api(user, false, patch(own('workerpools/pods'), { spec: { max: 99 } })),
  // Leases
  api(user, false, patch(leases('oarlock-system', '/p2'), renewal)),
  api(user, false, patch(leases('oarlock-system', '/p2'), holder('x'))),
  api(user, false, remove(leases('oarlock-system', '/p2'))),
  api(user, false, patch(leases('oarlock-system', '/w1'), renewal)),
  api(user, false, patch(leases('oarlock-system', '/oarlock-stores'), holder('x'))),
  api(user, false, create(leases('oarlock-system'), leaseOf('oarlock-controller', 'x'))),
  api(user, false, create(leases('oarlock-system'), leaseOf('another', 'x'))),
  api(user, false, create(leases(namespace), leaseOf(user, 'x'))),
  api(user, false, get(leases('oarlock-system'))),
  // Secrets, tokens, Pods, addresses, rights
  ...[namespace, 'oarlock-system', 'oarlock-workers', 'other'].flatMap(each => [
    api(user, false, get(core(`namespaces/${each}/secrets`))),
    api(user, false, get(core(`namespaces/${each}/configmaps`))),
  ]),
  api(user, false, get(core('secrets'))),
  api(user, false, get(core(`namespaces/${namespace}/secrets/db-input`))),
  api(user, false, create(core(`namespaces/${namespace}/secrets`), secret('new'))),
  api(user, false, create(core(`namespaces/${namespace}/secrets`), secret('db-outputs', { type: 'oarlock.dev/outputs' }))),
  api(user, false, patch(core('namespaces/oarlock-system/configmaps/oarlock-endpoint-stores'), { data: { url: 'https://evil' } })),
  ...[
    'oarlock-system/serviceaccounts/oarlock-worker',
    `${namespace}/serviceaccounts/oarlock-worker`,
    'oarlock-workers/serviceaccounts/w1',
  ].map(each => api(user, false, { method: 'POST', path: core(`namespaces/${each}/token`), body: tokenRequest })),
  ...['oarlock-system', namespace].flatMap(each => [
    api(user, false, create(core(`namespaces/${each}/pods`), pod('p9'))),
    api(user, false, create(core(`namespaces/${each}/pods/p2/exec`), {})),
    api(user, false, remove(core(`namespaces/${each}/pods/p1`))),
    api(user, false, get(core(`namespaces/${each}/pods`))),
  ]),
  api(user, false, create('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', binding('owned'))),
  api(user, false, {
    method: 'POST',
    path: '/apis/authentication.k8s.io/v1/tokenreviews',
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: 'x' } },
  }),
  // states and logs of others, and of Stacks
  stores(user, false, stateOf('of-p2')),
  stores(user, false, inputs('of-p2', 'of-p2-1')),
  stores(user, false, inputs('web', 'web-1')),
  stores(user, false, outputs('PUT', '{"data":{},"sensitive":[]}')('of-p2', 'of-p2-1')),
  stores(user, false, stateOf('web')),
  stores(user, false, readOf('of-p2')),
  stores(user, false, state('web')),
  stores(user, false, state(`of-${user}`)),
  stores(user, false, state('web', '/token')),
  stores(user, false, { method: 'POST', path: `/logs/${namespace}/of-p2-1?offset=0`, body: 'forged' }),
  stores(user, false, get(`/logs/${namespace}/web-1`)),
]

const pod = (name: string) =>
  object('v1', 'Pod', name, { spec: { serviceAccountName: 'oarlock-worker', containers: [{ name: 'a', image: 'a' }] } })

/** What needs the identity of p1, for a user that does not have it. */
const impostorRows = (user: string, name: string): Row[] => [
  api(user, false, status(`of-${name}`)),
  api(user, false, patch(own(`workers/${name}/status`), { status: { phase: 'Draining' } })),
  api(user, false, patch(own(`workers/${name}`), { spec: { slots: 1 } })),
  api(user, false, remove(own(`workers/${name}`))),
  api(user, false, patch(leases('oarlock-system', `/${name}`), renewal)),
  api(user, false, remove(leases('oarlock-system', `/${name}`))),
  api(user, false, create(own('workers'), worker('new'))),
  stores(user, false, stateOf(`of-${name}`)),
  stores(user, false, inputs(`of-${name}`, `of-${name}-1`)),
  stores(user, false, readOf(`of-${name}`)),
  stores(user, false, { method: 'POST', path: `/logs/${namespace}/of-${name}-1?offset=0`, body: 'forged' }),
]

export const podWorkerRows = (uids: Readonly<Record<string, string>>): readonly Row[] => [
  ...['p1', 's1', 's2'].flatMap(user => [...ownRows(user, uids[user]!), ...foreignRows(user)]),
  // The reads that RBAC cannot narrow. Of a Pod in the namespace of Stacks: to that namespace.
  api('p1', false, get(inShop('runs/of-p2-1')), noReadPolicies),
  api('p1', false, get(own('runs')), noReadPolicies),
  api('p1', false, get(own('workers/p2')), noReadPolicies),
  api('s1', false, get(inShop('runs/of-p2-1')), noReadPolicies),
  api('s1', false, get(elsewhere('runs'))),
  api('s1', false, get(own('runs'))),
  // It registers: its Worker has no UID yet.
  api('p4', true, patch(own('workers/p4'), { spec: { slots: 1, lifecycle: 'OneShot', pod: { uid: uids.p4 } } })),
  api('p4', false, patch(own('workers/p4'), { spec: { pod: { uid: uids.p1 } } })),
  api('p4', false, patch(own('workers/p4'), { metadata: { labels: { zone: 'west' } } })),
  api('p4', true, create(leases('oarlock-system'), leaseOf('p4', uids.p4!))),
  api('p4', false, create(leases('oarlock-system'), leaseOf('p4', 'p4'))),
  api('p4', false, create(leases('oarlock-system'), leaseOf('p4', uids.p1!))),
  api('p4', false, create(leases('oarlock-system'), leaseOf('p1', uids.p4!))),
  // a Pod of the same name in another namespace, and one that replaced the Pod of the worker
  ...impostorRows('p1-in-shop', 'p1'),
  ...impostorRows('p3', 'p3'),
  // the same ServiceAccount without a Pod; a Pod with another account; a Pod that is gone
  ...impostorRows('no-pod', 'p1'),
  ...impostorRows('no-pod', 'p4').filter(({ path }) => path.includes('/workers')),
  api('no-pod', false, create(leases('oarlock-system'), leaseOf('p4', ''))),
  api('no-pod', false, get(own('runs')), readsWithoutPod),
  ...impostorRows('deployer-p1', 'p1'),
  ...impostorRows('p5', 'p5'),
  api('p5', false, get(own('workers/p5'))),
  // workers that joined, and components
  api('w1', false, status('of-p1')),
  api('w1', false, patch(own('workers/w1'), { spec: { pod: { namespace: 'oarlock-system', serviceAccountName: 'oarlock-worker' } } })),
  api('w3', false, create(own('workers'), { ...worker('w3', { pod: { namespace: 'shop', serviceAccountName: 'oarlock-worker' } }) })),
  api('join-service', false, status('of-p1')),
]
