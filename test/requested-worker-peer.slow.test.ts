/** Workers that a controller requests, on a real kube-apiserver, where one was built (`scripts/build-peers.sh`). */
import { deepEqual, equal, rejects } from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { hasRegistered, labels, oarlockResources, systemNamespace, workerPoolResource, workerResource } from '../src/api/index.ts'
import { agentCaches, PoolAgent } from '../src/app/pool-agent/pool-agent.ts'
import { deregister, patchWorkerStatus, register } from '../src/execution/worker/lease/registration.ts'
import { type Client, createClient, installKinds, leaseResource, namespaceResource } from '../src/kubernetes/client/index.ts'
import { Manager, silentLog } from '../src/kubernetes/controller/index.ts'
import { type Peer, peerMissing, startPeer } from './conformance/peer.ts'
import { eventually } from './support/eventually.ts'

const skip = peerMissing()

let peer: Peer
let client: Client
const workers = () => client.resource(workerResource)
/** As the controller requests a worker (`RequestedPool`). */
const request = async (name: string) =>
  await workers().create({
    metadata: { name, labels: { [labels.pool]: 'pool' } },
    spec: { pool: 'pool', slots: 1, lifecycle: 'OneShot', start: true },
  })
const registration = (name: string, workerUid: string) =>
  ({ name, pool: 'pool', slots: 1, lifecycle: 'OneShot', labels: { site: 'west' }, leaseDurationMs: 10_000, workerUid }) as const

before(async () => {
  if (skip) return
  peer = await startPeer()
  client = await createClient({ cluster: { server: peer.url, token: peer.tokens.admin, insecureSkipTlsVerify: true } })
  await installKinds(client, oarlockResources)
  await client.resource(namespaceResource).apply({ metadata: { name: systemNamespace } }, { force: true })
  await client.resource(workerPoolResource).create({ metadata: { name: 'pool' }, spec: { mode: 'Process' } })
})
after(async () => {
  await client?.close()
  await peer?.close()
})

test('kube-apiserver: a request is Pending, and a worker takes over exactly the request that it was started for', { skip }, async () => {
  const made = await request('requested')
  deepEqual([made.status, hasRegistered(made)], [{ phase: 'Pending' }, false])
  const registered = await register(client, registration('requested', made.metadata.uid))
  equal(registered.workerUid, made.metadata.uid)
  await patchWorkerStatus(client, 'requested', { phase: 'Ready' })
  const ready = await workers().get('requested')
  deepEqual([ready.metadata.labels?.site, ready.status?.phase], ['west', 'Ready'])
  await rejects(register(client, registration('requested', made.metadata.uid)), /already exists/)
  await deregister(client, 'requested', registered, {
    onError: error => {
      throw error
    },
  })

  await rejects(register(client, registration('requested', made.metadata.uid)), /the request to start worker "requested" was withdrawn/)
  await request('requested')
  await rejects(register(client, registration('requested', made.metadata.uid)), /failed to register worker "requested"/)
  equal(await client.resource(leaseResource).getOrUndefined('requested', { namespace: systemNamespace }), undefined)
  equal((await workers().get('requested')).status?.phase, 'Pending')
  await workers().delete('requested')
})

test('kube-apiserver: two agents start each requested worker once', { skip }, async () => {
  const names = Array.from({ length: 8 }, (_, index) => `shared-${index}`)
  const started: string[] = []
  const agents = await Promise.all(
    ['a', 'b'].map(async agent => {
      const manager = new Manager({ client, log: silentLog })
      const processes = {
        start: async (_: unknown, name: string) => void started.push(name),
        running: () => started.map(name => ({ name, pool: 'pool' })),
        stop: () => undefined,
        listen: () => undefined,
      }
      const poolAgent = new PoolAgent({
        ...{ manager, processes, agent, host: agent, maxWorkers: 20, log: silentLog, served: new Set(['pool']), nowMs: Date.now },
        ...agentCaches(manager, ['pool']),
        prepare: async () => {},
        onClaim: () => undefined,
      })
      await manager.start()
      return { manager, poolAgent }
    }),
  )
  await Promise.all(names.map(request))
  await eventually(
    async () => (await workers().listAll()).items.every(({ status }) => status?.phase === 'Starting'),
    'every request to be claimed',
  )
  for (const { manager, poolAgent } of agents) {
    await poolAgent.drain()
    poolAgent.close()
    await manager.stop()
  }
  deepEqual(started.toSorted(), names)
})
