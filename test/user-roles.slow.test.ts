/** Commands of users whom RoleBindings give Kubernetes' own roles `view`, `edit` and `admin`, and of one who may only read Stacks and Runs. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { serviceAccountResource } from '../src/kubernetes/client/index.ts'
import { isConditionTrue } from '../src/kubernetes/object/index.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { accountKubeconfig } from './support/role-process.ts'
import { runOarlock } from './support/run-program.ts'
import { StackFixture } from './support/stacks.ts'

const dataDir = makeDataDir()
let oarlock: OarlockProcess
let stacks: StackFixture

before(async () => {
  oarlock = await startOarlock(dataDir)
  const { client } = oarlock
  stacks = new StackFixture(client)
  const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/default'
  const rules = [{ apiGroups: ['oarlock.dev'], resources: ['stacks', 'runs'], verbs: ['get', 'list', 'watch'] }]
  await client.request({ method: 'POST', path: `${rbac}/roles`, body: { metadata: { name: 'reader' }, rules } })
  const authority = readFileSync(join(dataDir, 'pki', 'ca.crt'), 'utf8')
  for (const role of ['reader', 'view', 'edit', 'admin']) {
    await client.resource(serviceAccountResource).create({ metadata: { name: role, namespace: 'oarlock-system' } })
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: role === 'reader' ? 'Role' : 'ClusterRole', name: role }
    const subjects = [{ kind: 'ServiceAccount', name: role, namespace: 'oarlock-system' }]
    await client.request({ method: 'POST', path: `${rbac}/rolebindings`, body: { metadata: { name: role }, roleRef, subjects } })
    writeFileSync(join(dataDir, `${role}.kubeconfig`), await accountKubeconfig(client, role, authority))
  }
  await stacks.create('web', {
    engine: 'command',
    approval: 'Manual',
    source: { inline: { files: { a: 'a' } } },
    command: { plan: ['sh', '-c', 'echo "+ one"; exit 2'], apply: ['sh', '-c', 'echo "{}" > "$OARLOCK_STATE"'], destroy: ['true'] },
  })
  await stacks.until('web', 'AwaitingApproval', stack => isConditionTrue(stack.status?.conditions, 'AwaitingApproval'))
})
after(async () => {
  await oarlock?.stop()
  removeDirectory(dataDir)
})

const as = (user: string, ...args: string[]) => runOarlock([...args, '-n', 'default', '--kubeconfig', join(dataDir, `${user}.kubeconfig`)])

/** Each is rejected as forbidden, with the permission and the role that grants it. */
const forbidden: readonly (readonly [user: string, command: string, right: RegExp, role: string])[] = [
  ['reader', 'logs web', /cannot get resource "stacks\/log"/, 'oarlock:view'],
  ['reader', 'logs -f web', /cannot get resource "stacks\/log"/, 'oarlock:view'],
  ['reader', 'plan --run RUN', /cannot get resource "stacks\/plan"/, 'oarlock:view'],
  ['reader', 'plan web', /cannot patch resource "stacks"/, 'oarlock:edit'],
  ['reader', 'approve web --yes', /permission to update stacks\/approval/, 'oarlock:approver'],
  ['view', 'run web', /cannot patch resource "stacks"/, 'oarlock:edit'],
  ['view', 'suspend web', /cannot patch resource "stacks"/, 'oarlock:edit'],
  ['view', 'state list', /cannot get resource "stacks\/state"/, 'oarlock:admin'],
  ['view', 'state show web', /cannot get resource "stacks\/state"/, 'oarlock:admin'],
  ['view', 'delete stack/web', /cannot delete resource "stacks"/, 'oarlock:destroyer'],
  ['edit', 'state pull web', /cannot get resource "stacks\/state"/, 'oarlock:admin'],
  ['edit', 'state lock web', /cannot update resource "stacks\/state"/, 'oarlock:admin'],
  ['edit', 'state token web', /resource "stacks\/state"/, 'oarlock:admin'],
  ['edit', 'approve web --yes', /permission to update stacks\/approval/, 'oarlock:approver'],
  ['edit', 'destroy web --yes', /permission to delete stacks\/destroy/, 'oarlock:destroyer'],
]
for (const [user, command, right, role] of forbidden)
  test(`${user} without the permission: oarlock ${command}`, async () => {
    const [run] = await stacks.runsOf('web')
    const { code, stdout, stderr } = await as(user, ...command.replace('RUN', run?.metadata.name ?? '').split(' '))
    match(stderr, right)
    match(stderr, new RegExp(`^ *hint: the ClusterRole ${role} grants it in namespace default: kubectl create rolebinding NAME`, 'm'))
    deepEqual([code, stdout], [4, ''])
  })

test('an approver who cannot read the plan approves nothing, and learns which permission is missing', async () => {
  const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/default'
  const rules = [
    { apiGroups: ['oarlock.dev'], resources: ['stacks'], verbs: ['patch'] },
    { apiGroups: ['oarlock.dev'], resources: ['stacks/approval'], verbs: ['update'] },
  ]
  const metadata = { name: 'blind' }
  await oarlock.client.request({ method: 'POST', path: `${rbac}/roles`, body: { metadata, rules } })
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'blind' }
  const subjects = [{ kind: 'ServiceAccount', name: 'reader', namespace: 'oarlock-system' }]
  await oarlock.client.request({ method: 'POST', path: `${rbac}/rolebindings`, body: { metadata, roleRef, subjects } })
  const { code, stderr } = await as('reader', 'approve', 'web', '--yes')
  await oarlock.client.request({ method: 'DELETE', path: `${rbac}/rolebindings/blind` })
  match(stderr, /the plan cannot be shown in full, so it is not approved: .* cannot get resource "stacks\/plan"/)
  match(stderr, /hint: the ClusterRole oarlock:view grants it/)
  equal(code, 4)
  equal((await stacks.get('web')).metadata.annotations?.['oarlock.dev/approved-plan'], undefined)
})

test('view reads Stacks, logs and plans; edit requests plans; admin approves, reads states and destroys', async () => {
  const [run] = await stacks.runsOf('web')
  const succeeds = async (user: string, output: RegExp, ...args: string[]) => {
    const { code, text } = await as(user, ...args)
    equal(code, 0, `${user}: ${args.join(' ')}: ${text}`)
    match(text, output)
  }
  await succeeds('view', /^web +False +AwaitingApproval/m, 'get', 'stacks')
  await succeeds('view', /^\+ one$/m, 'logs', `run/${run?.metadata.name}`)
  await succeeds('view', /^\+ one$/m, 'plan', '--run', run?.metadata.name ?? '')
  await succeeds('edit', /web suspended/, 'suspend', 'web')
  await succeeds('edit', /web resumed/, 'resume', 'web')
  await succeeds('edit', /1 to add/, 'plan', 'web', '--timeout', '60s')
  // Until then an approval would be of the plan before, or a conflict.
  await stacks.until('web', 'the plan of edit', ({ status }) => status?.lastRunNumber === 2 && status.lastRun?.finishedAt !== undefined)
  await succeeds('admin', /web applied/, 'approve', 'web', '--yes', '--wait', '--timeout', '60s')
  await succeeds('admin', /^\{\}$/m, 'state', 'pull', 'web')
  // The plan that it shows awaits approval, which the same user may give.
  await succeeds('admin', /web destroyed/, 'destroy', 'web', '--yes', '--timeout', '60s')
})
