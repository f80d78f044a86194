/** A worker, or who has its credential, that acts for others. */
import { joinTokens } from '../../../src/app/index.ts'
import { secretResource } from '../../../src/kubernetes/client/index.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { runOarlock } from '../../../test/support/run-program.ts'
import { type Attack, NotRunHere } from '../attack.ts'
import { attackerNamespace, type Target, victimNamespace } from '../target.ts'

const own = '/apis/oarlock.dev/v1alpha1'
const patch = (body: object) => ({ body, contentType: 'application/merge-patch+json' })

/** What no worker may do to Runs, workers and states of others. `worker` has the credential. */
async function actForOthers(target: Target, token: string, worker: string): Promise<string[]> {
  const run = await target.victimRun()
  const { name } = run.metadata
  const runs = `${own}/namespaces/${victimNamespace}/runs`
  const state = `/state/${victimNamespace}/long/run/${name}`
  const epoch = { 'oarlock-epoch': String(run.spec.epoch) }
  const object = (apiVersion: string, kind: string, metadata: object, more: object = {}) => ({ apiVersion, kind, metadata, ...more })
  const lease = (holder: string) => object('coordination.k8s.io/v1', 'Lease', { name: holder }, { spec: { holderIdentity: holder } })
  const leases = '/apis/coordination.k8s.io/v1/namespaces/oarlock-system/leases'
  const other = run.spec.workerName ?? ''
  const attempts: [string, string, string, Parameters<Target['send']>[2]?][] = [
    ['reported the result of a Run of another worker', 'PATCH', `${runs}/${name}/status`, patch({ status: { phase: 'Succeeded' } })],
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
    ['read the state of a Run of another worker', 'GET', `${state}/state`, { headers: epoch }],
    ['wrote the state of a Run of another worker', 'PUT', `${state}/state`, { headers: epoch, body: { version: 4, serial: 99 } }],
    ['read the inventory of a Run of another worker', 'GET', `${state}/inventory`, { headers: epoch }],
    ['locked the state of another Stack', 'POST', `${state}/lock`, { headers: epoch, body: {} }],
    ['read a state', 'GET', `/state/${victimNamespace}/web`],
    ['got the token of a Stack', 'GET', `/state/${victimNamespace}/web/token`],
    [
      'wrote to the log of a Run of another worker',
      'POST',
      `/logs/${victimNamespace}/${name}?offset=0`,
      { body: 'forged\n', contentType: 'text/plain' },
    ],
    ['read a log', 'GET', `/logs/${victimNamespace}/${name}`],
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
    ['took the Lease of the controller', 'PATCH', `${leases}/oarlock-controller`, patch({ spec: { holderIdentity: worker } })],
    ['deleted the Lease of another worker', 'DELETE', `${leases}/${other}?dryRun=All`],
    ['changed a WorkerPool', 'PATCH', `${own}/workerpools/attack`, patch({ spec: { allowHostNetwork: true } })],
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
  const gained: string[] = []
  for (const [what, method, path, options] of attempts) {
    const { status, text } = await target.send(method, path, { token, ...options })
    if (status < 400) gained.push(what)
    gained.push(...target.secretsIn(text))
  }
  return [...new Set(gained)]
}

/** @throws {NotRunHere} if an engine at level Process cannot read the credential of its worker. */
async function stolen(target: Target): Promise<{ token: string; worker: string }> {
  const credential = await target.stealWorkerToken()
  if (!credential) throw new NotRunHere('an engine at level Process found no credential of its worker')
  return credential
}

const stolenToken: Attack = {
  name: 'worker-token-of-an-engine',
  actor: 'stack author',
  promise: 'Workers',
  limit: "an engine runs as the same user as its worker and can read the worker's token in /proc",
  attempt: async target => ((await target.stealWorkerToken()) ? ['the credential of the worker, at level Process'] : []),
}

const localActs: Attack = {
  name: 'local-worker-acts-for-others',
  actor: 'local worker',
  promise: 'Workers',
  async attempt(target) {
    const { token, worker } = await stolen(target)
    return await actForOthers(target, token, worker)
  },
}

const localSecrets: Attack = {
  name: 'local-worker-reads-secrets',
  actor: 'local worker',
  promise: 'Workers',
  async attempt(target) {
    const { token } = await stolen(target)
    const paths = [`/api/v1/namespaces/${victimNamespace}/secrets/login`, `/api/v1/namespaces/${victimNamespace}/secrets/web-outputs`]
    const texts = await Promise.all(paths.map(path => target.send('GET', path, { token })))
    const decoded = texts.map(({ text }) =>
      Object.values((JSON.parse(text) as { data?: Record<string, string> }).data ?? {}).map(each => Buffer.from(each, 'base64').toString()),
    )
    return [...new Set(decoded.flat().flatMap(text => target.secretsIn(text)))]
  },
}

const localTokenSecret: Attack = {
  name: 'local-worker-makes-tokens',
  actor: 'local worker',
  promise: 'Workers',
  async attempt(target) {
    const { token } = await stolen(target)
    const name = target.newName('made-token')
    const body = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, annotations: { 'kubernetes.io/service-account.name': 'default' } },
      type: 'kubernetes.io/service-account-token',
    }
    await target.send('POST', `/api/v1/namespaces/${victimNamespace}/secrets`, { token, body })
    const made = await target.admin.resource(secretResource).getOrUndefined(name, { namespace: victimNamespace })
    return made?.data?.token ? ['a token of a ServiceAccount of another namespace'] : []
  },
}

const localObjects: Attack = {
  name: 'local-worker-writes-objects',
  actor: 'local worker',
  promise: 'Workers',
  async attempt(target) {
    const { token } = await stolen(target)
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: target.newName('planted') }, data: {} }
    const gained: string[] = []
    for (const namespace of [victimNamespace, 'kube-system', ...target.systemNamespaces]) {
      const { status } = await target.send('POST', `/api/v1/namespaces/${namespace}/configmaps?dryRun=All`, { token, body })
      if (status < 400) gained.push(`wrote a ConfigMap in ${namespace}`)
    }
    return [...new Set(gained)]
  },
}

const afterEnd: Attack = {
  name: 'local-worker-after-its-end',
  actor: 'local worker',
  promise: 'Credentials of workers',
  async attempt(target) {
    // A one-shot worker of the default pool.
    const credential = await target.stealOneShotToken()
    if (!credential) throw new NotRunHere('an engine at level Process found no credential of its worker')
    await target.untilWorkerDeleted(credential.worker)
    const path = `${own}/workerpools/default`
    const isInvalid = async () => (await target.send('GET', path, { token: credential.token })).status >= 400
    // The controller deletes the credential with its Worker.
    return await eventually(isInvalid, 'the credential to end', 30_000).then(
      () => [],
      () => ['the credential of a worker that has ended is accepted'],
    )
  },
}

const reopen: Attack = {
  name: 'worker-reopens-its-run',
  actor: 'local worker',
  promise: 'Identity of Runs',
  async attempt(target) {
    const { token } = await stolen(target)
    const { name } = await target.runScript(`echo '{"a":1}' > $OARLOCK_STATE`)
    const [run] = await target.author.runsOf(name)
    const path = `${own}/namespaces/${attackerNamespace}/runs/${run?.metadata.name}`
    const gained: string[] = []
    for (const phase of ['Queued', 'Assigned', 'Preparing', 'Planning', 'Applying', 'Failed'])
      if ((await target.send('PATCH', `${path}/status`, { token, ...patch({ status: { phase, finishedAt: null } }) })).status < 400)
        gained.push(`the phase is ${phase} again`)
    const headers = { 'oarlock-epoch': String(run?.spec.epoch) }
    const { status } = await target.send('GET', `/state/${attackerNamespace}/${name}/run/${run?.metadata.name}/state`, { token, headers })
    return status < 400 ? [...gained, 'the state of an ended Run'] : gained
  },
}

const replacedPlan: Attack = {
  name: 'worker-replaces-a-plan',
  actor: 'local worker',
  promise: 'Approval',
  async attempt(target) {
    const { token } = await stolen(target)
    const running = target.newName('plan')
    await target.author.create(running, {
      ...{ engine: 'command', pool: 'attack', timeout: '1m', source: { inline: { files: { a: '' } } } },
      command: { apply: ['sh', '-c', 'trap "exit 0" INT; while :; do sleep 0.1; done'] },
    })
    const run = await target.author.untilRun(running, 'the start', ({ status }) => status?.phase === 'Applying')
    const headers = { 'oarlock-epoch': String(run.spec.epoch) }
    const path = `/state/${attackerNamespace}/${running}/run/${run.metadata.name}/plan/sha256:${'0'.repeat(64)}`
    const put = (body: string) => target.send('PUT', path, { token, headers, body, contentType: 'application/octet-stream' })
    const first = await put('the plan that is shown')
    await put('another plan')
    const { text, status } = await target.send('GET', path, { token, headers })
    await target.author.patch(running, { spec: { suspend: true } })
    await target.author.runs.patch(run.metadata.name, { spec: { cancel: true } }, { type: 'merge', namespace: attackerNamespace })
    if (first.status >= 400 || status >= 400)
      throw new Error(`a plan could not be stored and read (${first.status}, ${status}), so this proves nothing`)
    return text === 'another plan' ? ['replaced a stored plan under its digest'] : []
  },
}

async function joinToken(target: Target, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runOarlock(['token', 'create', '--pool', 'edge', ...args, '--kubeconfig', target.kubeconfig])
  if (code !== 0) throw new Error(stderr)
  return stdout.trim()
}

async function join(target: Target, token: string, name?: string): Promise<{ worker: string; credential: string }> {
  const { bootstrapWorker } = await joinTokens()
  return await bootstrapWorker(target.url, target.certificate, token, { ...(name !== undefined && { name }) })
}

const joinedActs: Attack = {
  name: 'joined-worker-acts-for-others',
  actor: 'joined worker',
  promise: 'Workers',
  async attempt(target) {
    const { worker, credential } = await join(target, await joinToken(target, '--uses', '1'), 'spy')
    const gained = await actForOthers(target, credential, worker)
    const paths = [
      `/api/v1/namespaces/${victimNamespace}/secrets/login`,
      `${own}/namespaces/${victimNamespace}/stacks`,
      `${own}/runs`,
      `${own}/workers`,
      '/api/v1/namespaces',
    ]
    for (const path of paths) if ((await target.send('GET', path, { token: credential })).status < 400) gained.push(`GET ${path}`)
    return gained
  },
}

const reusedToken: Attack = {
  name: 'join-token-used-twice',
  actor: 'joined worker',
  promise: 'Workers',
  async attempt(target) {
    const token = await joinToken(target, '--uses', '1')
    const joined = await Promise.allSettled(Array.from({ length: 16 }, (_, index) => join(target, token, `copy${index}`)))
    const count = joined.filter(({ status }) => status === 'fulfilled').length
    if (count === 0) throw new Error('no worker joined, so this proves nothing')
    return count > 1 ? [`${count} workers joined with a token for one`] : []
  },
}

const forgedJoin: Attack = {
  name: 'join-with-a-forged-request',
  actor: 'anonymous',
  promise: 'Workers',
  async attempt(target) {
    const valid = await joinToken(target, '--uses', '1')
    const [prefix, id, secret = '', hash] = valid.split('.')
    const bodies: object[] = [
      { token: [prefix, id, secret.replace(/.$/, 'A').replace(/^./, 'B'), hash].join('.') },
      { token: [prefix, id, '', hash].join('.') },
      { token: [prefix, '../../x', secret, hash].join('.') },
      { token: { $ne: '' } },
      { token: [valid] },
      { token: valid, name: 'oarlock-controller' },
      { token: valid, name: '../../default' },
      { token: valid, name: 'a'.repeat(300) },
      { token: valid, labels: { 'oarlock.dev/pool': 'victim' } },
      { token: valid, labels: { gpu: 'yes' } },
    ]
    const gained: string[] = []
    for (const body of bodies) {
      const { status } = await target.send('POST', '/join', { body })
      if (status < 400) gained.push(`joined with ${JSON.stringify(body).slice(0, 60)}`)
    }
    if ((await target.send('POST', '/join', { body: { token: valid } })).status !== 200)
      throw new Error('the valid token was rejected, so this proves nothing')
    return gained
  },
}

const revoked: Attack = {
  name: 'revoked-worker',
  actor: 'joined worker',
  promise: 'Revocation',
  async attempt(target) {
    const { worker, credential } = await join(target, await joinToken(target), 'revoked')
    const path = `${own}/workerpools/edge`
    if ((await target.send('GET', path, { token: credential })).status !== 200) throw new Error('the credential was never valid')
    await target.admin.resource(secretResource).delete(`worker-credential-${worker}`, { namespace: 'oarlock-workers' })
    const gained: string[] = []
    if ((await target.send('GET', path, { token: credential })).status < 400) gained.push('a revoked credential is accepted')
    if ((await target.send('POST', '/join/renew', { token: credential, body: {} })).status < 400)
      gained.push('a revoked credential is renewed')
    return gained
  },
}

const unixSocket: Attack = {
  name: 'unix-socket-without-a-token',
  actor: 'anonymous',
  promise: 'Anonymous access',
  async attempt(target) {
    const gained: string[] = []
    for (const path of ['/api/v1/secrets', '/backup', `/state/${victimNamespace}/web`, `${own}/stacks`]) {
      const { status } = await target.send('GET', path, { socketPath: `${target.dataDir}/api.sock` })
      if (status < 400) gained.push(`GET ${path}: ${status}`)
    }
    return gained
  },
}

export const workerAttacks: readonly Attack[] = [
  stolenToken,
  localActs,
  localSecrets,
  localTokenSecret,
  localObjects,
  afterEnd,
  reopen,
  replacedPlan,
  joinedActs,
  reusedToken,
  forgedJoin,
  revoked,
  unixSocket,
]
