// The rights on approvals on the embedded server, and what it records. The decisions of both servers are in test/rights/.
import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { annotations, type Stack, type StackSpec, stackResource } from '../src/api/index.ts'
import { startApiServer } from '../src/app/api-server/api-server.ts'
import { installOarlock } from '../src/app/controllers/install.ts'
import { roleBinding } from '../src/app/manifests/rule.ts'
import { type Client, configMapResource, namespaceResource } from '../src/kubernetes/client/index.ts'
import type { NewObject } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { runOarlock } from './support/run-program.ts'

const spec: StackSpec = { engine: 'command', approval: 'Manual', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] } }
const forged = { [annotations.approvedBy]: 'mallory', [annotations.approvedAt]: '2001-01-01T00:00:00Z' }
const approval = { [annotations.approvedPlan]: 'sha256:1', ...forged }

let close: () => Promise<void>
let admin: Client
let auditLog: string
let changeAs: (user: string, namespace: string, name: string, priority: number) => Promise<void>
const users: Record<string, Client> = {}
const kubeconfigs: Record<string, string> = {}

/** Users by name, with the ClusterRoles that they have in every namespace of the tests. */
const roles: Readonly<Record<string, readonly string[]>> = {
  ed: ['oarlock:view', 'oarlock:edit'],
  ann: ['oarlock:view', 'oarlock:edit', 'oarlock:approver'],
  bob: ['oarlock:view', 'oarlock:edit', 'oarlock:approver'],
  zoe: ['oarlock:approver'],
  dan: ['oarlock:destroyer', 'oarlock:approver'],
  kim: ['oarlock:destroyer'],
}

before(async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-approval-'))
  auditLog = join(dataDir, 'audit.log')
  const api = await startApiServer({ dataDir, listen: { host: '127.0.0.1', port: 0 }, audit: { path: auditLog } })
  admin = await api.connect({ name: 'root', groups: ['system:masters'] }, 'test')
  await installOarlock(admin)
  const namespaces = { shop: {}, bank: { 'oarlock.dev/approval': 'FourEyes' }, typo: { 'oarlock.dev/approval': 'required' } }
  for (const [name, labels] of Object.entries(namespaces)) await admin.resource(namespaceResource).create({ metadata: { name, labels } })
  for (const [name, bound] of Object.entries(roles)) {
    users[name] = await api.connect({ name, groups: [] }, 'test')
    const { url, caCertificate } = api.server
    const cluster = { server: url, 'certificate-authority-data': Buffer.from(caCertificate).toString('base64') }
    const token = api.server.issueToken({ name, groups: [], ttlMs: 3_600_000 })
    const named = {
      clusters: [{ name, cluster }],
      users: [{ name, user: { token } }],
      contexts: [{ name, context: { cluster: name, user: name } }],
    }
    kubeconfigs[name] = join(dataDir, `${name}.kubeconfig`)
    writeFileSync(kubeconfigs[name], JSON.stringify({ apiVersion: 'v1', kind: 'Config', ...named, 'current-context': name }))
    for (const namespace of Object.keys(namespaces)) {
      for (const role of bound) {
        const binding = roleBinding(namespace, `${name}-${role.replace(':', '-')}`, role, [{ kind: 'User', name } as never])
        const resource = await admin.discover(binding.apiVersion, binding.kind)
        await admin.resource(resource).create(binding as NewObject<object>)
      }
    }
  }
  changeAs = async (user, namespace, name, priority) => {
    const client = await api.connect({ name: user, groups: ['system:masters'] }, 'test')
    await client.resource(stackResource).patch(name, { spec: { priority } }, { type: 'merge', namespace })
    await client.close()
  }
  close = async () => {
    await Promise.all([admin, ...Object.values(users)].map(client => client.close()))
    await api.server.close({ graceMs: 200 })
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 })
  }
})
after(() => close())

const as = (user: string) => users[user]!.resource(stackResource)
const create = async (namespace: string, name: string, user = 'ed', more: object = {}) =>
  await as(user).create({ metadata: { name, namespace, annotations: more as Record<string, string> }, spec })
/** Acts as the controller: a plan of the Stack as it is now awaits approval. */
async function awaitApproval(namespace: string, name: string, digest = 'sha256:1'): Promise<void> {
  const stacks = admin.resource(stackResource)
  const { generation = 1 } = (await stacks.get(name, { namespace })).metadata
  const plan = { digest, runName: `${name}-1`, generation, revision: 'r', inputsDigest: 'i', add: 1, change: 0, destroy: 0 }
  await stacks.patchStatus(name, { status: { plan } }, { namespace })
}
const annotate = async (user: string, namespace: string, name: string, values: Record<string, string | null>): Promise<Stack> =>
  (await as(user).patch(name, { metadata: { annotations: values as Record<string, string> } }, { type: 'merge', namespace })) as Stack
const change = async (user: string, namespace: string, name: string, priority: number): Promise<Stack> =>
  (await as(user).patch(name, { spec: { priority } }, { type: 'merge', namespace })) as Stack
const noteOf = ({ metadata }: Pick<Stack, 'metadata'>, key: keyof typeof annotations) => metadata.annotations?.[annotations[key]]

const missingRight =
  /forbidden: approving a plan needs the permission to update stacks\/approval, granted by the ClusterRoles oarlock:approver and admin$/m

describe('an approval', () => {
  test('has the user and the time of the server, whatever the client claims', async () => {
    await create('shop', 'recorded')
    await awaitApproval('shop', 'recorded')
    const before = Date.now()
    const approved = await annotate('zoe', 'shop', 'recorded', approval)
    equal(noteOf(approved, 'approvedPlan'), 'sha256:1')
    equal(noteOf(approved, 'approvedBy'), 'zoe')
    const at = Date.parse(noteOf(approved, 'approvedAt') ?? '')
    ok(at >= before && at <= Date.now())

    const again = await annotate('ann', 'shop', 'recorded', { [annotations.approvedAt]: 'again' })
    equal(noteOf(again, 'approvedBy'), 'ann')
    ok(Date.parse(noteOf(again, 'approvedAt') ?? '') >= at)
  })

  test('is in the audit log with the plan and its Run, and a rejected one with the reason', async () => {
    await create('shop', 'audited')
    await awaitApproval('shop', 'audited')
    await rejects(annotate('ed', 'shop', 'audited', approval), missingRight)
    await annotate('zoe', 'shop', 'audited', approval)
    const events = await eventually(
      () =>
        readFileSync(auditLog, 'utf8')
          .split('\n')
          .filter(line => line.includes('"audited"') && line.includes('"verb":"patch"')),
      lines => lines.length === 3,
    )
    const [, denied, approved] = events.map(line => JSON.parse(line) as { user: { username: string }; annotations: Record<string, string> })
    equal(denied?.annotations['authorization.k8s.io/decision'], 'forbid')
    match(denied?.annotations['authorization.k8s.io/reason'] ?? '', missingRight)
    equal(approved?.user.username, 'zoe')
    deepEqual(approved?.annotations, { 'oarlock.dev/approved-plan': 'sha256:1', 'oarlock.dev/approved-run': 'audited-1' })
  })

  test('needs the right, through every kind of write', async () => {
    const stack = await create('shop', 'guarded')
    const { name, namespace } = stack.metadata
    await rejects(annotate('ed', 'shop', 'guarded', approval), missingRight)
    const withApproval = { ...stack, metadata: { ...stack.metadata, annotations: { ...stack.metadata.annotations, ...approval } } }
    await rejects(as('ed').update(withApproval), missingRight)
    await rejects(as('ed').apply({ metadata: { name, namespace, annotations: approval }, spec }, { force: true }), missingRight)
    const path = `${annotations.approvedPlan}`.replace('/', '~1')
    const operations = [{ op: 'add', path: `/metadata/annotations/${path}`, value: 'sha256:1' }]
    await rejects(
      users.ed!.request({
        method: 'PATCH',
        path: `/apis/oarlock.dev/v1alpha1/namespaces/shop/stacks/guarded`,
        headers: { 'content-type': 'application/json-patch+json' },
        body: operations,
      }),
      missingRight,
    )
    await rejects(create('shop', 'approved-from-the-start', 'ed', approval), missingRight)
    // The name of its user alone is no approval, and is not kept.
    equal(noteOf(await annotate('ed', 'shop', 'guarded', forged), 'approvedBy'), undefined)
    equal(noteOf((await as('ed').get('guarded', { namespace: 'shop' })) as Stack, 'approvedPlan'), undefined)
  })

  test('is withdrawn without the right, but not changed', async () => {
    await create('shop', 'withdrawn')
    await awaitApproval('shop', 'withdrawn')
    const approved = await annotate('zoe', 'shop', 'withdrawn', approval)
    await rejects(annotate('ed', 'shop', 'withdrawn', { [annotations.approvedBy]: 'ed' }), missingRight)
    await rejects(annotate('ed', 'shop', 'withdrawn', { [annotations.approvedPlan]: 'sha256:2' }), missingRight)
    // An update with what was read keeps it.
    await as('ed').update({ ...approved, spec: { ...approved.spec, priority: 3 } })
    const withdrawn = await annotate('ed', 'shop', 'withdrawn', { [annotations.approvedPlan]: null })
    deepEqual([noteOf(withdrawn, 'approvedBy'), noteOf(withdrawn, 'approvedAt')], [undefined, undefined])
  })

  test('of another plan than the one that awaits it is rejected, and the message names that one', async () => {
    await rejects(
      create('shop', 'early', 'ann', approval),
      /plan "sha256:1" does not await approval, and no other plan of this Stack does: "oarlock describe stack early -n shop" shows its state$/,
    )
    await create('shop', 'early')
    const none = /does not await approval, and no other plan of this Stack does/
    await rejects(annotate('zoe', 'shop', 'early', approval), none)
    await awaitApproval('shop', 'early', 'sha256:2')
    await rejects(
      annotate('zoe', 'shop', 'early', approval),
      /plan "sha256:1" does not await approval: plan "sha256:2" of Run early-1 does; "oarlock approve early -n shop" shows and approves it$/,
    )
    // A change of the spec outdates the plan, in the same write and until the controller has seen it.
    const second = { [annotations.approvedPlan]: 'sha256:2' }
    const both = { metadata: { annotations: second }, spec: { priority: 7 } }
    await rejects(as('ann').patch('early', both, { type: 'merge', namespace: 'shop' }), none)
    await change('ed', 'shop', 'early', 1)
    await rejects(annotate('zoe', 'shop', 'early', second), none)
    await awaitApproval('shop', 'early', 'sha256:2')
    equal(noteOf(await annotate('zoe', 'shop', 'early', second), 'approvedPlan'), 'sha256:2')
  })
})

describe('a rejection', () => {
  const rejection = {
    [annotations.rejectedPlan]: 'sha256:1',
    [annotations.rejectedBy]: 'mallory',
    [annotations.rejectionReason]: 'the subnet is in use',
  }
  const missing =
    /forbidden: rejecting a plan needs the permission to update stacks\/approval, granted by the ClusterRoles oarlock:approver and admin$/m

  test('needs the right, and has the user and the time of the server', async () => {
    await create('shop', 'rejected')
    await rejects(annotate('zoe', 'shop', 'rejected', rejection), /plan "sha256:1" does not await approval/)
    await awaitApproval('shop', 'rejected')
    await rejects(annotate('ed', 'shop', 'rejected', rejection), missing)
    const rejected = await annotate('zoe', 'shop', 'rejected', rejection)
    equal(noteOf(rejected, 'rejectedBy'), 'zoe')
    equal(noteOf(rejected, 'rejectionReason'), 'the subnet is in use')
    ok(Date.parse(noteOf(rejected, 'rejectedAt') ?? '') <= Date.now())
    await rejects(annotate('ed', 'shop', 'rejected', { [annotations.rejectionReason]: 'another one' }), missing)
    const withdrawn = await annotate('ed', 'shop', 'rejected', { [annotations.rejectedPlan]: null })
    for (const key of ['rejectedBy', 'rejectedAt', 'rejectionReason'] as const) equal(noteOf(withdrawn, key), undefined)
  })

  test('is given by the author too, and its plan is not approved afterwards', async () => {
    await create('bank', 'rejected', 'ann')
    await awaitApproval('bank', 'rejected')
    await annotate('ann', 'bank', 'rejected', rejection)
    const recorded = { digest: 'sha256:1', runName: 'rejected-1', at: '2026-01-01T00:00:00Z' }
    await admin.resource(stackResource).patchStatus('rejected', { status: { rejection: recorded } }, { namespace: 'bank' })
    await rejects(
      annotate('zoe', 'bank', 'rejected', approval),
      /plan "sha256:1" was rejected: "oarlock plan rejected -n bank" makes another one$/,
    )
  })
})

describe('the author of a change', () => {
  test('is recorded by the server', async () => {
    const created = await create('shop', 'authored', 'ed', { [annotations.changedBy]: '["mallory"]', [annotations.requestedBy]: 'mallory' })
    deepEqual([noteOf(created, 'changedBy'), noteOf(created, 'requestedBy')], ['["ed"]', undefined])
    equal(noteOf(await annotate('ed', 'shop', 'authored', { [annotations.changedBy]: '[]' }), 'changedBy'), '["ed"]')
    equal(noteOf(await change('ann', 'shop', 'authored', 1), 'changedBy'), '["ed","ann"]')
    equal(noteOf(await annotate('bob', 'shop', 'authored', { [annotations.requestedRun]: 'plan:1' }), 'requestedBy'), '["bob"]')
    // Applied: the changes before are no longer part of a plan.
    const { generation = 1 } = created.metadata
    const applied = { generation: generation + 1, revision: 'r', inputsDigest: 'i', at: '2026-01-01T00:00:00Z', runName: 'authored-1' }
    await admin.resource(stackResource).patchStatus('authored', { status: { applied, handledRequest: 'plan:1' } }, { namespace: 'shop' })
    const next = await change('bob', 'shop', 'authored', 2)
    deepEqual([noteOf(next, 'changedBy'), noteOf(next, 'requestedBy')], ['["bob"]', undefined])
  })

  for (const namespace of ['bank', 'typo'])
    test(`approves nothing in a namespace that requires a second user (${namespace})`, async () => {
      await create(namespace, 'vault', 'ann')
      const own = new RegExp(
        'requires another user to approve \\(label oarlock.dev/approval\\), and user "ann" is an author of its spec: ask a user other than "ann"' +
          `(, "ed")? with the permission to update stacks/approval, granted by .*, to run "oarlock approve vault -n ${namespace}"$`,
      )
      await rejects(annotate('ann', namespace, 'vault', approval), own)
      // Nor in one write with the change, nor after another user's change on top of it.
      const both = { metadata: { annotations: approval }, spec: { priority: 7 } }
      await rejects(as('ann').patch('vault', both, { type: 'merge', namespace }), own)
      await change('ed', namespace, 'vault', 1)
      await rejects(annotate('ann', namespace, 'vault', approval), own)
      await awaitApproval(namespace, 'vault')
      equal(noteOf(await annotate('bob', namespace, 'vault', approval), 'approvedBy'), 'bob')

      await annotate('bob', namespace, 'vault', { [annotations.requestedRun]: 'plan:1' })
      await rejects(annotate('bob', namespace, 'vault', { [annotations.approvedPlan]: 'sha256:2' }), /user "bob" requested the Run: ask/)
      equal(noteOf(await annotate('zoe', namespace, 'vault', approval), 'approvedBy'), 'zoe')
      const root = admin.resource(stackResource)
      await root.patch('vault', { spec: { priority: 9 } }, { type: 'merge', namespace })
      const byRoot = root.patch('vault', { metadata: { annotations: approval } }, { type: 'merge', namespace })
      await rejects(byRoot, /user "root" is an author of its spec/)
    })

  const requested = /user "ann" requested the Run: ask a user other than ("\w+", )*"ann"/
  const setStatus = async (name: string, status: object) =>
    await admin.resource(stackResource).patchStatus(name, { status }, { namespace: 'bank' })
  const request = async (user: string, name: string, value: string | null) =>
    await annotate(user, 'bank', name, { [annotations.requestedRun]: value })
  const run = (number: number, phase: string) => ({ name: `run-${number}`, type: 'Plan', phase, reason: 'Requested' })
  const appliedGeneration = (generation: number) => ({
    applied: { generation, revision: 'r', inputsDigest: 'i', at: '2026-01-01T00:00:00Z', runName: 'run-1' },
  })

  test('who requested a Run does not approve its plan after removing the request', async () => {
    await create('bank', 'removed')
    await request('ann', 'removed', 'plan:1')
    equal(noteOf(await request('ann', 'removed', null), 'requestedBy'), '["ann"]')
    await rejects(annotate('ann', 'bank', 'removed', approval), requested)
    // Nor by a removal, a request or an empty request in one write with the approval.
    await rejects(annotate('ann', 'bank', 'removed', { ...approval, [annotations.requestedRun]: '' }), requested)
    await awaitApproval('bank', 'removed')
    equal(noteOf(await annotate('bob', 'bank', 'removed', approval), 'approvedBy'), 'bob')
  })

  test('who requested a Run does not approve its plan after the request of another user', async () => {
    await create('bank', 'replaced')
    await request('ann', 'replaced', 'plan:1')
    await setStatus('replaced', { handledRequest: 'plan:1', lastRun: run(1, 'Running') })
    await request('bob', 'replaced', 'plan:2')
    await rejects(annotate('ann', 'bank', 'replaced', approval), requested)
    // The status still is that of an earlier Run: a handled value must not be set again.
    await setStatus('replaced', { lastRun: run(1, 'Succeeded') })
    await rejects(request('ann', 'replaced', 'plan:1'), /was already handled: set another value to request another Run/)

    // Both Runs ended without a plan: the next request is another matter.
    await setStatus('replaced', { handledRequest: 'plan:2', lastRun: run(2, 'Succeeded') })
    equal(noteOf(await request('bob', 'replaced', 'plan:3'), 'requestedBy'), '["bob"]')
    await awaitApproval('bank', 'replaced')
    equal(noteOf(await annotate('ann', 'bank', 'replaced', approval), 'approvedBy'), 'ann')
  })

  test('who requested a Run does not approve its plan while it remains', async () => {
    await create('bank', 'remains')
    await request('ann', 'remains', 'plan:1')
    const plan = { digest: 'sha256:1', runName: 'run-1', generation: 1, revision: 'r', inputsDigest: 'i', add: 1, change: 0, destroy: 0 }
    await setStatus('remains', { handledRequest: 'plan:1', lastRun: run(1, 'Succeeded'), plan })
    await request('bob', 'remains', 'plan:2')
    await rejects(annotate('ann', 'bank', 'remains', approval), requested)
  })

  test('of a destruction is not given by a user who deleted the Stack, or decided what is destroyed', async () => {
    const stack = await create('bank', 'doomed', 'ann')
    const held = { ...stack, metadata: { ...stack.metadata, finalizers: ['example.com/hold'] } }
    await as('ed').update(held)
    equal(noteOf(await annotate('ed', 'bank', 'doomed', { [annotations.deletedBy]: '["zoe"]' }), 'deletedBy'), undefined)
    await as('dan').delete('doomed', { namespace: 'bank' })
    const deleted = await as('dan').get('doomed', { namespace: 'bank' })
    equal(noteOf(deleted, 'deletedBy'), '["dan"]')
    await awaitApproval('bank', 'doomed')
    const approve = async (user: string) => await annotate(user, 'bank', 'doomed', approval)
    await rejects(approve('dan'), /user "dan" deleted the Stack, or changed it since: ask a user other than "dan" with the permission/)

    // A repeated deletion is recorded, too, and does not hide the first one. Neither is the record changed by a client.
    await as('kim').delete('doomed', { namespace: 'bank' })
    await change('bob', 'bank', 'doomed', 3)
    const forgedList = await annotate('ed', 'bank', 'doomed', { [annotations.deletedBy]: '[]' })
    equal(noteOf(forgedList, 'deletedBy'), '["dan","kim","bob"]')
    await rejects(approve('bob'), /user "bob" deleted the Stack, or changed it since: ask a user other than "dan", "kim", "bob" with/)

    // Its author may approve: what is destroyed is what was applied.
    await awaitApproval('bank', 'doomed')
    equal(noteOf(await approve('ann'), 'approvedBy'), 'ann')
  })

  test('of a destruction needs a recorded deletion where a second user is required', async () => {
    const owner = await admin.resource(configMapResource).create({ metadata: { name: 'owner', namespace: 'bank' } })
    const reference = { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: owner.metadata.uid }
    const metadata = { name: 'owned', namespace: 'bank', finalizers: ['example.com/hold'], ownerReferences: [reference] }
    await admin.resource(stackResource).create({ metadata, spec })
    await admin.resource(configMapResource).delete('owner', { namespace: 'bank' })
    await eventually(async () => (await as('ann').get('owned', { namespace: 'bank' })).metadata.deletionTimestamp, Boolean)
    await awaitApproval('bank', 'owned')
    const approve = async (user: string) => await annotate(user, 'bank', 'owned', approval)
    await rejects(approve('ann'), /but that user is not recorded: delete it again with "oarlock delete stack owned -n bank"$/)
    await as('dan').delete('owned', { namespace: 'bank' })
    equal(noteOf(await approve('ann'), 'approvedBy'), 'ann')
  })

  test('is an author until their own version is applied, not an earlier one', async () => {
    await create('bank', 'earlier')
    await setStatus('earlier', appliedGeneration(1))
    await change('ann', 'bank', 'earlier', 1)
    equal(noteOf(await change('bob', 'bank', 'earlier', 2), 'changedBy'), '["ann","bob"]')
    await rejects(annotate('ann', 'bank', 'earlier', approval), /user "ann" is an author of its spec: ask/)
  })

  test('stays an author however many users change the Stack after them', async () => {
    const root = admin.resource(stackResource)
    await create('bank', 'crowded', 'ann')
    await create('shop', 'crowded', 'ann')
    for (let i = 1; i <= 15; i++) await changeAs(`user-${i}`, 'bank', 'crowded', i)
    const tooMany = /more than 16 users changed this Stack or requested its Runs: approve or apply its plan first$/
    await rejects(change('bob', 'bank', 'crowded', 100), tooMany)
    await change('ann', 'bank', 'crowded', 101)
    await rejects(annotate('ann', 'bank', 'crowded', approval), /user "ann" is an author of its spec: ask/)
    await awaitApproval('bank', 'crowded')
    equal(noteOf(await annotate('bob', 'bank', 'crowded', approval), 'approvedBy'), 'bob')

    // Where no second user is required nothing is rejected, and the list does not grow.
    for (let i = 1; i <= 18; i++) await changeAs(`user-${i}`, 'shop', 'crowded', i)
    const { metadata } = await root.get('crowded', { namespace: 'shop' })
    deepEqual(JSON.parse(metadata.annotations?.[annotations.changedBy] ?? ''), [
      'ann',
      ...Array.from({ length: 16 }, (_, i) => `user-${i + 1}`),
    ])
    const bank = { metadata: { labels: { 'oarlock.dev/approval': 'FourEyes' as string | null } } }
    await admin.resource(namespaceResource).patch('shop', bank as never, { type: 'merge' })
    try {
      await rejects(
        annotate('zoe', 'shop', 'crowded', approval),
        /more than 16 users .*: let an administrator apply it without this label$/,
      )
    } finally {
      bank.metadata.labels['oarlock.dev/approval'] = null
      await admin.resource(namespaceResource).patch('shop', bank as never, { type: 'merge' })
    }
  })
})

test('commands report the missing right and the role that grants it, and record the user whom the server knows', async () => {
  const { metadata } = await create('shop', 'told')
  const plan = {
    digest: 'sha256:0123456789',
    runName: 'told-1',
    generation: 1,
    revision: 'r',
    inputsDigest: 'i',
    add: 1,
    change: 0,
    destroy: 0,
  }
  const awaiting = {
    type: 'AwaitingApproval',
    status: 'True' as const,
    reason: 'AwaitingApproval',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  }
  await admin.resource(stackResource).patchStatus('told', { status: { plan, conditions: [awaiting] } }, { namespace: 'shop' })
  const oarlock = async (user: string, ...args: string[]) => await runOarlock([...args, '-n', 'shop', '--kubeconfig', kubeconfigs[user]!])

  const denied = await oarlock('ed', 'approve', 'told', '--yes', '--plan', plan.digest)
  equal(denied.code, 4, denied.text)
  const hint = (role: string) => `[\\s\\S]*hint: the ClusterRole ${role} grants it in namespace shop`
  match(
    denied.stderr,
    new RegExp(`approving a plan needs the permission to update stacks/approval in namespace shop${hint('oarlock:approver')}`),
  )
  const destroyed = await oarlock('ed', 'destroy', 'told', '--yes', '--no-wait')
  equal(destroyed.code, 4, destroyed.text)
  match(destroyed.stderr, new RegExp(`needs the permission to delete stacks/destroy in namespace shop${hint('oarlock:destroyer')}`))
  await admin.resource(stackResource).patch('told', { spec: { deletion: 'Orphan' } }, { type: 'merge', namespace: 'shop' })
  const orphan = await oarlock('ed', 'destroy', 'told', '--yes', '--no-wait')
  equal(orphan.code, 4, orphan.text)
  match(
    orphan.stderr,
    /keeps its resources when it is deleted .* needs the permission to delete stacks\/destroy in namespace shop[\s\S]*hint: the ClusterRole oarlock:destroyer grants it/,
  )
  equal((await as('ed').get('told', { namespace: 'shop' })).spec.deletion, 'Orphan')
  // The change of the spec needs another plan.
  await awaitApproval('shop', 'told', plan.digest)
  const unseen = await oarlock('zoe', 'approve', 'told', '--yes')
  equal(unseen.code, 3, unseen.text)
  match(unseen.stderr, /the plan cannot be shown in full, so it is not approved: .*"told-1" not found/)
  equal(noteOf(await as('ed').get('told', { namespace: 'shop' }), 'approvedPlan'), undefined)
  const approved = await oarlock('zoe', 'approve', 'told', '--yes', '--plan', plan.digest)
  equal(approved.code, 0, approved.text)
  const { metadata: now } = await as('ed').get('told', { namespace: 'shop' })
  deepEqual(
    [now.uid, noteOf({ metadata: now }, 'approvedPlan'), noteOf({ metadata: now }, 'approvedBy')],
    [metadata.uid, plan.digest, 'zoe'],
  )
})

test('a Stack that is being deleted with deletion Orphan is not destroyed without the right', async () => {
  const stack = await create('shop', 'kept')
  await as('ed').update({
    ...stack,
    metadata: { ...stack.metadata, finalizers: ['example.com/hold'] },
    spec: { ...spec, deletion: 'Orphan' },
  })
  await as('ed').delete('kept', { namespace: 'shop' })
  const destroy = as('ed').patch('kept', { spec: { deletion: 'Destroy' } }, { type: 'merge', namespace: 'shop' })
  await rejects(destroy, ({ message }: Error) => {
    match(message, /being deleted destroys its resources and needs the permission to delete stacks\/destroy/)
    return true
  })
})

test('a user who may destroy requests plans of destruction and confirms them, and changes nothing else', async () => {
  await create('shop', 'planned')
  const patch = async (patch: object) => await as('kim').patch('planned', patch, { type: 'merge', namespace: 'shop' })
  const annotated = (values: object) => ({ metadata: { annotations: values } })
  await patch(annotated({ [annotations.requestedRun]: 'plan-destroy:1', [annotations.destroyPlan]: 'sha256:1' }))
  const denied = /can change only the annotations of an approval or a rejection, and those of a destruction with the permission for it$/
  await rejects(patch(annotated({ [annotations.requestedRun]: 'apply:1' })), denied)
  await rejects(patch(annotated({ [annotations.destroyPlan]: 'sha256:2', other: 'x' })), denied)
  await rejects(patch({ spec: { suspend: true } }), denied)
  await rejects(
    as('zoe').patch('planned', annotated({ [annotations.destroyPlan]: 'sha256:2' }), { type: 'merge', namespace: 'shop' }),
    denied,
  )

  // Once it is being deleted, an editor does not change what is destroyed.
  const stack = await as('ed').get('planned', { namespace: 'shop' })
  await as('ed').update({ ...stack, metadata: { ...stack.metadata, finalizers: ['example.com/hold'] } })
  await as('kim').delete('planned', { namespace: 'shop' })
  const changes: Record<string, string | null>[] = [{ [annotations.destroyPlan]: null }, { [annotations.destroySource]: 'Current' }]
  for (const values of changes)
    await rejects(annotate('ed', 'shop', 'planned', values), /what the deletion of a Stack destroys .* needs the permission/)
  await patch(annotated({ [annotations.destroyPlan]: 'sha256:2' }))
})

test('a protected Stack is deleted neither by name nor with a collection until spec.deletionProtection is false', async () => {
  const isProtected: StackSpec = { ...spec, deletion: 'Orphan', deletionProtection: true }
  await admin.resource(stackResource).create({ metadata: { name: 'protected', namespace: 'typo' }, spec: isProtected })
  const oarlock = async (...args: string[]) => await runOarlock([...args, '-n', 'typo', '--kubeconfig', kubeconfigs.ed!])
  const message = /spec\.deletionProtection of the Stack is true: set it to false to delete the Stack/
  for (const args of [
    ['delete', 'stack', 'protected'],
    ['destroy', 'protected', '--yes'],
  ]) {
    const rejected = await oarlock(...args)
    equal(rejected.code, 4, rejected.text)
    match(rejected.stderr, message)
  }
  const path = '/apis/oarlock.dev/v1alpha1/namespaces/typo/stacks'
  await rejects(users.ed!.request({ method: 'DELETE', path }), message)
  equal((await as('ed').get('protected', { namespace: 'typo' })).spec.deletionProtection, true)
  await as('ed').patch('protected', { spec: { deletionProtection: false } }, { type: 'merge', namespace: 'typo' })
  equal((await oarlock('delete', 'stack', 'protected')).code, 0)
  equal(await as('ed').getOrUndefined('protected', { namespace: 'typo' }), undefined)
})
