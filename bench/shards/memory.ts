/** Memory above that of an idle replica, and bytes received, with 76,000 objects: one replica, and each of five. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ResourceClient } from '../../src/kubernetes/client/index.ts'
import { bucketLabel, bucketOf } from '../../src/kubernetes/controller/index.ts'
import { controllerReference } from '../../src/kubernetes/index.ts'
import { childResource, rootResource } from './kinds.ts'
import { each, Fleet, type Measured, namespace, type Replica, rootName } from './replicas.ts'
import { median } from './throughput.ts'

const childrenOfRoot = 18
const warmUpRoots = 200

/** Replicas start on an empty server, work on some objects that are deleted again, are measured, receive all objects as they are created, and are measured again. */
export async function memory({ roots, replicas }: { roots: number; replicas: number }): Promise<Record<string, string | number>[]> {
  const one = await measure(1, roots)
  process.stderr.write(`one replica: ${JSON.stringify(one)}\n`)
  const many = await measure(replicas, roots)
  process.stderr.write(`${replicas} replicas: ${JSON.stringify(many)}\n`)
  const [single] = one
  const round = (value: number) => Math.round(value * 10) / 10
  const row = (name: string, share: Share) => ({
    replica: name,
    objects: share.objects,
    'idle RSS, MB': round(share.idleRssMb),
    'RSS above idle, MB': round(share.rssMb),
    'of a single one, %': round((share.rssMb / single!.rssMb) * 100),
    'private above idle, MB': round(share.privateMb),
    'private of a single one, %': round((share.privateMb / single!.privateMb) * 100),
    'heap above idle, MB': round(share.heapMb),
    'heap of a single one, %': round((share.heapMb / single!.heapMb) * 100),
    'received, MB': round(share.receivedMb),
    'received of a single one, %': round((share.receivedMb / single!.receivedMb) * 100),
  })
  const medianOf = (key: keyof Share) => median(many.map(share => share[key]))
  const middle: Share = {
    objects: medianOf('objects'),
    idleRssMb: medianOf('idleRssMb'),
    rssMb: medianOf('rssMb'),
    privateMb: medianOf('privateMb'),
    heapMb: medianOf('heapMb'),
    receivedMb: medianOf('receivedMb'),
  }
  return [row('single', single!), ...many.map((share, index) => row(`${index + 1} of ${replicas}`, share)), row('median', middle)]
}

type Share = { objects: number; idleRssMb: number; rssMb: number; privateMb: number; heapMb: number; receivedMb: number }

async function measure(replicas: number, roots: number): Promise<Share[]> {
  const fleet = await Fleet.start()
  try {
    const started: Replica[] = []
    for (let index = 0; index < replicas; index++) {
      started.push(await fleet.add({ ownsChildren: true, shards: replicas > 1 ? { slots: replicas } : undefined }))
    }
    await Promise.all(started.map(replica => replica.started))
    if (replicas > 1) await fleet.untilSettled(replicas)
    // An idle replica has worked before: compiled code and the space for young objects are not memory of the objects that it holds.
    await populate(fleet, warmUpRoots)
    await deleteAll(fleet.client.resource(childResource))
    await deleteAll(fleet.client.resource(rootResource))
    for (let attempt = 0; attempt < 60 && (await measureAll(started)).some(({ objects }) => objects > 0); attempt++) await sleep(500)
    await sleep(2_000)
    const idle = await measureAll(started)
    const received = started.map(({ proxy }) => proxy.receivedBytes)
    await populate(fleet, roots)
    const expected = roots * (1 + childrenOfRoot)
    let full = await measureAll(started)
    for (let attempt = 0; attempt < 60 && full.reduce((sum, { objects }) => sum + objects, 0) < expected; attempt++) {
      await sleep(1_000)
      full = await measureAll(started)
    }
    const total = full.reduce((sum, { objects }) => sum + objects, 0)
    if (total !== expected) throw new Error(`the caches hold ${total} objects, expected ${expected}`)
    await sleep(2_000)
    full = await measureAll(started)
    return full.map(({ objects, rssMb, privateMb, heapMb }, index) => ({
      objects,
      idleRssMb: idle[index]!.rssMb,
      rssMb: rssMb - idle[index]!.rssMb,
      privateMb: privateMb - idle[index]!.privateMb,
      heapMb: heapMb - idle[index]!.heapMb,
      receivedMb: (started[index]!.proxy.receivedBytes - received[index]!) / 1e6,
    }))
  } finally {
    await fleet.close()
  }
}

const measureAll = (replicas: readonly Replica[]): Promise<Measured[]> => Promise.all(replicas.map(replica => replica.measure()))

async function deleteAll<Body>(objects: ResourceClient<Body>): Promise<void> {
  const { items } = await objects.listAll({ namespace })
  await each(items.length, async index => {
    await objects.delete(items[index]!.metadata.name, { namespace })
  })
}

async function populate(fleet: Fleet, count: number): Promise<void> {
  const roots = fleet.client.resource(rootResource)
  await fleet.createRoots(count)
  const { items } = await roots.listAll({ namespace })
  const byName = new Map(items.map(item => [item.metadata.name, item]))
  const children = fleet.client.resource(childResource)
  await each(count, async index => {
    const root = byName.get(rootName(index))!
    const owner = controllerReference({ ...root, apiVersion: rootResource.apiVersion, kind: rootResource.kind })
    for (let child = 0; child < childrenOfRoot; child++) {
      await children.create({
        metadata: {
          name: `${root.metadata.name}-component-${child}`,
          namespace,
          ownerReferences: [owner],
          labels: { [bucketLabel]: String(bucketOf(root.metadata.uid)) },
        },
        spec: {
          componentName: `component-${child}`,
          chartLocation: `charts/component-${child}`,
          version: '1.24.0',
          namespace: 'kyma-system',
        },
      })
    }
  })
}
