/** An account that wants more than RBAC grants it, and a client without any credential. */
import { runResource } from '../../../src/api/index.ts'
import type { Attack, Control } from '../attack.ts'
import { type ForbiddenRequest, sendForbidden } from '../forbidden-requests.ts'
import type { SendOptions } from '../send-request.ts'
import { attackerNamespace, type Target, victimNamespace } from '../target.ts'

const own = '/apis/oarlock.dev/v1alpha1'
const patch = (body: object) => ({ body, contentType: 'application/merge-patch+json' })

/** Requests that only operators, or users of the victim's namespace, may send. */
async function forbiddenRequests(target: Target): Promise<ForbiddenRequest[]> {
  const victim = `/api/v1/namespaces/${victimNamespace}`
  const runs = `${own}/namespaces/${victimNamespace}/runs`
  const [web, long] = [await target.victimRun('web'), await target.victimRun()]
  const requests: [string, string, object?][] = [
    ['GET', '/backup'],
    ['GET', '/state/backup'],
    ['GET', '/logs/backup'],
    ['GET', '/queue'],
    ['GET', '/metrics'],
    ['POST', '/encryption/rotate', {}],
    ['GET', `${victim}/secrets`],
    ['GET', `${victim}/secrets/login`],
    ['GET', `${victim}/secrets?watch=true&timeoutSeconds=1`],
    ['GET', '/api/v1/secrets'],
    ['GET', `/state/${victimNamespace}/web`],
    ['GET', `/state/${victimNamespace}/web/versions`],
    ['GET', `/state/${victimNamespace}/web/token`],
    ['POST', `/state/${victimNamespace}/spare`, { version: 4, serial: 9 }],
    ['DELETE', `/state/${victimNamespace}/spare`],
    ['LOCK', `/state/${victimNamespace}/spare`, { ID: 'x' }],
    ['UNLOCK', `/state/${victimNamespace}/spare`, { ID: 'x' }],
    ['GET', `/logs/${victimNamespace}/${web.metadata.name}`],
    ['GET', runs],
    ['GET', `${own}/namespaces/${victimNamespace}/stacks/web`],
    [
      'POST',
      `/api/v1/namespaces/oarlock-workers/serviceaccounts/default/token`,
      { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
    ],
    ['GET', '/api/v1/namespaces/oarlock-system/secrets'],
    [
      'POST',
      '/apis/authentication.k8s.io/v1/tokenreviews',
      { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: target.authorToken } },
    ],
    ['DELETE', victim],
  ]
  const headers = { 'oarlock-epoch': String(long.spec.epoch) }
  const state = `/state/${victimNamespace}/long/run/${long.metadata.name}/state`
  const token = await target.victimWorkerToken()
  return [
    ...requests.map(([method, path, body]) => ({ what: `${method} ${path}`, method, path, ...(body && { options: { body } }) })),
    { what: 'read the state of a Run', method: 'GET', path: state, options: { headers }, allowed: { token } },
    {
      what: 'wrote the state of a Run',
      method: 'PUT',
      path: state,
      options: { headers, body: { text: 'of its worker' } },
      allowed: { token },
    },
  ]
}

const sendAll = async (target: Target, tokens: readonly (string | undefined)[], control: Control): Promise<string[]> => {
  const requests = await forbiddenRequests(target)
  const gained: string[] = []
  for (const [index, token] of tokens.entries())
    gained.push(...(await sendForbidden(target, token, requests, index === 0 ? control : undefined)))
  return gained
}

const anonymous: Attack = {
  name: 'anonymous-requests',
  actor: 'anonymous',
  promise: 'Anonymous access',
  attempt: (target, control) => {
    const encode = (text: string) => Buffer.from(text).toString('base64url')
    const unsigned = `${encode('{"alg":"none"}')}.${encode('{"sub":"system:admin","groups":["system:masters"]}')}.`
    return sendAll(target, [undefined, '', 'null', unsigned], control)
  },
}

const forgedTokens: Attack = {
  name: 'forged-tokens',
  actor: 'account',
  promise: 'Anonymous access',
  async attempt(target, control) {
    const [header = '', claims = '', signature = ''] = target.authorToken.split('.')
    const decoded = JSON.parse(Buffer.from(claims, 'base64url').toString()) as Record<string, unknown>
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const admin = encode({ ...decoded, sub: 'system:serviceaccount:kube-system:admin', groups: ['system:masters'] })
    const later = encode({ ...decoded, exp: 4_000_000_000 })
    const tokens = [
      `${encode({ alg: 'none' })}.${admin}.`,
      `${encode({ alg: 'HS256' })}.${admin}.${signature}`,
      `${header}.${admin}.${signature}`,
      `${header}.${later}.${signature}`,
      `${header}.${claims}.`,
      `${header}.${claims}.${'A'.repeat(86)}`,
      `${header}.${claims}.${signature}.${signature}`,
      `${encode({ ...(JSON.parse(Buffer.from(header, 'base64url').toString()) as object), kid: '../../../../dev/null' })}.${claims}.${signature}`,
    ]
    const path = `/api/v1/namespaces/${attackerNamespace}/secrets`
    const { status: valid } = await target.send('GET', path, { token: target.authorToken })
    control(valid === 200, `the valid token is answered with ${valid}`)
    const statuses = await Promise.all(
      tokens.map(token =>
        target.send('GET', path, { token }).then(
          ({ status }) => status,
          () => 0,
        ),
      ),
    )
    return statuses.flatMap((status, index) => (status < 400 && status > 0 ? [`token ${index} was accepted`] : []))
  },
}

const withoutRights: Attack = {
  name: 'account-without-rights',
  actor: 'account',
  promise: 'Permissions',
  attempt: (target, control) => sendAll(target, [target.outsiderToken], control),
}

const neighbour: Attack = {
  name: 'admin-of-another-namespace',
  actor: 'account',
  promise: 'Permissions',
  attempt: (target, control) => sendAll(target, [target.authorToken], control),
}

const impersonation: Attack = {
  name: 'impersonation',
  actor: 'account',
  promise: 'Permissions',
  async attempt(target, control) {
    const headers: Record<string, string>[] = [
      { 'Impersonate-User': 'oarlock:admin', 'Impersonate-Group': 'system:masters' },
      { 'X-Remote-User': 'oarlock:admin', 'X-Remote-Group': 'system:masters' },
      { 'X-Forwarded-User': 'oarlock:admin', 'X-Forwarded-For': '127.0.0.1' },
      { Authorization: `Bearer ${target.authorToken}, Bearer x` },
      { Cookie: `token=${target.authorToken}` },
    ]
    const path = `/api/v1/namespaces/${victimNamespace}/secrets/login`
    const { text: allowed } = await target.send('GET', path, { token: target.operatorToken })
    control(target.secretsIn(allowed).length > 0, 'the operator does not read the Secret')
    const gained: string[] = []
    for (const more of headers) {
      const { status, text } = await target.send('GET', path, { token: target.authorToken, headers: more })
      if (status < 400) gained.push(`${Object.keys(more)[0]}: ${status}`)
      gained.push(...target.secretsIn(text))
    }
    return gained
  },
}

const escalation: Attack = {
  name: 'own-roles',
  actor: 'account',
  promise: 'Permissions',
  async attempt(target, control) {
    const rbac = '/apis/rbac.authorization.k8s.io/v1'
    const subjects = [{ kind: 'ServiceAccount', name: 'author', namespace: attackerNamespace }]
    const roleRef = (name: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name })
    const kind = (name: string, more: object) => ({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: name,
      metadata: { name: target.newName('role') },
      ...more,
    })
    const binder = { apiGroups: ['oarlock.dev'], resources: ['runs/binding'], verbs: ['*'] }
    const requests: [string, object][] = [
      [`${rbac}/namespaces/${attackerNamespace}/roles`, kind('Role', { rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }] })],
      [`${rbac}/namespaces/${attackerNamespace}/roles`, kind('Role', { rules: [binder] })],
      [`${rbac}/namespaces/${attackerNamespace}/rolebindings`, kind('RoleBinding', { roleRef: roleRef('cluster-admin'), subjects })],
      [`${rbac}/namespaces/${attackerNamespace}/rolebindings`, kind('RoleBinding', { roleRef: roleRef('oarlock:controller'), subjects })],
      [`${rbac}/clusterrolebindings`, kind('ClusterRoleBinding', { roleRef: roleRef('view'), subjects })],
      [`${rbac}/clusterroles`, kind('ClusterRole', { rules: [] })],
    ]
    return await sendForbidden(
      target,
      target.authorToken,
      requests.map(([path, body]) => ({ what: `wrote ${JSON.stringify(body).slice(0, 120)}`, method: 'POST', path, options: { body } })),
      control,
    )
  },
}

const forgedRuns: Attack = {
  name: 'forged-runs',
  actor: 'account',
  promise: 'Identity of Runs',
  async attempt(target, control) {
    const victim = await target.victim.get('web')
    const runs = `${own}/namespaces/${attackerNamespace}/runs`
    const spec = {
      ...{ type: 'Apply', epoch: 2 ** 31 - 1, revision: 'r', inputsDigest: 'i', reason: 'NewGeneration', pool: 'attack', priority: 0 },
      stackRef: { name: 'web', uid: victim.metadata.uid, generation: 1 },
      stack: { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] } },
    }
    const { name } = await target.runScript('echo "{}" > $OARLOCK_STATE')
    const [ended] = await target.author.runsOf(name)
    const path = `${runs}/${ended?.metadata.name}`
    // No user may change these fields; the author may change another one.
    const cancel = { token: target.authorToken, ...patch({ spec: { cancel: true } }) }
    const change = (what: string, changed: object, at: string, allowed: SendOptions = {}): ForbiddenRequest => ({
      ...{ what, method: 'PATCH', path: at, options: patch(changed), allowed },
    })
    const gained = await sendForbidden(
      target,
      target.authorToken,
      [
        {
          what: 'created a Run for a Stack of another namespace',
          method: 'POST',
          path: runs,
          options: { body: { apiVersion: 'oarlock.dev/v1alpha1', kind: 'Run', metadata: { name: 'forged' }, spec } },
        },
        change('reopened a Run', { status: { phase: 'Planning', finishedAt: null } }, `${path}/status`),
        change('removed the status of a Run', { status: null }, `${path}/status`),
        change('changed the worker of a Run', { spec: { workerName: 'other' } }, path, cancel),
        change('changed the epoch of a Run', { spec: { epoch: 2 ** 31 - 1 } }, path, cancel),
        change('changed the subject of a Run', { spec: { stackRef: { uid: victim.metadata.uid } } }, path, cancel),
        change('changed what a Run executes', { spec: { stack: { command: { apply: ['id'] } } } }, path, cancel),
        change(
          'changed the number of Runs of a Stack',
          { status: { lastRunNumber: 2 ** 31 - 1 } },
          `${own}/namespaces/${attackerNamespace}/stacks/${name}/status`,
        ),
      ],
      control,
    )
    const forged = await target.admin.resource(runResource).getOrUndefined('forged', { namespace: attackerNamespace })
    return forged ? [...gained, 'a forged Run exists'] : gained
  },
}

const epochs: Attack = {
  name: 'epoch-beyond-the-limit',
  actor: 'account',
  promise: 'Identity of Runs',
  async attempt(target, control) {
    // Not even an administrator creates one that would fence a Stack forever.
    const { metadata } = await target.victim.get('web')
    const create = (epoch: number) =>
      target.send('POST', `${own}/namespaces/${victimNamespace}/runs?dryRun=All`, {
        token: target.operatorToken,
        body: {
          ...{ apiVersion: 'oarlock.dev/v1alpha1', kind: 'Run', metadata: { name: 'jump' } },
          spec: {
            ...{ type: 'Apply', epoch, revision: 'r', inputsDigest: 'i', reason: 'NewGeneration', pool: 'attack', priority: 0 },
            stackRef: { name: 'web', uid: metadata.uid, generation: 1 },
            stack: { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] } },
          },
        },
      })
    const accepted: string[] = []
    for (const epoch of [2 ** 31, 2 ** 53 - 1, 2 ** 53, 1e300, -1, 0, 1.5])
      if ((await create(epoch)).status < 400) accepted.push(`epoch ${epoch}`)
    control((await create(2)).status < 400, 'a valid Run is rejected')
    return accepted
  },
}

const approval: Attack = {
  name: 'approval-without-the-right',
  actor: 'account',
  promise: 'Approval',
  async attempt(target, control) {
    const name = target.newName('approval')
    const files = { 'plan.sh': 'exit 2', 'apply.sh': 'true' }
    await target.author.create(name, {
      engine: 'command',
      approval: 'Manual',
      pool: 'attack',
      source: { inline: { files } },
      command: { plan: ['sh', 'plan.sh'], apply: ['sh', 'apply.sh'] },
    })
    const { status } = await target.author.until(name, 'a plan that awaits approval', stack => stack.status?.plan !== undefined)
    const editor = await target.editorToken()
    const path = `${own}/namespaces/${attackerNamespace}/stacks/${name}`
    const options = patch({ metadata: { annotations: { 'oarlock.dev/approved-plan': status?.plan?.digest } } })
    const request = {
      what: 'a user with edit only approved a plan',
      method: 'PATCH',
      path,
      options,
      allowed: { token: target.authorToken },
    }
    return await sendForbidden(target, editor, [request], control)
  },
}

const pathTraversal: Attack = {
  name: 'path-traversal',
  actor: 'account',
  promise: 'Permissions',
  async attempt(target, control) {
    const log = `logs/${victimNamespace}/${(await target.victimRun('web')).metadata.name}`
    const secrets = `/api/v1/namespaces/${victimNamespace}/secrets/login`
    for (const path of [`/${log}`, `/state/${victimNamespace}/web`, secrets, '/backup']) {
      const { status, text } = await target.send('GET', path, { token: target.operatorToken })
      control(
        path === '/backup' ? status === 200 : target.secretsIn(text).length > 0,
        `the operator gets ${status} for ${path}, and no secret`,
      )
    }
    const up = ['..', '%2e%2e', '%2E%2e', '..%2f..', '..%5c..', '%252e%252e', '.%00.', '....//']
    const paths = up.flatMap(dots => [
      `/logs/${attackerNamespace}/${dots}/${dots}/pki/admin-token`,
      `/logs/${dots}/${log}`,
      `/state/${attackerNamespace}/${dots}/${victimNamespace}/web`,
      `/api/v1/namespaces/${attackerNamespace}/${dots}/${victimNamespace}/secrets/login`,
      `/api/v1/namespaces/${attackerNamespace}/secrets/${dots}/${dots}/${victimNamespace}/secrets/login`,
      `//${log}`,
      `/${log.replace('/', '//')}`,
      `/${log.replace('logs', 'LOGS')}`,
      `/state;x/${victimNamespace}/web`,
      `/healthz/${dots}/backup`,
      `/version/${dots}/api/v1/secrets`,
    ])
    const gained: string[] = []
    for (const path of new Set(paths))
      for (const token of [undefined, target.authorToken]) {
        const { text } = await target.send('GET', path, { token }).catch(() => ({ text: '' }))
        gained.push(...target.secretsIn(text).map(secret => `${path}: ${secret}`))
      }
    return gained
  },
}

export const accountAttacks: readonly Attack[] = [
  anonymous,
  forgedTokens,
  withoutRights,
  neighbour,
  impersonation,
  escalation,
  forgedRuns,
  epochs,
  approval,
  pathTraversal,
]
