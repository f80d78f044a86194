/** An account that wants more than RBAC grants it, and a client without any credential. */
import { runResource } from '../../../src/api/index.ts'
import { runOarlock } from '../../../test/support/run-program.ts'
import type { Attack } from '../attack.ts'
import { attackerNamespace, type Target, victimNamespace } from '../target.ts'

const own = '/apis/oarlock.dev/v1alpha1'
const patch = (body: object) => ({ body, contentType: 'application/merge-patch+json' })

/** Requests that only operators, or users of the victim's namespace, may send. */
function forbidden(target: Target): [string, string, object?][] {
  const victim = `/api/v1/namespaces/${victimNamespace}`
  const run = `${own}/namespaces/${victimNamespace}/runs`
  return [
    ['GET', '/backup'],
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
    ['POST', `/state/${victimNamespace}/web`, { version: 4, serial: 9 }],
    ['DELETE', `/state/${victimNamespace}/web`],
    ['LOCK', `/state/${victimNamespace}/web`, { ID: 'x' }],
    ['GET', `/logs/${victimNamespace}/web-1`],
    ['GET', run],
    ['PUT', `/state/${victimNamespace}/web/run/web-1/state`, { version: 4 }],
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
    ['DELETE', `/api/v1/namespaces/${victimNamespace}`],
  ]
}

async function answered(target: Target, token: string | undefined): Promise<string[]> {
  const gained: string[] = []
  for (const [method, path, body] of forbidden(target)) {
    const { status, text } = await target.send(method, path, { token, ...(body && { body }) })
    if (status < 400) gained.push(`${method} ${path}: ${status}`)
    gained.push(...target.secretsIn(text))
  }
  return gained
}

const anonymous: Attack = {
  name: 'anonymous-requests',
  actor: 'anonymous',
  promise: 'Anonymous access',
  attempt: async target => [
    ...(await answered(target, undefined)),
    ...(await answered(target, '')),
    ...(await answered(target, 'null')),
    ...(await answered(
      target,
      `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from('{"sub":"system:admin","groups":["system:masters"]}').toString('base64url')}.`,
    )),
  ],
}

const forgedTokens: Attack = {
  name: 'forged-tokens',
  actor: 'account',
  promise: 'Anonymous access',
  async attempt(target) {
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
  attempt: target => answered(target, target.outsiderToken),
}

const neighbour: Attack = {
  name: 'admin-of-another-namespace',
  actor: 'account',
  promise: 'Permissions',
  attempt: target => answered(target, target.authorToken),
}

const impersonation: Attack = {
  name: 'impersonation',
  actor: 'account',
  promise: 'Permissions',
  async attempt(target) {
    const headers: Record<string, string>[] = [
      { 'Impersonate-User': 'oarlock:admin', 'Impersonate-Group': 'system:masters' },
      { 'X-Remote-User': 'oarlock:admin', 'X-Remote-Group': 'system:masters' },
      { 'X-Forwarded-User': 'oarlock:admin', 'X-Forwarded-For': '127.0.0.1' },
      { Authorization: `Bearer ${target.authorToken}, Bearer x` },
      { Cookie: `token=${target.authorToken}` },
    ]
    const path = `/api/v1/namespaces/${victimNamespace}/secrets/login`
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
  async attempt(target) {
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
    const gained: string[] = []
    for (const [path, body] of requests) {
      const { status } = await target.send('POST', path, { token: target.authorToken, body })
      if (status < 400) gained.push(`wrote ${JSON.stringify(body).slice(0, 120)}`)
    }
    return gained
  },
}

const forgedRuns: Attack = {
  name: 'forged-runs',
  actor: 'account',
  promise: 'Identity of Runs',
  async attempt(target) {
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
    const token = target.authorToken
    const attempts: [string, Promise<{ status: number }>][] = [
      [
        'created a Run for a Stack of another namespace',
        target.send('POST', runs, { token, body: { apiVersion: 'oarlock.dev/v1alpha1', kind: 'Run', metadata: { name: 'forged' }, spec } }),
      ],
      ['reopened a Run', target.send('PATCH', `${path}/status`, { token, ...patch({ status: { phase: 'Planning', finishedAt: null } }) })],
      ['removed the status of a Run', target.send('PATCH', `${path}/status`, { token, ...patch({ status: null }) })],
      ['changed the worker of a Run', target.send('PATCH', path, { token, ...patch({ spec: { workerName: 'other' } }) })],
      ['changed the epoch of a Run', target.send('PATCH', path, { token, ...patch({ spec: { epoch: 2 ** 31 - 1 } }) })],
      [
        'changed the subject of a Run',
        target.send('PATCH', path, { token, ...patch({ spec: { stackRef: { uid: victim.metadata.uid } } }) }),
      ],
      ['changed what a Run executes', target.send('PATCH', path, { token, ...patch({ spec: { stack: { command: { apply: ['id'] } } } }) })],
      [
        'changed the number of Runs of a Stack',
        target.send('PATCH', `${own}/namespaces/${attackerNamespace}/stacks/${name}/status`, {
          token,
          ...patch({ status: { lastRunNumber: 2 ** 31 - 1 } }),
        }),
      ],
    ]
    const gained: string[] = []
    for (const [what, sent] of attempts) if ((await sent).status < 400) gained.push(what)
    await target.admin
      .resource(runResource)
      .get('forged', { namespace: attackerNamespace })
      .then(
        () => gained.push('a forged Run exists'),
        () => {},
      )
    return gained
  },
}

const epochs: Attack = {
  name: 'epoch-beyond-the-limit',
  actor: 'account',
  promise: 'Identity of Runs',
  async attempt(target) {
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
    if ((await create(2)).status >= 400) throw new Error('a valid Run was rejected, so this proves nothing')
    return accepted
  },
}

const approval: Attack = {
  name: 'approval-without-the-right',
  actor: 'account',
  promise: 'Approval',
  async attempt(target) {
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
    const { status: code } = await target.send('PATCH', `${own}/namespaces/${attackerNamespace}/stacks/${name}`, {
      token: editor,
      ...patch({ metadata: { annotations: { 'oarlock.dev/approved-plan': status?.plan?.digest } } }),
    })
    return code < 400 ? ['a user with edit only approved a plan'] : []
  },
}

const pathTraversal: Attack = {
  name: 'path-traversal',
  actor: 'account',
  promise: 'Permissions',
  async attempt(target) {
    const up = ['..', '%2e%2e', '%2E%2e', '..%2f..', '..%5c..', '%252e%252e', '.%00.', '....//']
    const paths = up.flatMap(dots => [
      `/logs/${attackerNamespace}/${dots}/${dots}/pki/admin-token`,
      `/logs/${dots}/${victimNamespace}/web-1`,
      `/state/${attackerNamespace}/${dots}/${victimNamespace}/web`,
      `/api/v1/namespaces/${attackerNamespace}/${dots}/${victimNamespace}/secrets/login`,
      `/api/v1/namespaces/${attackerNamespace}/secrets/${dots}/${dots}/${victimNamespace}/secrets/login`,
      `//logs/${victimNamespace}/web-1`,
      `/logs//${victimNamespace}/web-1`,
      `/LOGS/${victimNamespace}/web-1`,
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

const secretsInOutput: Attack = {
  name: 'secrets-in-logs',
  actor: 'stack author',
  promise: 'Secrets in output',
  async attempt(target) {
    const name = target.newName('masked')
    const value = 'correct-horse-battery-staple-91'
    await target.createSecret(name, { password: value, lines: 'first-line-of-the-key\nsecond-line-of-the-key\n' })
    const fill = (count: number) => `head -c ${count} /dev/zero | tr '\\0' x`
    const {
      log,
      run,
      name: stack,
    } = await target.runScript(
      `echo "$P"; printf '%s' "$P"; sleep 0.1; echo "$P$P"; ${[65_500, 65_530, 131_050].map(count => `${fill(count)}; printf '%s' "$P"; ${fill(20)}; echo`).join('; ')}
       printf 'corr'; sleep 0.2; echo 'ect-horse-battery-staple-91'; echo "$L"; echo "{\\"p\\":\\"$P\\"}"; echo "user:$P" | base64; printf '%s' "$P" | base64; echo "$P" >&2; echo "failed: $P" >&2; exit 1`,
      {
        env: [
          { name: 'P', secretKeyRef: { name, key: 'password' } },
          { name: 'L', secretKeyRef: { name, key: 'lines' } },
        ],
      },
    )
    const texts = {
      log,
      'the Run': JSON.stringify(run?.status),
      'the Stack': JSON.stringify((await target.author.get(stack)).status),
      'the log of oarlock up': target.output(),
    }
    const forms = [value, 'second-line-of-the-key', 'battery-staple', 'correct-horse', Buffer.from(value).toString('base64')]
    return Object.entries(texts).flatMap(([where, text]) => forms.filter(form => text.includes(form)).map(form => `${where} has ${form}`))
  },
}

const terminalEscapes: Attack = {
  name: 'terminal-escapes',
  slow: true,
  actor: 'stack author',
  promise: 'Secrets in output',
  async attempt(target) {
    const escapes =
      '\\033]0;owned\\007 \\033[2J \\033]52;c;b3duZWQ=\\007 \\302\\233 31m \\033P+q \\033[6n \\r overwritten \\b\\b \\342\\200\\256 rtl'
    const { name } = await target.runScript(`printf '${escapes}\\n'; printf 'failed ${escapes}\\n' >&2; exit 1`)
    const gained: string[] = []
    for (const args of [
      ['logs', `stack/${name}`],
      ['describe', 'stack', name],
      ['get', 'runs'],
      ['get', 'stack', name],
    ]) {
      const { text } = await runOarlock([...args, '-n', attackerNamespace, '--kubeconfig', target.kubeconfig])
      // biome-ignore lint/suspicious/noControlCharactersInRegex: terminal escapes
      const found = /[\u0007\u0008\u001b\u009b]/.exec(text)
      if (found) gained.push(`oarlock ${args[0]} prints ${JSON.stringify(found[0])}`)
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
  secretsInOutput,
  terminalEscapes,
]
