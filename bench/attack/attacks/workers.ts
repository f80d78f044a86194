/** A local worker, or who has its credential, that acts for others. */
import type { Run } from '../../../src/api/index.ts'
import { secretResource } from '../../../src/kubernetes/client/index.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { actForOthers } from '../act-for-others.ts'
import { type Attack, NotRunHere } from '../attack.ts'
import { sendForbidden } from '../forbidden-requests.ts'
import { attackerNamespace, type Target, victimNamespace } from '../target.ts'

const own = '/apis/oarlock.dev/v1alpha1'
const patch = (body: object) => ({ body, contentType: 'application/merge-patch+json' })

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
  limit: {
    sentence: "an engine runs as the same user as its worker and can read the worker's token in /proc",
    gained: ['the credential of its own worker'],
  },
  async attempt(target, control) {
    const stolen = await target.stealWorkerToken()
    control((await target.victimWorkerToken()) !== '', 'the environment of a worker has no credential')
    if (!stolen) return []
    const { items } = await target.author.runs.listAll({ namespace: attackerNamespace })
    const isOwn = items.some(({ spec }) => spec.workerName === stolen.worker)
    return [isOwn ? 'the credential of its own worker' : 'the credential of another worker']
  },
}

const localActs: Attack = {
  name: 'local-worker-acts-for-others',
  actor: 'local worker',
  promise: 'Workers',
  async attempt(target, control) {
    const { token, worker } = await stolen(target)
    return await actForOthers(target, token, worker, control)
  },
}

const localSecrets: Attack = {
  name: 'local-worker-reads-secrets',
  actor: 'local worker',
  promise: 'Workers',
  async attempt(target, control) {
    const { token } = await stolen(target)
    const paths = [`/api/v1/namespaces/${victimNamespace}/secrets/login`, `/api/v1/namespaces/${victimNamespace}/secrets/web-outputs`]
    const read = async (token: string, path: string): Promise<string[]> => {
      const { text } = await target.send('GET', path, { token })
      const { data = {} } = JSON.parse(text) as { data?: Record<string, string> }
      return Object.values(data).flatMap(value => target.secretsIn(Buffer.from(value, 'base64').toString()))
    }
    const gained: string[] = []
    for (const path of paths) {
      gained.push(...(await read(token, path)))
      control((await read(target.operatorToken, path)).length > 0, `the operator reads no secret in ${path}`)
    }
    return gained
  },
}

const localTokenSecret: Attack = {
  name: 'local-worker-makes-tokens',
  actor: 'local worker',
  promise: 'Workers',
  async attempt(target, control) {
    const { token } = await stolen(target)
    const secrets = `/api/v1/namespaces/${victimNamespace}/secrets`
    const create = async (credential: string): Promise<() => Promise<boolean>> => {
      const name = target.newName('made-token')
      const body = {
        ...{ apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/service-account-token' },
        metadata: { name, annotations: { 'kubernetes.io/service-account.name': 'default' } },
      }
      await target.send('POST', secrets, { token: credential, body })
      const get = () => target.admin.resource(secretResource).getOrUndefined(name, { namespace: victimNamespace })
      return async () => (await get())?.data?.token !== undefined
    }
    const hasToken = await create(token)
    const isMade = await eventually(await create(target.operatorToken), 'a token in the Secret of the operator', 10_000)
    control(isMade, 'the operator gets no token in a Secret either')
    return (await hasToken()) ? ['a token of a ServiceAccount of another namespace'] : []
  },
}

const localObjects: Attack = {
  name: 'local-worker-writes-objects',
  actor: 'local worker',
  promise: 'Workers',
  async attempt(target, control) {
    const { token } = await stolen(target)
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: target.newName('planted') }, data: {} }
    const namespaces = [...new Set([victimNamespace, ...target.systemNamespaces])]
    const requests = namespaces.map(namespace => ({
      what: `wrote a ConfigMap in ${namespace}`,
      method: 'POST',
      path: `/api/v1/namespaces/${namespace}/configmaps?dryRun=All`,
      options: { body },
    }))
    return await sendForbidden(target, token, requests, control)
  },
}

const afterEnd: Attack = {
  name: 'local-worker-after-its-end',
  actor: 'local worker',
  promise: 'Credentials of workers',
  async attempt(target, control) {
    // A one-shot worker of the default pool.
    const credential = await target.stealOneShotToken()
    if (!credential) throw new NotRunHere('an engine at level Process found no credential of its worker')
    await target.untilWorkerDeleted(credential.worker)
    const path = `${own}/workerpools/default`
    const { status } = await target.send('GET', path, { token: target.operatorToken })
    control(status === 200, `the operator gets ${status} for ${path}`)
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
  async attempt(target, control) {
    const { token } = await stolen(target)
    const name = target.newName('reopen')
    const run = await untilApplying(target, name)
    const runPath = `${own}/namespaces/${attackerNamespace}/runs/${run.metadata.name}`
    const report = async (status: object, query = '') =>
      (await target.send('PATCH', `${runPath}/status${query}`, { token, ...patch({ status }) })).status
    const headers = { 'oarlock-epoch': String(run.spec.epoch) }
    const readState = async () =>
      (await target.send('GET', `/state/${attackerNamespace}/${name}/run/${run.metadata.name}/state`, { token, headers })).status
    control((await report({ message: 'active' }, '?dryRun=All')) < 400, 'the worker cannot report the status of its active Run')
    control((await readState()) < 400, 'the worker cannot read the state of its active Run')
    await cancel(target, name, run)
    const gained: string[] = []
    for (const phase of ['Queued', 'Assigned', 'Preparing', 'Planning', 'Applying', 'Failed'])
      if ((await report({ phase, finishedAt: null })) < 400) gained.push(`the phase is ${phase} again`)
    return (await readState()) < 400 ? [...gained, 'the state of an ended Run'] : gained
  },
}

/** Creates a Stack whose Run, on a worker of pool `attack`, does not end. */
async function untilApplying(target: Target, name: string): Promise<Run> {
  await target.author.create(name, {
    ...{ engine: 'command', pool: 'attack', timeout: '1m', source: { inline: { files: { a: '' } } } },
    command: { apply: ['sh', '-c', 'trap "exit 0" INT; while :; do sleep 0.1; done'] },
  })
  return await target.author.untilRun(name, 'the start', ({ status }) => status?.phase === 'Applying')
}

async function cancel(target: Target, name: string, run: Run): Promise<void> {
  await target.author.patch(name, { spec: { suspend: true } })
  await target.author.runs.patch(run.metadata.name, { spec: { cancel: true } }, { type: 'merge', namespace: attackerNamespace })
  await target.author.untilRun(name, 'the end', ({ status }) => status?.finishedAt !== undefined)
}

const replacedPlan: Attack = {
  name: 'worker-replaces-a-plan',
  actor: 'local worker',
  promise: 'Approval',
  async attempt(target, control) {
    const { token } = await stolen(target)
    const running = target.newName('plan')
    const run = await untilApplying(target, running)
    const headers = { 'oarlock-epoch': String(run.spec.epoch) }
    const path = `/state/${attackerNamespace}/${running}/run/${run.metadata.name}/plan/sha256:${'0'.repeat(64)}`
    const put = (body: string) => target.send('PUT', path, { token, headers, body, contentType: 'application/octet-stream' })
    const first = await put('the plan that is shown')
    await put('another plan')
    const { text, status } = await target.send('GET', path, { token, headers })
    await cancel(target, running, run)
    control(first.status < 400 && status < 400, `a plan is stored with ${first.status}, and read with ${status}`)
    return text === 'another plan' ? ['replaced a stored plan under its digest'] : []
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
]
