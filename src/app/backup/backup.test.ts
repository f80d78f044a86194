import { deepEqual, equal, match, notEqual, ok, rejects } from 'node:assert/strict'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { oarlockResources, runResource, type Stack, stackResource } from '../../api/index.ts'
import { createClient, installKinds, namespaceResource, secretResource } from '../../kubernetes/client/index.ts'
import { silentLog } from '../../kubernetes/controller/index.ts'
import { type ApiServer, backUpDataDirectory, startServer } from '../../kubernetes/server/index.ts'
import { restoreMarker } from '../../kubernetes/util/index.ts'
import { openStores } from '../stores/stores.ts'
import { readKeys } from './backup-keys.ts'
import { type BackupSources, createBackup } from './create-backup.ts'
import { backUpLogs, backUpStates } from './local-states.ts'
import { objectsOnlyReason } from './manifest.ts'
import { restoreInstallation } from './restore-installation.ts'
import { verifyBackup } from './verify-backup.ts'

const base = mkdtempSync(join(tmpdir(), 'oarlock-backup-'))
const at = (name: string) => join(base, name)
const dataDir = at('data')
const passphrase = 'correct horse battery'
const file = at('whole.backup')
const keysDirectory = join(dataDir, 'keys')
let uid = ''

const withServer = async <T>(directory: string, use: (server: ApiServer) => Promise<T>): Promise<T> => {
  const server = await startServer({ dataDir: directory, listen: { port: 0 }, storage: { synchronous: 'OFF' } })
  try {
    return await use(server)
  } finally {
    await server.close({ graceMs: 200 })
  }
}

const sources = (more: Partial<BackupSources> = {}): BackupSources => ({
  objects: path => backUpDataDirectory(dataDir, path),
  states: path => backUpStates(dataDir, path),
  logs: path => backUpLogs(dataDir, path),
  keys: { keys: readKeys(join(dataDir, 'keys')), passphrase },
  ...more,
})

before(async () => {
  await withServer(dataDir, async server => {
    const client = await createClient({ kubeconfig: server.kubeconfigPath })
    await installKinds(client, oarlockResources)
    await client.resource(namespaceResource).create({ metadata: { name: 'team' } })
    await client.resource(secretResource).create({ metadata: { name: 'db', namespace: 'team' }, stringData: { password: 'hunter2' } })
    const stacks = client.resource(stackResource)
    const spec = { engine: 'terraform', source: { inline: { files: { 'main.tf': '' } } } } as const
    const { metadata } = await stacks.create({ metadata: { name: 'web', namespace: 'team' }, spec })
    uid = metadata.uid
    await stacks.patchStatus('web', { status: { lastRunNumber: 5, stateVersion: 2, resources: 3 } }, { namespace: 'team' })
    await client.close()
  })
  const stores = await openStores({ dataDir, log: silentLog })
  for (const serial of [1, 2])
    await stores.state.writeVersion({ stackUid: uid, runName: 'web-5', epoch: 5, bytes: Buffer.from(`{"serial":${serial}}`) })
  await stores.state.writeVersion({ stackUid: uid, runName: 'web-4', epoch: 4, bytes: Buffer.from('{"serial":9}') })
  await stores.log.append({ namespace: 'team', run: 'web-5' }, 0, Buffer.from('applied\n'))
  await stores.log.end({ namespace: 'team', run: 'web-5' })
  await stores.close()
  await createBackup(file, sources(), { version: '1.2.3' })
})
after(() => rmSync(base, { recursive: true, force: true }))

test('a restored directory has the objects, states, logs and keys, above every epoch that may have been used since', async () => {
  const target = at('restored')
  const { states, logs, leftOut } = await restoreInstallation({ file, dataDir: target, passphrase })
  deepEqual([states, logs, leftOut], [1, 1, []])
  deepEqual(readdirSync(target).sort(), ['keys', 'logs', 'oarlock.db', 'state'])
  const [original, restored] = [await openStores({ dataDir, log: silentLog }), await openStores({ dataDir: target, log: silentLog })]
  try {
    equal(restored.id, original.id)
    deepEqual({ ...restored.generation.read() }, { ...original.generation.read() })
    equal((await restored.state.readVersion({ stackUid: uid }))?.bytes.toString(), '{"serial":2}')
    equal((await restored.state.orphans(uid)).length, 1)
    deepEqual(await restored.state.fence(uid), { minEpoch: 1_000_006, maxSeenEpoch: 1_000_005 })
    const late = await restored.state.writeVersion({ stackUid: uid, runName: 'web-900', epoch: 900, bytes: Buffer.from('{}') })
    equal(late.kind, 'rejected')
    const log = await restored.log.read({ namespace: 'team', run: 'web-5' })
    deepEqual([log.bytes.toString(), log.ended], ['applied\n', true])
  } finally {
    await original.close()
    await restored.close()
  }
  await withServer(target, async server => {
    const client = await createClient({ kubeconfig: server.kubeconfigPath })
    const { status } = (await client.resource(stackResource).get('web', { namespace: 'team' })) as Stack
    deepEqual([status?.minRunNumber, status?.lastRunNumber, status?.stateVersion], [1_000_007, 5, 2])
    ok(status?.restored?.at && status.restored.backupAt)
    equal((await client.resource(secretResource).get('db', { namespace: 'team' })).data?.password, 'aHVudGVyMg==')
    equal((await client.resource(runResource).listAll()).items.length, 0)
    await client.close()
  })
})

test('without keys a restore names the missing ones and changes nothing; --keys has them, and --salvage leaves the states out', async () => {
  const path = at('no-keys.backup')
  const { manifest } = await createBackup(path, sources({ keys: 'not wanted' }), { version: '1.2.3' })
  ok(manifest.omitted.some(({ what, reason }) => what === 'keys' && reason === 'not wanted'))
  const target = at('without-keys')
  await rejects(restoreInstallation({ file: path, dataDir: target }), {
    code: 'EncryptionKeyMissing',
    message: new RegExp(`no-keys\\.backup cannot be restored: they are encrypted with the key ${manifest.states?.key}, which is missing`),
  })
  ok(!existsSync(target))
  const salvaged = await restoreInstallation({ file: path, dataDir: target, salvage: true })
  deepEqual(
    salvaged.leftOut.map(({ what }) => what),
    ['states'],
  )
  ok(!existsSync(join(target, 'state')) && salvaged.skippedObjects.length === 1, 'the Secret is skipped too')
  const withKeys = await restoreInstallation({ file: path, dataDir: at('with-keys'), keysDirectory })
  deepEqual([withKeys.states, withKeys.skippedObjects], [1, []])
})

test('existing data is replaced only with force, is kept, and is not touched while its stores are in use', async () => {
  const target = at('existing')
  cpSync(dataDir, target, { recursive: true })
  const before = readFileSync(join(target, 'keys', 'state.key'), 'utf8')
  await rejects(restoreInstallation({ file, dataDir: target, keysDirectory }), /oarlock\.db exists: .*--force/)
  const stores = await openStores({ dataDir: target, log: silentLog })
  await rejects(restoreInstallation({ file, dataDir: target, keysDirectory, force: true }), /is in use by another/)
  await stores.close()
  await withServer(target, async () => {
    await rejects(restoreInstallation({ file, dataDir: target, keysDirectory, force: true }), { code: 'DataInUse' })
  })
  ok(!existsSync(join(target, restoreMarker)) && !readdirSync(target).some(name => name.includes('replaced')))
  const { replacedFiles, replacedPath } = await restoreInstallation({ file, dataDir: target, keysDirectory, force: true })
  equal(replacedFiles.length, 2, 'states and logs; the key is the same')
  for (const path of [...replacedFiles, replacedPath!]) ok(existsSync(path))
  equal(readFileSync(join(target, 'keys', 'state.key'), 'utf8'), before)
})

test('a restore that was interrupted while the directory changed is repeated', async () => {
  const target = at('interrupted')
  await restoreInstallation({ file, dataDir: target, keysDirectory })
  writeFileSync(join(target, restoreMarker), '')
  rmSync(join(target, 'oarlock.db'))
  await rejects(openStores({ dataDir: target, log: silentLog }), /the restore of a backup to \S+ has not finished/)
  await restoreInstallation({ file, dataDir: target, keysDirectory })
  await (await openStores({ dataDir: target, log: silentLog })).close()
})

test('a Stack that is deleted between the copies is not in the backup; one without its state is reported', async () => {
  let copies = 0
  const remove = async () => {
    await withServer(at('deleting'), async server => {
      const client = await createClient({ kubeconfig: server.kubeconfigPath })
      await client.resource(stackResource).delete('web', { namespace: 'team' })
      await client.close()
    })
    const stores = await openStores({ dataDir: at('deleting'), log: silentLog })
    await stores.state.deleteStack(uid)
    await stores.close()
  }
  cpSync(dataDir, at('deleting'), { recursive: true })
  const deleting = sources({
    keys: 'not wanted',
    objects: async path => await backUpDataDirectory(at('deleting'), path),
    states: async path => {
      if (copies++ === 0) await remove()
      return await backUpStates(at('deleting'), path)
    },
  })
  const deleted = await createBackup(at('deleted.backup'), deleting, { version: '1.2.3' })
  deepEqual([copies, deleted.missing], [2, []])

  const lost = await createBackup(at('lost.backup'), sources({ keys: 'not wanted', states: path => backUpStates(at('deleting'), path) }), {
    version: '1.2.3',
  })
  match(lost.missing[0] ?? '', /^stack\/web -n team: the Stack has resources, but no state is stored/)
  deepEqual((await verifyBackup(at('lost.backup'))).missing, lost.missing)
})

test('without states, each Stack that has one is reported, unless the user wanted the objects only', async () => {
  const path = at('stateless.backup')
  const create = async (states: string) => await createBackup(path, sources({ keys: 'not wanted', states }), { version: '1.2.3' })
  const { missing } = await create('the data directory has none')
  match(missing.join(), /^stack\/web -n team: the Stack has resources, but no state is stored[^,]*$/)
  deepEqual((await verifyBackup(path)).missing, missing)
  deepEqual((await create(objectsOnlyReason)).missing, [])
  deepEqual((await verifyBackup(path)).missing, [])
})

test('the database of an API server is restored without states, and its Stacks wait for a review', async () => {
  const raw = at('raw.db')
  await backUpDataDirectory(dataDir, raw)
  const { manifest, states } = await restoreInstallation({
    file: raw,
    dataDir: at('raw'),
    encryptionConfig: join(dataDir, 'keys', 'encryption-config.json'),
  })
  deepEqual([manifest, states], [undefined, 0])
  await withServer(at('raw'), async server => {
    const client = await createClient({ kubeconfig: server.kubeconfigPath })
    notEqual(((await client.resource(stackResource).get('web', { namespace: 'team' })) as Stack).status?.restored, undefined)
    await client.close()
  })
})

test('a failed source leaves neither a backup nor temporary files', async () => {
  const failing = sources({ logs: () => Promise.reject(new Error('no space')) })
  await rejects(createBackup(at('failed.backup'), failing, { version: '1.2.3' }), /no space/)
  deepEqual(
    readdirSync(base).filter(name => name.startsWith('failed')),
    [],
  )
})
