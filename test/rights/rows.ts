import { awaitingPlan, namespace, planDigest, type RightsRequest, restoredAt, runSpec, tokenRequest } from './fixture.ts'

/** What a user may do, on every API server. */
export type Row = RightsRequest & {
  readonly user: string
  readonly to: 'api' | 'stores'
  readonly may: boolean
  /** Where a kube-apiserver decides otherwise, and why. */
  readonly onKubernetes?: { readonly may: boolean; readonly reason: string }
}

export const own = (path: string) => `/apis/oarlock.dev/v1alpha1/${path}`
const inShop = (path: string) => own(`namespaces/${namespace}/${path}`)
const elsewhere = (path: string) => own(`namespaces/elsewhere/${path}`)
export const core = (path: string) => `/api/v1/${path}`
export const leases = (in_: string, path = '') => `/apis/coordination.k8s.io/v1/namespaces/${in_}/leases${path}`
const rbac = (path: string) => `/apis/rbac.authorization.k8s.io/v1/${path}`

// Every write is a dry run: the rows do not depend on each other.
const dryRun = (path: string) => `${path}?dryRun=All`
export const get = (path: string): RightsRequest => ({ method: 'GET', path })
export const create = (path: string, body: object): RightsRequest => ({ method: 'POST', path: dryRun(path), body })
export const patch = (path: string, body: object): RightsRequest => ({
  ...{ method: 'PATCH', path: dryRun(path), body },
  contentType: 'application/merge-patch+json',
})
const applyObject = (path: string, body: object): RightsRequest => ({
  ...{ method: 'PATCH', path: `${dryRun(path)}&fieldManager=test&force=true`, body },
  contentType: 'application/apply-patch+yaml',
})
export const remove = (path: string): RightsRequest => ({ method: 'DELETE', path: dryRun(path) })

export const object = (apiVersion: string, kind: string, name: string, more: object = {}) => ({
  apiVersion,
  kind,
  metadata: { name },
  ...more,
})
const stack = (name: string) =>
  object('oarlock.dev/v1alpha1', 'Stack', name, {
    spec: { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] } },
  })
const targetedRun = 'apply:1 {"targets":["terraform_data.a"]}'
const run = (name: string, more: object = {}) => object('oarlock.dev/v1alpha1', 'Run', name, { spec: runSpec('web', 'u', more) })
const worker = (name: string, labels: object, pool = 'edge') => ({
  ...object('oarlock.dev/v1alpha1', 'Worker', name),
  metadata: { name, labels: { 'oarlock.dev/pool': pool, ...labels } },
  spec: { pool, slots: 1, lifecycle: 'Warm' },
})
const requested = <Spec extends object>(from: { spec: Spec }) => ({ ...from, spec: { ...from.spec, start: true } })
const lease = (name: string) => object('coordination.k8s.io/v1', 'Lease', name, { spec: { holderIdentity: name } })
export const secret = (name: string, more: object = {}) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name }, ...more })
const configMap = (name: string, data: object) => object('v1', 'ConfigMap', name, { data })
const endpoint = (role: string) => core(`namespaces/oarlock-system/configmaps/oarlock-endpoint-${role}`)
const account = (name: string) => object('v1', 'ServiceAccount', name)
const role = (name: string) =>
  object('rbac.authorization.k8s.io/v1', 'Role', name, { rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }] })

const emptyRole = (name: string, kind = 'Role') => object('rbac.authorization.k8s.io/v1', kind, name, { rules: [] })

const userName = (user: string) => `system:serviceaccount:users:${user}`
const annotated = (annotations: Record<string, string>) => ({ metadata: { annotations } })
export const approvalBy = (by: string, digest = awaitingPlan.digest) => ({
  metadata: { annotations: { 'oarlock.dev/approved-plan': digest, 'oarlock.dev/approved-by': userName(by) } },
})
const rejectionBy = (by: string, digest = awaitingPlan.digest) => ({
  metadata: {
    annotations: { 'oarlock.dev/rejected-plan': digest, 'oarlock.dev/rejected-by': userName(by), 'oarlock.dev/rejection-reason': 'no' },
  },
})
const acceptanceOf = (at: string) => ({ metadata: { annotations: { 'oarlock.dev/accepted-restore': at } } })
const ownedBy = { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'trap', uid: 'u' }] } }

const rowsOf =
  (to: Row['to']) =>
  (user: string, may: boolean, request: RightsRequest, onKubernetes?: Row['onKubernetes']): Row => ({
    ...{ user, to, may, ...request },
    ...(onKubernetes && { onKubernetes }),
  })
export const api = rowsOf('api')
export const stores = rowsOf('stores')

const noFieldSelectors = { may: true, reason: 'RBAC grants access to a kind, not to the objects that a field selects' }
const noReadPolicies = { may: true, reason: 'a policy sees writes only, so a worker reads every object of the kinds that it needs' }
const noMutation = {
  may: false,
  reason: 'a policy cannot replace the user that a client claims, as the embedded server does, so it denies the request',
}

const log = (name: string) => get(`/logs/${namespace}/${name}`)
export const state = (name: string, path = '') => get(`/state/${namespace}/${name}${path}`)
const post = (path: string, body = '{"version":4}', headers: Record<string, string> = {}): RightsRequest => ({
  ...{ method: 'POST', path, body, headers },
})
const put = (path: string, epoch: number): RightsRequest => ({
  ...{ method: 'PUT', path, body: '{"version":4}', headers: { 'oarlock-epoch': String(epoch) } },
})

/** Requests of the worker of a Run. */
const ofRun =
  (method: string, resource: string, body?: string) =>
  (stack: string, name: string, epoch = 1): RightsRequest => ({
    ...{ method, path: `/state/${namespace}/${stack}/run/${name}/${resource}`, body, headers: { 'oarlock-epoch': String(epoch) } },
  })
export const inputs = ofRun('GET', 'inputs')
export const outputs = (method: string, body?: string, of = '') => ofRun(method, `outputs${of}`, body)

/** States, plans and logs: decided by the stores, after TokenReview and SubjectAccessReview. */
export const storeRows: readonly Row[] = [
  ...['anonymous', 'wrong', 'outsider'].flatMap(user => [
    stores(user, false, log('web-1')),
    stores(user, false, state('web')),
    stores(user, false, state('no-such-stack', '/versions')),
    stores(user, false, state('web', `/plan/${planDigest}`)),
  ]),
  stores('admin', true, log('web-1')),
  stores('admin', true, state('web')),
  ...['/state/backup', '/logs/backup'].flatMap(path => [stores('admin', true, get(path)), stores('owner', false, get(path))]),
  stores('admin', true, state('web', `/plan/${planDigest}`)),
  stores('admin', true, post(`/state/${namespace}/web`)),
  // view
  stores('viewer', true, log('web-1')),
  stores('viewer', false, get('/logs/other/web-1')),
  stores('viewer', false, post(`/logs/${namespace}/web-1?offset=6`, 'x')),
  stores('viewer', false, state('web')),
  stores('viewer', false, state('web', `/plan/${planDigest}`)),
  stores('viewer', true, state('web', '/diff/web-1')),
  stores('viewer', false, get('/state/other/web/diff/web-1')),
  api('viewer', false, patch(inShop('stacks/web'), annotated({ 'oarlock.dev/requested-run': targetedRun }))),
  // edit
  api('editor', true, patch(inShop('stacks/web'), annotated({ 'oarlock.dev/requested-run': 'apply:1' }))),
  stores('editor', true, log('db-1')),
  stores('editor', false, state('web')),
  stores('editor', false, post(`/state/${namespace}/web`)),
  stores('editor', false, state('web', '/token')),
  stores('editor', false, state('web', `/plan/${planDigest}`)),
  // admin
  stores('owner', true, log('web-1')),
  stores('owner', true, state('web')),
  stores('owner', true, state('web', '/versions')),
  stores('owner', true, state('web', '/lock')),
  stores('owner', true, state('web', '/token')),
  stores('owner', true, state('web', `/plan/${planDigest}`)),
  stores('owner', true, post(`/state/${namespace}/web`)),
  stores('owner', true, { method: 'DELETE', path: `/state/${namespace}/db` }),
  stores('owner', false, state('no-such-stack')),
  stores('owner', false, get('/state/other/web')),
  // single rights
  stores('log-of-web', true, log('web-1')),
  stores('log-of-web', false, log('db-1')),
  stores('log-of-web', false, log('no-such-run')),
  stores('log-of-web', false, state('web')),
  stores('state-reader', true, state('web')),
  stores('state-reader', true, state('db', '/versions')),
  stores('state-reader', false, post(`/state/${namespace}/web`)),
  stores('state-reader', false, { ...post(`/state/${namespace}/web`, '{"ID":"a"}'), method: 'LOCK' }),
  stores('state-reader', false, post(`/state/${namespace}/web/accept`, '')),
  stores('state-reader', false, state('web', '/token')),
  stores('state-reader', false, state('web', '/check')),
  stores('stack-token', false, state('web', '/check')),
  stores('owner', true, state('web', '/check')),
  stores('state-reader', false, state('web', `/plan/${planDigest}`)),
  stores('state-reader', false, log('web-1')),
  stores('state-writer', true, post(`/state/${namespace}/web`)),
  stores('state-writer', true, post(`/state/${namespace}/web/accept`, '')),
  stores('state-writer', false, { method: 'DELETE', path: `/state/${namespace}/web` }),
  stores('state-writer', false, state('web', '/token')),
  stores('plan-reader', false, state('web', `/plan/${planDigest}`)),
  stores('plan-reader', true, state('web', '/diff/web-1')),
  stores('plan-file-reader', true, state('web', `/plan/${planDigest}`)),
  stores('plan-reader', false, state('web')),
  stores('plan-reader', false, log('web-1')),
  stores('plan-reader', false, state('web', '/orphans')),
  stores('log-of-web', false, state('web', `/plan/${planDigest}`)),
  stores('log-of-web', false, state('web', '/diff/web-1')),
  stores('stack-token', false, state('web', '/diff/web-1')),
  // who approves reads what is approved, not states and plan files, which contain secret values
  stores('approver', true, log('web-1')),
  stores('approver', false, state('web')),
  stores('approver', false, state('web', `/plan/${planDigest}`)),
  stores('approver', true, state('web', '/diff/web-1')),
  stores('destroyer', true, log('web-1')),
  stores('destroyer', true, state('web', '/diff/web-1')),
  stores('canceler', true, log('web-1')),
  stores('canceler', false, state('web')),
  stores('destroyer', false, state('web')),
  // the token of the Stack web
  stores('stack-token', true, state('web')),
  stores('stack-token', true, post(`/state/${namespace}/web`)),
  // a token that was replaced would otherwise lead to the new one
  stores('stack-token', false, state('web', '/token')),
  stores('stack-token', false, state('db')),
  stores('stack-token', false, state('web', `/plan/${planDigest}`)),
  stores('stack-token', false, log('web-1')),
  // workers
  stores('w1', true, { method: 'GET', path: `/state/${namespace}/web/run/web-1/state`, headers: { 'oarlock-epoch': '1' } }),
  stores('w1', false, put(`/state/${namespace}/web/run/web-1/state`, 2)),
  stores('w1', false, put(`/state/${namespace}/db/run/web-1/state`, 1)),
  stores('w2', false, put(`/state/${namespace}/web/run/web-1/state`, 1)),
  stores('w1', false, { method: 'GET', path: '/state/elsewhere/web/run/steal/state', headers: { 'oarlock-epoch': '1' } }),
  stores('w1', false, put('/state/elsewhere/web/run/steal/state', 1)),
  stores('w1', true, put('/state/elsewhere/web/run/orphan/state', 1)),
  stores('admin', false, put(`/state/${namespace}/web/run/web-1/state`, 1)),
  stores('owner', false, put(`/state/${namespace}/web/run/web-1/state`, 1)),
  // the inputs and outputs of its Runs
  stores('w1', true, inputs('web', 'web-1')),
  ...[inputs, outputs('PUT', '{"data":{},"sensitive":[]}'), outputs('DELETE'), outputs('GET', undefined, '/web')].flatMap(request => [
    // of another worker, of an ended Run, and with another epoch, Stack or namespace than the Run's
    stores('w2', false, request('web', 'web-1')),
    stores('w1', false, request('db', 'db-1')),
    stores('w1', false, request('done', 'done-1')),
    stores('w1', false, request('web', 'web-1', 2)),
    stores('w1', false, request('db', 'web-1')),
    stores('w1', false, { ...request('web', 'web-1'), path: request('web', 'web-1').path.replace(`/${namespace}/`, '/other/') }),
    // of a Run that does not exist, and of one without a worker
    stores('w1', false, request('web', 'no-such-run')),
    stores('w1', false, request('web', 'web-2', 2)),
    ...['anonymous', 'wrong', 'outsider', 'owner', 'admin', 'stack-token', 'stores', 'controller', 'pool'].map(user =>
      stores(user, false, request('web', 'web-1')),
    ),
  ]),
  // an engine that refers to no Stack
  stores('w1', false, outputs('GET', undefined, '/db')('web', 'web-1')),
  stores('w1', false, state('web')),
  stores('w1', false, log('web-1')),
  stores('w1', true, post(`/logs/${namespace}/web-1?offset=6`, 'x')),
  stores('w2', false, post(`/logs/${namespace}/web-1?offset=6`, 'x')),
  stores('controller', false, state('web')),
  stores('controller', true, { method: 'DELETE', path: `/state/${namespace}/db` }),
]

const rolesIn = (user: string, in_: string): Row[] => [
  api(user, true, create(rbac(`namespaces/${in_}/roles`), emptyRole('new'))),
  api(user, true, applyObject(rbac(`namespaces/${in_}/roles/new`), emptyRole('new'))),
  ...['oarlock:new', 'oarlock-new'].flatMap(name => [
    api(user, false, create(rbac(`namespaces/${in_}/roles`), emptyRole(name))),
    api(user, false, applyObject(rbac(`namespaces/${in_}/roles/${name}`), emptyRole(name))),
    api(user, false, create(rbac('clusterroles'), emptyRole(name, 'ClusterRole'))),
  ]),
  api(user, false, create(rbac(`namespaces/${in_}/roles`), { ...emptyRole(''), metadata: { generateName: 'oarlock-' } })),
]

/** Objects: decided by RBAC and, for fields and for whose an object is, by Oarlock's authorizer or by policies. */
export const objectRows: readonly Row[] = [
  // view
  api('viewer', true, get(inShop('stacks'))),
  api('viewer', true, get(inShop('runs/web-1'))),
  api('viewer', false, get(own('stacks'))),
  api('viewer', false, get(core(`namespaces/${namespace}/secrets`))),
  api('viewer', false, create(inShop('stacks'), stack('new'))),
  api('viewer', false, patch(inShop('runs/web-1'), { spec: { cancel: true } })),
  api('viewer', false, patch(inShop('stacks/web'), { spec: { suspend: true } })),
  api('viewer', false, applyObject(inShop('stacks/web'), stack('web'))),
  api('viewer', false, patch(inShop('stacks/web/status'), { status: { observedGeneration: 9 } })),
  // edit
  api('editor', true, create(inShop('stacks'), stack('new'))),
  api('editor', true, patch(inShop('stacks/web'), { spec: { suspend: false } })),
  api('editor', false, patch(inShop('stacks/web/status'), { status: { observedGeneration: 9 } })),
  api('editor', true, patch(inShop('runs/web-1'), { spec: { cancel: true } })),
  api('editor', true, patch(inShop('runs/web-1'), { spec: { priority: 5, priorityClass: 'Interactive' } })),
  api('editor', true, patch(inShop('runs/web-1'), { metadata: { labels: { team: 'a' } } })),
  api('editor', true, remove(inShop('runs/web-1'))),
  api('editor', false, patch(inShop('runs/web-2'), { spec: { workerName: 'w2' } })),
  // What no user may change is in ended-run.test.ts.
  api('editor', false, patch(inShop('runs/web-1'), { spec: { cancelReason: 'Outdated' } })),
  api('editor', false, patch(inShop('runs/web-1'), { metadata: { finalizers: null } })),
  api('editor', false, patch(inShop('runs/web-1/status'), { status: { phase: 'Succeeded' } })),
  api('editor', false, create(inShop('runs'), run('new'))),
  // stacks/approval
  api('editor', false, patch(inShop('stacks/careful'), approvalBy('editor'))),
  api(
    'editor',
    false,
    applyObject(inShop('stacks/careful'), { ...stack('careful'), metadata: { name: 'careful', ...approvalBy('editor').metadata } }),
  ),
  api('editor', false, create(inShop('stacks'), { ...stack('new'), metadata: { name: 'new', ...approvalBy('editor').metadata } })),
  api('editor', false, patch(inShop('stacks/careful'), { metadata: { annotations: { 'oarlock.dev/approved-plan': 'sha256:0123' } } })),
  api('approver', true, patch(inShop('stacks/careful'), approvalBy('approver'))),
  api('approver', true, patch(inShop('stacks/careful'), approvalBy('owner')), noMutation),
  api('owner', true, patch(inShop('stacks/careful'), approvalBy('owner'))),
  api('viewer', false, patch(inShop('stacks/careful'), approvalBy('viewer'))),
  // stacks/recovery
  api('editor', false, patch(inShop('stacks/restored'), acceptanceOf(restoredAt))),
  api('editor', true, patch(inShop('stacks/restored'), acceptanceOf('another restore'))),
  api('owner', true, patch(inShop('stacks/restored'), acceptanceOf(restoredAt))),
  api('editor', false, patch(inShop('stacks/careful'), rejectionBy('editor'))),
  api('approver', true, patch(inShop('stacks/careful'), rejectionBy('approver'))),
  api('approver', true, patch(inShop('stacks/careful'), rejectionBy('owner')), noMutation),
  api('viewer', false, patch(inShop('stacks/careful'), rejectionBy('viewer'))),
  api('owner', false, patch(inShop('stacks/careful'), rejectionBy('owner', 'sha256:4567'))),
  api('owner', false, patch(inShop('stacks/web'), rejectionBy('owner'))),
  // of anything but the plan that awaits approval
  api('owner', false, patch(inShop('stacks/careful'), approvalBy('owner', 'sha256:4567'))),
  api('owner', false, patch(inShop('stacks/careful'), { ...approvalBy('owner'), spec: { timeout: '2h' } })),
  api('owner', false, patch(inShop('stacks/web'), approvalBy('owner'))),
  api('owner', false, create(inShop('stacks'), { ...stack('new'), metadata: { name: 'new', ...approvalBy('owner').metadata } })),
  // spec.approval
  api('editor', false, patch(inShop('stacks/careful'), { spec: { approval: 'Auto' } })),
  api('editor', false, patch(inShop('stacks/careful'), { spec: { approval: null } })),
  api('editor', true, patch(inShop('stacks/careful'), { spec: { suspend: false } })),
  api('editor', true, patch(inShop('stacks/web'), { spec: { approval: 'Manual' } })),
  api('owner', true, patch(inShop('stacks/careful'), { spec: { approval: 'Auto' } })),
  // an approver is no editor
  api('approver', false, patch(inShop('stacks/careful'), { spec: { suspend: false } })),
  api('approver', false, patch(inShop('stacks/careful'), { spec: { suspend: false }, ...approvalBy('approver') })),
  api('approver', false, patch(inShop('stacks/careful'), annotated({ 'oarlock.dev/requested-run': 'plan:1' }))),
  api('approver', false, patch(inShop('stacks/careful'), { metadata: { labels: { team: 'a' } } })),
  api('approver', false, create(inShop('stacks'), stack('new'))),
  api('approver', false, remove(inShop('stacks/kept'))),
  // stacks/destroy
  api('editor', false, remove(inShop('stacks/web'))),
  api('editor', false, remove(inShop('stacks'))),
  api('editor', true, remove(inShop('stacks/kept'))),
  api('admin', false, remove(elsewhere('stacks/protected'))),
  api('admin', false, remove(elsewhere('stacks'))),
  api('admin', true, patch(elsewhere('stacks/protected'), { spec: { deletionProtection: false } })),
  api('editor', false, patch(inShop('stacks/web'), ownedBy)),
  api('editor', false, create(inShop('stacks'), { ...stack('new'), metadata: { name: 'new', ...ownedBy.metadata } })),
  api('destroyer', true, remove(inShop('stacks/web'))),
  api('destroyer', false, patch(inShop('stacks/web'), { spec: { suspend: false } })),
  api(
    'destroyer',
    true,
    patch(inShop('stacks/web'), annotated({ 'oarlock.dev/requested-run': 'plan-destroy:1', 'oarlock.dev/destroy-plan': 'sha256:0' })),
  ),
  // A value without a type requests an apply.
  ...['apply:1', targetedRun, '2026-11-23T10:00:00Z', ' plan-destroy:1', 'Plan-Destroy:1'].map(request =>
    api('destroyer', false, patch(inShop('stacks/web'), annotated({ 'oarlock.dev/requested-run': request }))),
  ),
  api('destroyer', false, patch(inShop('stacks/web'), annotated({ 'oarlock.dev/destroy-plan': 'sha256:0', other: 'x' }))),
  api('approver', false, patch(inShop('stacks/web'), annotated({ 'oarlock.dev/destroy-plan': 'sha256:0' }))),
  api('owner', true, remove(inShop('stacks/web'))),
  api('owner', true, remove(inShop('stacks'))),
  api('owner', true, patch(inShop('stacks/web'), ownedBy)),
  // runs/cancel
  api('run-writer', false, patch(inShop('runs/web-1'), { spec: { cancel: true } })),
  api('run-writer', false, remove(inShop('runs/web-1'))),
  api('run-writer', false, remove(inShop('runs'))),
  api('run-writer', true, patch(inShop('runs/web-1'), { spec: { priority: 5 } })),
  api('run-writer', false, patch(inShop('runs/web-1'), ownedBy)),
  api('editor', false, patch(inShop('runs/web-1'), ownedBy)),
  api('approver', false, patch(inShop('runs/web-1'), { spec: { cancel: true } })),
  api('canceler', true, patch(inShop('runs/web-1'), { spec: { cancel: true } })),
  api('canceler', false, remove(inShop('runs/web-1'))),
  api('canceler', false, patch(inShop('stacks/web'), { spec: { suspend: true } })),
  api('canceler', false, patch(inShop('stacks/web'), annotated({ 'oarlock.dev/requested-run': targetedRun }))),
  // Workers and pools belong to no namespace.
  ...['viewer', 'editor', 'owner', 'approver', 'destroyer', 'canceler', 'run-writer'].flatMap(user => [
    api(user, false, patch(own('workers/w1'), { spec: { cordon: true } })),
    api(user, false, patch(own('workers/w1'), { spec: { drain: true } })),
    api(user, false, patch(own('workers/w1/status'), { status: { phase: 'Failed' } })),
    api(user, false, patch(own('workerpools/edge'), { spec: { max: 0 } })),
    api(user, false, remove(own('workers/w1'))),
  ]),
  api('admin', true, patch(own('workers/w1'), { spec: { cordon: true } })),
  // runs without and with runs/binding
  api('run-writer', false, create(inShop('runs'), run('new'))),
  api('run-writer', false, create(inShop('runs'), run('new', { epoch: 99_999 }))),
  api('run-writer', false, create(inShop('runs'), run('new', { workerName: 'w1' }))),
  api('run-writer', false, create(inShop('runs'), run('new', { approvedPlan: { digest: 'x', runName: 'web-1' } }))),
  api('run-writer', false, patch(inShop('runs/web-2'), { spec: { workerName: 'w2' } })),
  api('run-writer', false, patch(inShop('runs/web-2'), { spec: { tenant: { name: 't', uid: 'u' } } })),
  api('editor', false, patch(inShop('runs/web-2'), { spec: { tenant: { name: 't', uid: 'u' } } })),
  api('binder', true, create(inShop('runs'), run('new'))),
  api('binder', true, create(inShop('runs'), run('new', { workerName: 'w1' }))),
  api('binder', true, patch(inShop('runs/web-2'), { spec: { workerName: 'w2' } })),
  api('binder', true, patch(inShop('runs/web-1'), { metadata: { finalizers: null } })),
  api('admin', true, patch(inShop('runs/web-2'), { spec: { workerName: 'w2' } })),
  // the addresses of the roles
  ...['stores', 'join', 'queue'].flatMap(role => {
    const writers: Record<string, string> = { stores: 'stores', 'join-service': 'join', controller: 'queue' }
    const writes = (data: object) => [
      patch(endpoint(role), { data }),
      applyObject(endpoint(role), configMap(`oarlock-endpoint-${role}`, data)),
    ]
    return [
      api('outsider', true, get(endpoint(role))),
      api('w1', true, get(endpoint(role))),
      api('outsider', false, patch(endpoint(role), { data: { url: 'https://evil' } })),
      api('w1', false, patch(endpoint(role), { data: { url: 'https://evil' } })),
      api('pool', false, patch(endpoint(role), { data: { url: 'https://evil' } })),
      ...Object.entries(writers).flatMap(([user, own]) => [
        ...writes({ url: 'https://new' }).map(request => api(user, own === role, request)),
        api(
          user,
          own === role || user === 'controller',
          get(core(`namespaces/oarlock-system/configmaps?fieldSelector=metadata.name%3Doarlock-endpoint-${role}`)),
        ),
      ]),
    ]
  }),
  api('outsider', false, get(core('namespaces/oarlock-system/configmaps'))),
  ...['stores', 'join-service', 'controller'].flatMap(user => [
    api(user, false, create(core('namespaces/oarlock-system/configmaps'), configMap('other', {}))),
    api(user, false, applyObject(core('namespaces/oarlock-system/configmaps/other'), configMap('other', {}))),
  ]),
  // the processes of an installation
  api('controller', true, get(own('stacks'))),
  api('controller', true, get(core('secrets'))),
  api('controller', true, create(inShop('runs'), run('new', { workerName: 'w1' }))),
  api('controller', true, patch(inShop('runs/web-2'), { spec: { workerName: 'w2' } })),
  api('controller', true, patch(inShop('runs/web-2'), { spec: { tenant: { name: 't', uid: 'u' } } })),
  api('controller', true, patch(inShop('runs/web-1/status'), { status: { phase: 'Lost' } })),
  api('controller', true, patch(inShop('stacks/web/status'), { status: { observedGeneration: 9 } })),
  api('controller', true, remove(own('workers/w1'))),
  api('controller', true, create(leases('oarlock-system'), lease('oarlock-controller'))),
  api('controller', false, create(leases(namespace), lease('oarlock-controller'))),
  api('controller', false, create(core('namespaces/oarlock-workers/serviceaccounts'), account('w9'))),
  api('controller', false, create(rbac(`namespaces/${namespace}/roles`), role('new'))),
  api('stores', true, get(own('runs'))),
  api('stores', false, get(core(`namespaces/${namespace}/secrets`))),
  api('stores', true, get(core(`namespaces/${namespace}/secrets/web-input`))),
  api('stores', true, get(core(`namespaces/${namespace}/configmaps/web-config`))),
  api('stores', true, patch(core(`namespaces/${namespace}/secrets/web-outputs`), { data: { a: 'eA==' } })),
  api('stores', false, create(core(`namespaces/${namespace}/configmaps`), configMap('new', {}))),
  // Of a namespace that is not bound to oarlock:run-inputs: an administrator decides, except on the embedded server.
  api('stores', true, get(core('namespaces/elsewhere/secrets/of-elsewhere')), {
    may: false,
    reason: 'an administrator allows it in each namespace with Stacks',
  }),
  api('stores', true, applyObject(leases('oarlock-system', '/oarlock-stores'), lease('oarlock-stores'))),
  api('stores', false, create(leases('oarlock-system'), lease('oarlock-other'))),
  api('stores', false, applyObject(leases('oarlock-system', '/oarlock-controller'), lease('oarlock-controller'))),
  api('pool', false, applyObject(leases('oarlock-system', '/oarlock-stores'), lease('oarlock-stores'))),
  api('w1', false, patch(leases('oarlock-system', '/oarlock-stores'), { spec: { holderIdentity: 'w1' } })),
  api('stores', false, patch(inShop('runs/web-1'), { spec: { cancel: true } })),
  api('join-service', true, get(own('workerpools/edge'))),
  api('join-service', true, get(core('namespaces/oarlock-system/secrets'))),
  api('join-service', false, get(core(`namespaces/${namespace}/secrets`))),
  api('join-service', true, create(core('namespaces/oarlock-workers/serviceaccounts'), account('w9'))),
  api('join-service', true, { method: 'POST', path: core('namespaces/oarlock-workers/serviceaccounts/w1/token'), body: tokenRequest }),
  api('join-service', false, {
    method: 'POST',
    path: core('namespaces/oarlock-system/serviceaccounts/oarlock-controller/token'),
    body: tokenRequest,
  }),
  api('join-service', true, create(rbac('namespaces/oarlock-workers/roles'), role('w9'))),
  api('join-service', false, create(rbac(`namespaces/${namespace}/roles`), role('w9'))),
  api('console-server', true, get(inShop('stacks'))),
  api('console-server', true, get(leases('oarlock-system'))),
  api('console-server', false, get(leases(namespace))),
  api('console-server', false, patch(inShop('stacks/web'), { spec: { suspend: true } })),
  api('console-server', false, get(core(`namespaces/${namespace}/secrets`))),
  api('pool', true, get(own('workers'))),
  api('pool', true, patch(own('workers/w1/status'), { status: { phase: 'Failed' } })),
  api('pool', false, patch(own('workers/w1'), { spec: { pool: 'private' } })),
  api('pool', false, get(inShop('runs'))),
  api('pool', false, get(core(`namespaces/${namespace}/secrets`))),
  // a worker: its Runs
  api('w1', true, get(own('runs?fieldSelector=spec.workerName%3Dw1'))),
  api('w1', false, patch(inShop('runs/web-1'), { spec: { tenant: { name: 't', uid: 'u' } } })),
  api('w1', false, get(own('runs?fieldSelector=spec.workerName%3Dw2')), noFieldSelectors),
  api('w1', false, get(own('runs')), noFieldSelectors),
  api('w1', true, get(inShop('runs/web-1'))),
  api('w1', false, get(inShop('runs/db-1')), noFieldSelectors),
  api('w1', true, patch(inShop('runs/web-1/status'), { status: { phase: 'Succeeded' } })),
  api('w1', false, patch(inShop('runs/db-1/status'), { status: { phase: 'Succeeded' } })),
  api('w1', false, patch(inShop('runs/web-1'), { spec: { cancel: true } })),
  api('w1', false, patch(inShop('runs/web-1'), { spec: { workerName: 'w2' } })),
  api('w1', false, create(inShop('runs'), run('new'))),
  api('w1', false, remove(inShop('runs/web-1'))),
  api('w1', false, get(inShop('stacks'))),
  api('w1', false, patch(inShop('stacks/web'), { spec: { suspend: false } })),
  // its Worker and its Lease
  api('w1', true, patch(own('workers/w1'), { spec: { slots: 2 } })),
  api('w1', true, patch(own('workers/w1/status'), { status: { phase: 'Busy' } })),
  api('w1', true, remove(own('workers/w1'))),
  api('w1', false, patch(own('workers/w2'), { spec: { slots: 2 } })),
  api('w1', false, patch(own('workers/w2/status'), { status: { phase: 'Busy' } })),
  api('w1', false, remove(own('workers/w2'))),
  api('w1', false, get(own('workers/w2')), noReadPolicies),
  api('w1', false, patch(own('workers/w1'), { spec: { pool: 'private' } })),
  api('w1', false, patch(own('workers/w1'), { metadata: { labels: { 'oarlock.dev/pool': 'private' } } })),
  api('w1', false, patch(own('workers/w1'), { metadata: { labels: { zone: 'west' } } })),
  api('w1', false, patch(own('workers/w1'), { metadata: { labels: { gpu: null } } })),
  api('w1', false, patch(own('workers/w1'), { spec: { drain: false } })),
  api('w1', false, create(own('workers'), worker('w3', { gpu: 'a100', zone: 'west' }))),
  api('w3', true, create(own('workers'), worker('w3', { gpu: 'a100', zone: 'west' }))),
  api('w3', false, create(own('workers'), worker('w3', { gpu: 'h100', zone: 'west' }))),
  api('w3', false, create(own('workers'), worker('w3', { gpu: 'a100', zone: 'west', rack: '7' }))),
  api('w3', false, create(own('workers'), worker('w3', { gpu: 'a100', zone: 'west' }, 'private'))),
  api('w3', false, create(own('workers'), requested(worker('w3', { gpu: 'a100', zone: 'west' })))),
  api('w1', false, patch(own('workers/w1'), { spec: { start: true } })),
  api('w4', true, patch(own('workers/w4'), { metadata: { labels: { gpu: 'a100' } }, spec: { slots: 2 } })),
  api('w4', false, patch(own('workers/w4'), { metadata: { labels: { gpu: 'h100' } } })),
  api('w4', false, patch(own('workers/w4'), { metadata: { labels: { gpu: 'a100', zone: 'west' } } })),
  // Its Worker was deleted: the credential does not make another one.
  api('w6', false, create(own('workers'), worker('w6', {}))),
  api('w3', true, create(leases('oarlock-system'), lease('w3'))),
  api('w3', false, create(leases('oarlock-system'), lease('w4'))),
  api('w3', false, create(leases('oarlock-system'), lease('oarlock-controller'))),
  api('named-like-component', false, create(leases('oarlock-system'), lease('oarlock-controller'))),
  api('named-like-component', false, create(own('workers'), worker('oarlock-controller', {}))),
  api('w1', true, patch(leases('oarlock-system', '/w1'), { spec: { renewTime: '2026-06-01T10:00:00.000000Z' } })),
  api('w1', true, remove(leases('oarlock-system', '/w1'))),
  api('w1', false, patch(leases('oarlock-system', '/w2'), { spec: { holderIdentity: 'w1' } })),
  api('w1', false, remove(leases('oarlock-system', '/w2'))),
  api('w1', false, create(leases(namespace), lease('w1'))),
  api('w1', true, get(own('workerpools/edge'))),
  api('w1', false, get(own('workerpools/private')), noReadPolicies),
  // Secrets and ConfigMaps: the stores hand out what its Runs reference
  ...['secrets', 'configmaps'].flatMap(plural =>
    [namespace, 'other', 'oarlock-system', 'oarlock-workers'].flatMap(in_ => [
      api('w1', false, get(core(`namespaces/${in_}/${plural}`))),
      api('w1', false, get(core(`namespaces/${in_}/${plural}?watch=true&timeoutSeconds=1`))),
      api('w1', false, get(core(`namespaces/${in_}/${plural}/web-input`))),
    ]),
  ),
  ...['web-input', 'web-outputs', 'db-input', 'done-input'].map(name =>
    api('w1', false, get(core(`namespaces/${namespace}/secrets/${name}`))),
  ),
  api('w1', false, get(core(`namespaces/${namespace}/configmaps/web-config`))),
  api('w1', false, get(core('secrets'))),
  api('w1', false, get(core('configmaps'))),
  api('w1', false, patch(core(`namespaces/${namespace}/secrets/web-outputs`), { data: { a: 'eA==' } })),
  api('w1', false, remove(core(`namespaces/${namespace}/secrets/web-outputs`))),
  api('w1', false, patch(core(`namespaces/${namespace}/secrets/db-outputs`), { data: { a: 'eA==' } })),
  api('w1', false, patch(core(`namespaces/${namespace}/secrets/web-input`), { data: { a: 'eA==' } })),
  api('w1', false, remove(core(`namespaces/${namespace}/secrets/web-input`))),
  api('w1', false, create(core(`namespaces/${namespace}/secrets`), secret('new'))),
  api('w1', false, create(core(`namespaces/${namespace}/secrets`), secret('new-outputs', { type: 'oarlock.dev/outputs' }))),
  api(
    'w1',
    false,
    create(core(`namespaces/${namespace}/secrets`), {
      ...secret('x-outputs', { type: 'kubernetes.io/service-account-token' }),
      metadata: { name: 'x-outputs', annotations: { 'kubernetes.io/service-account.name': 'default' } },
    }),
  ),
  // everything else
  api('w1', false, { method: 'POST', path: core('namespaces/oarlock-workers/serviceaccounts/w2/token'), body: tokenRequest }),
  api('w1', false, create(rbac(`namespaces/${namespace}/roles`), role('new'))),
  // roles and bindings, where an administrator allows them
  ...rolesIn('w1', 'elsewhere'),
  api('w1', false, remove(rbac('namespaces/elsewhere/roles/oarlock-present'))),
  api('w1', false, get(core('namespaces'))),
]

const isOfWorker = ({ user, path }: Row) => /^w\d$/.test(user) && !path.includes('elsewhere')

const ofObjects = { annotations: { 'oarlock.dev/stack': `${namespace}/objects` } }
const ownSecret = (more: object = {}) => ({ ...secret('made', more), metadata: { name: 'made', ...ofObjects } })

const ownerReference = { apiVersion: 'v1', kind: 'ConfigMap', name: 'none', uid: 'none' }
const definition = (group: string) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `things.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
})

/** Local workers, which only the embedded server has: as those that joined, except that the worker of a Run with engine `manifests` applies its objects. */
export const localWorkerRows: readonly Row[] = [
  ...[...objectRows, ...storeRows].filter(isOfWorker).map(row => ({ ...row, user: `local-${row.user}` })),
  ...['roles', 'rolebindings'].map(plural => api('local-w1', false, create(rbac(`namespaces/${namespace}/${plural}`), emptyRole('new')))),
  api('local-w1', false, patch(core(`namespaces/${namespace}/configmaps/new`), {})),
  api('local-w1', false, get(core(`namespaces/${namespace}/secrets/db-input`))),
  ...rolesIn('local-w7', namespace),
  ...rolesIn('local-w7', 'of-objects'),
  api('local-w7', false, create(rbac('namespaces/other/roles'), emptyRole('new'))),
  api('local-w7', true, create(core(`namespaces/${namespace}/configmaps`), configMap('new', {}))),
  api('local-w7', false, create(core('namespaces/other/configmaps'), configMap('new', {}))),
  api('local-w7', false, patch(core('namespaces/other'), { metadata: ofObjects })),
  api('local-w7', false, create(core('namespaces/oarlock-system/configmaps'), configMap('new', {}))),
  api('local-w7', true, create(core(`namespaces/${namespace}/secrets`), ownSecret())),
  api('local-w7', true, applyObject(core(`namespaces/${namespace}/secrets/made`), ownSecret())),
  api('local-w7', false, create(core(`namespaces/${namespace}/secrets`), secret('new'))),
  api('local-w7', false, get(core(`namespaces/${namespace}/secrets/db-input`))),
  api('local-w7', false, patch(core(`namespaces/${namespace}/secrets/db-input`), { metadata: ofObjects })),
  // It would get a token that does not expire.
  api(
    'local-w7',
    false,
    create(core(`namespaces/${namespace}/secrets`), {
      ...ownSecret({ type: 'kubernetes.io/service-account-token' }),
      metadata: { name: 'made', annotations: { ...ofObjects.annotations, 'kubernetes.io/service-account.name': 'default' } },
    }),
  ),
  api('local-w7', false, { method: 'POST', path: core(`namespaces/${namespace}/serviceaccounts/default/token`), body: tokenRequest }),
  api('local-w7', true, patch(core(`namespaces/${namespace}`), { metadata: ofObjects })),
  api('local-w7', false, patch(core(`namespaces/${namespace}`), { metadata: { labels: { team: 'a' } } })),
  api('local-w7', false, patch(core(`namespaces/${namespace}`), { metadata: { ownerReferences: [ownerReference] } })),
  api('local-w7', false, remove(core(`namespaces/${namespace}`))),
  api('local-w7', true, patch(core('namespaces/of-objects'), { metadata: { labels: { team: 'a' } } })),
  api('local-w7', true, create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition('shop.example'))),
  api('local-w7', false, create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition('oarlock.dev'))),
  api('local-w7', false, patch(core(`namespaces/${namespace}`), { metadata: { labels: { 'oarlock.dev/approval': 'Required' } } })),
  api('local-w7', false, patch(core('namespaces/guarded'), { metadata: { labels: { 'oarlock.dev/approval': null } } })),
  api('local-w7', true, remove(core('namespaces/of-objects'))),
  api('local-w7', false, remove(core('namespaces/guarded'))),
  api('local-w7', false, patch(inShop('stacks/web'), { spec: { suspend: false } })),
  api('local-w7', false, patch(inShop('runs/web-1/status'), { status: { phase: 'Succeeded' } })),
]
