/** The deletion of a namespace with Stacks on a real kube-apiserver, which accepts no new object in it from then on. */
import { equal, match, rejects } from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { annotations, oarlockResources, type StackSpec, stackFinalizer, systemNamespace, workersNamespace } from '../src/api/index.ts'
import { applyManifests } from '../src/app/manifests/index.ts'
import { createClient, installKinds, namespaceResource } from '../src/kubernetes/client/index.ts'
import { isConditionTrue } from '../src/kubernetes/object/index.ts'
import { peerMissing, startPeer } from './conformance/peer.ts'
import { eventually } from './support/eventually.ts'
import { peerKubeconfig } from './support/peer-kubeconfig.ts'
import { runOarlock } from './support/run-program.ts'
import { condition, isReady, StackFixture } from './support/stacks.ts'
import { startControllers } from './support/start-controllers.ts'

const spec: StackSpec = { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] } }

test('kube-apiserver: a namespace with resources is deleted only if that is forced, and then its Stack names the ways out', {
  skip: peerMissing(),
}, async t => {
  const peer = await startPeer()
  t.after(() => peer.close())
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-namespace-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const kubeconfig = join(directory, 'kubeconfig')
  writeFileSync(kubeconfig, peerKubeconfig(peer))
  const cli = async (...args: string[]) => await runOarlock([...args, '-n', 'team', '--kubeconfig', kubeconfig])
  const client = await createClient({ cluster: { server: peer.url, token: peer.tokens.admin, insecureSkipTlsVerify: true } })
  t.after(() => client.close())
  const namespaces = client.resource(namespaceResource)
  for (const name of [systemNamespace, workersNamespace, 'team', 'empty']) await namespaces.create({ metadata: { name } })
  await installKinds(client, oarlockResources)
  await applyManifests(client)
  const manager = await startControllers(client, 'test')
  t.after(() => manager.stop())

  const stacks = new StackFixture(client, 'team')
  await stacks.create('kept', spec)
  await stacks.create('orphaned', { ...spec, deletion: 'Orphan' })
  const run = await stacks.untilRun('kept', 'creation', () => true)
  await stacks.runs.patch(
    run.metadata.name,
    { spec: { workerName: 'w', assignedAt: run.metadata.creationTimestamp } },
    { type: 'merge', namespace: 'team' },
  )
  const plan = { digest: 'd', add: 2, change: 0, destroy: 0 }
  const finishedAt = run.metadata.creationTimestamp
  await stacks.runs.patchStatus(
    run.metadata.name,
    { status: { phase: 'Succeeded', plan, resources: 2, finishedAt } },
    { namespace: 'team' },
  )
  await stacks.until('kept', 'Ready', isReady)

  // The policy reads the Stacks from a cache.
  const rejected = await eventually(
    async () => await namespaces.delete('team', { dryRun: true }).then(() => undefined, String),
    'the policy to be in effect',
  )
  match(
    rejected,
    /Stack kept in it has resources, which cannot be destroyed .*"oarlock destroy --all -n team", or .* annotation oarlock\.dev\/force-delete: "true"/,
  )
  await rejects(namespaces.delete('team'))
  await namespaces.delete('empty')

  await namespaces.patch('team', { metadata: { annotations: { [annotations.forceDelete]: 'true' } } }, { type: 'merge' })
  await namespaces.delete('team')
  const blocked = await cli('destroy', 'kept', '--yes')
  equal(blocked.code, 4, blocked.text)
  match(blocked.stderr, /namespace team is being deleted and accepts no new Run: set spec\.deletion to Orphan/)

  // As the namespace controller does.
  await stacks.stacks.delete('kept', { namespace: 'team' })
  const stalled = await stacks.until('kept', 'Stalled', ({ status }) => isConditionTrue(status?.conditions, 'Stalled'))
  equal(condition(stalled, 'Stalled')?.reason, 'NamespaceTerminating')
  match(
    condition(stalled, 'Stalled')?.message ?? '',
    /accepts no new Run, so the resources of the Stack cannot be destroyed\. To destroy them, save the state \(oarlock state pull kept -n team\) and import it into a Stack of another namespace\. Set spec\.deletion to Orphan to finish the deletion/,
  )
  equal(stalled.metadata.finalizers?.includes(stackFinalizer), true)
  const continued = await cli('destroy', 'kept', '--yes', '--timeout', '20s')
  equal(continued.code, 1, continued.text)
  match(continued.stderr, /cannot destroy stack\/kept: Namespace team is being deleted/)

  await stacks.patch('kept', { spec: { deletion: 'Orphan' } })
  await stacks.untilDeleted('kept')
})
