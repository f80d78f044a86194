/** A backup of a data directory whose states are lost, or elsewhere, as its user sees it. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { oarlockResources, stackResource } from '../src/api/index.ts'
import { createClient, installKinds } from '../src/kubernetes/client/index.ts'
import { startServer } from '../src/kubernetes/server/index.ts'
import { makeDataDir, removeDirectory } from './support/oarlock-process.ts'
import { runOarlock } from './support/run-program.ts'

test('a backup without the states of its Stacks is written, and is an error unless --objects-only is passed', async () => {
  const base = makeDataDir()
  try {
    const dataDir = join(base, 'data')
    const server = await startServer({ dataDir, listen: { port: 0 }, storage: { synchronous: 'OFF' } })
    const client = await createClient({ kubeconfig: server.kubeconfigPath })
    await installKinds(client, oarlockResources)
    const stacks = client.resource(stackResource)
    const spec = { engine: 'terraform', source: { inline: { files: { 'main.tf': '' } } } } as const
    await stacks.create({ metadata: { name: 'web', namespace: 'default' }, spec })
    await stacks.patchStatus('web', { status: { stateVersion: 2, resources: 3 } }, { namespace: 'default' })
    await client.close()
    await server.close({ graceMs: 200 })

    const cli = async (...args: string[]) => await runOarlock(args, { env: { KUBECONFIG: undefined, OARLOCK_DATA: undefined } })
    const file = join(base, 'my.backup')
    const done = await cli('backup', '--data', dataDir, '--to', file)
    equal(done.code, 1, done.text)
    match(done.text, /warning: stack\/web -n default: the Stack has resources, but no state is stored/)
    match(done.text, /1 Stack has no current state in \S+my\.backup[\s\S]*the file is written[\s\S]*--objects-only/)
    ok(existsSync(file))
    const verified = await cli('backup', 'verify', file)
    deepEqual([verified.code, /verified:/.test(verified.text)], [1, false], verified.text)

    const objects = ['backup', '--data', dataDir, '--to', join(base, 'objects.backup')]
    equal((await cli(...objects, '--objects-only')).code, 0)
    match((await cli('backup', 'verify', join(base, 'objects.backup'))).text, /verified: 1 files/)
  } finally {
    removeDirectory(base)
  }
})
