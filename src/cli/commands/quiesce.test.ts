import { deepEqual, equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { runOarlock } from '../../../test/support/run-program.ts'
import { type RunSpec, runResource, systemNamespace, workerResource } from '../../api/index.ts'
import { namespaceResource } from '../../kubernetes/client/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'

// The embedded server has no Deployments: test/chart.slow.test.ts stops and starts the controllers of a cluster.
test('it waits until no Run is active', async t => {
  await using api = await startTestServer({ kinds: [runResource, workerResource] })
  const { client } = api
  for (const name of [systemNamespace, 'shop']) await client.resource(namespaceResource).apply({ metadata: { name } }, { force: true })
  const spec = {
    ...{ type: 'Apply', stackRef: { name: 'app', uid: 'u', generation: 1 }, epoch: 1, revision: 'r', inputsDigest: 'i' },
    ...{ reason: 'NewGeneration', pool: 'default', priority: 0 },
    stack: { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] } },
  } as unknown as RunSpec
  const runs = client.resource(runResource)
  const create = async (name: string, added: object) =>
    await runs.create({ metadata: { name, namespace: 'shop' }, spec: { ...spec, ...added } as RunSpec })
  await create('queued', {})
  await create('active', { workerName: 'w', assignedAt: '2026-01-01T00:00:00Z' })
  await runs.patchStatus('active', { status: { phase: 'Applying' } }, { namespace: 'shop' })
  const workers = client.resource(workerResource)
  const idle = { pool: 'default', slots: 1, lifecycle: 'Warm' } as const
  await workers.create({
    metadata: { name: 'in-pod' },
    spec: { ...idle, pod: { namespace: systemNamespace, serviceAccountName: 'oarlock-worker' } },
  })
  await workers.create({ metadata: { name: 'joined' }, spec: idle })
  const prepare = async (timeout: string) => await runOarlock(['quiesce', '--kubeconfig', api.server.kubeconfigPath, '--timeout', timeout])

  await t.test('a Run that remains active is named', async () => {
    const { code, stdout, stderr } = await prepare('1s')
    equal(code, 6, stderr)
    equal(stdout, '')
    match(stderr, /^oarlock: 1 Run is active: shop\/active \(Applying\) after 1s\n {2}hint: wait until/m)
  })

  await t.test('when it has ended nothing is awaited any more; a queued Run does not matter', async () => {
    const done = prepare('1m')
    await sleep(1_500)
    await runs.patchStatus('active', { status: { phase: 'Succeeded', finishedAt: '2026-01-01T00:01:00Z' } }, { namespace: 'shop' })
    const { code, stdout, stderr } = await done
    deepEqual([code, stdout], [0, 'no Run is active\n'], stderr)
    deepEqual(
      (await workers.listAll()).items.map(({ metadata }) => metadata.name),
      ['joined'],
    )
  })
})
