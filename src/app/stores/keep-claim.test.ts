import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { systemNamespace } from '../../api/index.ts'
import { type Client, configMapResource, leaseResource, namespaceResource } from '../../kubernetes/client/index.ts'
import { silentLog } from '../../kubernetes/controller/index.ts'
import { rfc3339Micro } from '../../kubernetes/object/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { fullReason, publicReason } from '../../kubernetes/util/index.ts'
import { startApiServer } from '../api-server/api-server.ts'
import { claimStores, endpointName, type Generation, publishEndpoint } from '../discovery/index.ts'
import { startAllInOne } from '../index.ts'
import { type KeepClaimOptions, type KeptClaim, keepClaim } from './keep-claim.ts'
import { startStoresProcess } from './stores-process.ts'

const installed = async () => {
  const api = await startTestServer()
  await api.client.resource(namespaceResource).apply({ metadata: { name: systemNamespace } }, { force: true })
  return api
}
const dataOf = async (client: Client) =>
  (await client.resource(configMapResource).get(endpointName('stores'), { namespace: systemNamespace })).data ?? {}

test('stores of an empty directory are refused while others are those of the installation, and change nothing', async () => {
  await using api = await installed()
  const { client } = api
  const base = mkdtempSync(join(tmpdir(), 'oarlock-claim-'))
  const start = (name: string, replace = false) =>
    startStoresProcess({
      client,
      dataDir: join(base, name),
      listen: { host: '127.0.0.1', port: 0 },
      names: [],
      replace,
      log: silentLog,
      onLost: () => {},
    })
  try {
    const first = await start('first')
    await eventually(async () => (await dataOf(client)).url === first.url, 'the address is published')
    const before = await dataOf(client)
    match(before.id ?? '', /^[0-9a-f]{32}$/)
    await rejects(start('empty'), {
      name: 'AppStartError',
      kind: 'DataDirectory',
      message: /empty .*are not those of this/,
      hint: /--replace-stores/,
    })
    // Another role may have it, or get it.
    deepEqual(readdirSync(join(base, 'empty')), [])
    // Stopped stores are still those of the installation.
    await first.stop()
    const after = await dataOf(client)
    await rejects(start('empty'), { kind: 'DataDirectory' })
    deepEqual(await dataOf(client), after)
    equal(after.id, before.id)
    const restored = await start('empty', true)
    await eventually(async () => (await dataOf(client)).url === restored.url, 'its address is published')
    await restored.stop()
    await rejects(start('first'), { kind: 'DataDirectory' })
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
})

/** Stores without a directory. */
function fakeStores(id: string, lockId = id) {
  let own: Generation = { number: 0, nonce: '', time: '' }
  const generation = { read: () => own, write: (next: Generation) => (own = next) }
  return {
    id,
    lockId,
    generation,
    copy: (copyLockId: string) => {
      const copy = fakeStores(id, copyLockId)
      copy.generation.write(own)
      return copy
    },
  }
}

async function claim(client: Client, stores: ReturnType<typeof fakeStores>, more: Partial<KeepClaimOptions> = {}) {
  const kept = await keepClaim({ client, stores, dataDir: '/data', replace: false, log: silentLog, onLost: () => {}, ...more })
  claims.push(kept)
  return kept
}
const claims: KeptClaim[] = []
// A claim that a failed test has left would keep the process alive.
afterEach(async () => {
  for (const kept of claims.splice(0)) await kept.release()
})

const isOlder = {
  name: 'AppStartError',
  kind: 'DataDirectory',
  message: /\/data are an older copy \(generation \d+/,
  hint: /--replace-stores/,
}

test('of two stores that claim the installation at the same time one gets it', async () => {
  await using api = await installed()
  const refusals = await Promise.all(['a', 'b', 'c'].map(id => claimStores(api.client, fakeStores(id))))
  const { id: winner = '' } = await dataOf(api.client)
  deepEqual(
    refusals,
    ['a', 'b', 'c'].map(id => (id === winner ? undefined : { kind: 'other', id: winner })),
  )
})

test('the id is claimed beside published addresses, and kept when they change', async () => {
  await using api = await installed()
  await publishEndpoint(api.client, 'stores', { url: 'https://one', caCertificate: 'PEM' })
  equal(await claimStores(api.client, fakeStores('a')), undefined)
  await publishEndpoint(api.client, 'stores', { url: 'https://two', caCertificate: undefined })
  const { id, url, 'ca.crt': ca } = await dataOf(api.client)
  deepEqual({ id, url, ca }, { id: 'a', url: 'https://two', ca: undefined })
})

test('stores of another directory are refused after oarlock up, also when only its API server runs', async () => {
  const base = mkdtempSync(join(tmpdir(), 'oarlock-claim-'))
  const address = { host: '127.0.0.1', port: 0 }
  try {
    const up = await startAllInOne({ dataDir: join(base, 'up'), listen: address, healthAddress: address, launcher: [], version: 'test' })
    await up.stop({ graceMs: 0 })
    const api = await startApiServer({ dataDir: join(base, 'up'), listen: address })
    const client = await api.connect({ name: 'admin', groups: ['system:masters'] }, 'test')
    const start = (name: string) =>
      startStoresProcess({ client, dataDir: join(base, name), listen: address, names: [], log: silentLog, onLost: () => {} })
    await rejects(start('empty'), { name: 'AppStartError', kind: 'DataDirectory', hint: /--replace-stores/ })
    // Its own directory is accepted.
    await (await start('up')).stop()
    await client.close()
    await api.server.close()
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
})

test('a copy is refused while the original serves, also with --replace-stores, and the message names its process and address', async () => {
  await using api = await installed()
  const original = fakeStores('a', 'lock-1')
  const first = await claim(api.client, original)
  await publishEndpoint(api.client, 'stores', { url: 'https://original', caCertificate: undefined })
  const isHeld = {
    name: 'AppStartError',
    kind: 'DataDirectory',
    message: new RegExp(`served by process ${process.pid} on .* at https://original`),
  }
  await Promise.all([
    rejects(claim(api.client, original.copy('lock-2')), isHeld),
    rejects(claim(api.client, original.copy('lock-3'), { replace: true }), isHeld),
  ])
  equal(first.isClaimed, true)
  await first.release()
})

test('a copy that was made while the original served is refused after it has stopped', async () => {
  await using api = await installed()
  const original = fakeStores('a', 'lock-1')
  const first = await claim(api.client, original)
  const copy = original.copy('lock-2')
  await first.release()
  await rejects(claim(api.client, copy), isOlder)
  const again = await claim(api.client, original)
  equal(again.isClaimed, true)
  await again.release()
})

test('a copy of stopped stores may be used instead of the original, which is refused afterwards', async () => {
  await using api = await installed()
  const original = fakeStores('a', 'lock-1')
  await (await claim(api.client, original)).release()
  const copy = original.copy('lock-2')
  await (await claim(api.client, copy)).release()
  await rejects(claim(api.client, original), isOlder)
  const replacement = await claim(api.client, original, { replace: true })
  equal(replacement.isClaimed, true)
  await replacement.release()
  await rejects(claim(api.client, copy), isOlder)
})

test('a copy that was made before the last raise of the generation is refused after a crash of the original', async () => {
  await using api = await installed()
  const original = fakeStores('a', 'lock-1')
  const first = await claim(api.client, original, { raiseMs: 10 })
  const copy = original.copy('lock-2')
  await eventually(() => original.generation.read().number > copy.generation.read().number + 1, 'the generation is raised')
  // The copy is checked before it waits for the Lease, which a crash leaves held.
  await rejects(claim(api.client, copy), isOlder)
  await first.release()
})

test('a process that ends before or after its claim is written leaves a directory that is accepted', async () => {
  await using api = await installed()
  const stores = fakeStores('a')
  equal(await claimStores(api.client, stores), undefined)
  const written: number[] = []
  for (const isWritten of [false, true, false, false, true]) {
    const client = withApply(api.client, async apply => {
      if (isWritten) await apply()
      throw new Error('killed')
    })
    await rejects(claimStores(client, stores), /killed/)
    written.push(stores.generation.read().number)
  }
  // A directory that is ahead of the claim does not raise its generation again before it has claimed it.
  deepEqual(written, [2, 2, 3, 3, 3])
  equal(await claimStores(api.client, stores), undefined)
  equal((await dataOf(api.client)).generation, `4-${stores.generation.read().nonce}`)
})

test('of two copies of which one ended before its claim was written, the other is accepted, and the first is refused', async () => {
  await using api = await installed()
  const original = fakeStores('a', 'lock-1')
  equal(await claimStores(api.client, original), undefined)
  const copy = original.copy('lock-2')
  const client = withApply(api.client, () => Promise.reject(new Error('killed')))
  await rejects(claimStores(client, original), /killed/)
  equal(await claimStores(api.client, copy), undefined)
  equal(original.generation.read().number, copy.generation.read().number)
  equal((await claimStores(api.client, original))?.kind, 'older')
})

test('a directory that is ahead of the claim is accepted, as after a restore of the API server', async () => {
  await using api = await installed()
  const stores = fakeStores('a')
  stores.generation.write({ number: 40, nonce: 'ab', time: '' })
  equal(await claimStores(api.client, stores), undefined)
  match((await dataOf(api.client)).generation ?? '', /^41-/)
  // Stores of a version without generations have claimed the id only.
  const configMaps = api.client.resource(configMapResource)
  const data = { generation: null, generationTime: null } as object
  await configMaps.patch(endpointName('stores'), { data }, { type: 'merge', namespace: systemNamespace })
  equal(await claimStores(api.client, stores), undefined)
  match((await dataOf(api.client)).generation ?? '', /^42-/)
})

test('the process that locks the directory after a crash does not wait for the Lease; another one does', async () => {
  await using api = await installed()
  const stores = fakeStores('a', 'lock-1')
  await (await claim(api.client, stores)).release()
  const leases = api.client.resource(leaseResource)
  const crashed = async (lockId: string, leaseDurationSeconds: number) => {
    const lease = await leases.get('oarlock-stores', { namespace: systemNamespace })
    const spec = { ...lease.spec, holderIdentity: `vm_1_${lockId}_ab`, renewTime: '2026-01-01T00:00:00.000000Z', leaseDurationSeconds }
    await leases.update({ ...lease, spec })
  }
  // Without the exception it would wait for an hour.
  await crashed('lock-1', 3_600)
  const same = await claim(api.client, stores)
  equal(same.isClaimed, true)
  await same.release()
  await crashed('lock-2', 2)
  const startMs = performance.now()
  const other = await claim(api.client, stores)
  ok(performance.now() - startMs >= 1_900)
  equal(other.isClaimed, true)
  await other.release()
})

test('stores that were replaced serve no longer, and report it', async () => {
  await using api = await installed()
  const lost = Promise.withResolvers<Error>()
  const kept = await claim(api.client, fakeStores('a'), { raiseMs: 10, onLost: lost.resolve })
  equal(kept.isClaimed, true)
  await claimStores(api.client, fakeStores('b'), { replace: true })
  match((await lost.promise).message, /are not those of this installation \(b\)/)
  equal(kept.isClaimed, false)
  deepEqual(kept.notReady().map(fullReason), [`these stores may not serve: ${(await lost.promise).message}`])
  deepEqual(kept.notReady().map(publicReason), ['these stores may not serve'])
  await kept.release()
  equal((await dataOf(api.client)).id, 'b')
})

test('stores whose Lease another process holds serve no longer, and report it', async () => {
  await using api = await installed()
  const lost = Promise.withResolvers<Error>()
  const kept = await claim(api.client, fakeStores('a'), { onLost: lost.resolve })
  const leases = api.client.resource(leaseResource)
  let renewals = 0
  const renew = async () => {
    const spec = { holderIdentity: 'vm_1_lock_ab', leaseDurationSeconds: 15, renewTime: rfc3339Micro(Date.now() + renewals++) }
    await leases.patch('oarlock-stores', { spec }, { type: 'merge', namespace: systemNamespace })
  }
  await renew()
  await eventually(() => !kept.isClaimed, 'the loss is noticed')
  let reason: string | undefined
  void lost.promise.then(({ message }) => (reason = message))
  await eventually(async () => {
    await renew()
    return reason !== undefined
  }, 'the loss is reported')
  match(reason ?? '', /served by process 1 on vm$/)
  await kept.release()
})

test('a refusal at the start is thrown and not logged, one of stores that ran is logged', async () => {
  await using api = await installed()
  const logged: string[] = []
  const log: typeof silentLog = { ...silentLog, error: (_: object, text: string) => logged.push(text), child: () => log }
  const kept = await claim(api.client, fakeStores('a'), { log, raiseMs: 10 })
  await rejects(claim(api.client, fakeStores('b'), { log }), { name: 'AppStartError' })
  deepEqual(logged, [])
  await claimStores(api.client, fakeStores('b'), { replace: true })
  await eventually(() => logged.length > 0, 'the refusal is logged')
  match(logged.join('\n'), /^requests are rejected: [^\n]* not those of this installation \(b\)[^\n]*$/)
  await kept.release()
})

test('stores do not serve before the API server has answered whose they are', async () => {
  await using api = await installed()
  let isReachable = false
  const resource: Client['resource'] = type => {
    if (!isReachable) throw new Error('unreachable')
    return api.client.resource(type)
  }
  const client = { resource } as Client
  const kept = await claim(client, fakeStores('a'), { retryMs: 10 })
  try {
    equal(kept.isClaimed, false)
    match(kept.notReady().map(fullReason).join(), /not known whether .*: unreachable/)
    isReachable = true
    await eventually(() => kept.isClaimed, 'it is claimed')
    deepEqual(kept.notReady(), [])
  } finally {
    await kept.release()
  }
})

/** A client whose writes of the claim are replaced. */
function withApply(client: Client, replacement: (apply: () => Promise<unknown>) => Promise<unknown>): Client {
  const resource = (type: never) => {
    const target = client.resource(type) as ReturnType<Client['resource']>
    const apply = (...args: Parameters<typeof target.apply>) => replacement(() => target.apply(...args))
    return new Proxy(target, {
      get: (_, key) => (key === 'apply' ? apply : (target[key as keyof typeof target] as () => void).bind(target)),
    })
  }
  return { resource } as unknown as Client
}
