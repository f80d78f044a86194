/** Latency of quick Runs in Pods on a real cluster with the chart, and of the same Runs in processes of `oarlock up`, one after another. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type StackSpec, workerPoolResource, workerResource } from '../../src/api/index.ts'
import type { Client } from '../../src/kubernetes/client/index.ts'
import { Cluster } from '../../test/cluster/cluster.ts'
import { helmMissing, Installation } from '../../test/cluster/installation.ts'
import { buildOarlockImage, imageMissing, oarlockImage } from '../../test/cluster/oarlock-image.ts'
import { clusterMissing } from '../../test/cluster/programs.ts'
import { ClusterFaults } from '../../test/support/cluster-faults.ts'
import { eventually } from '../../test/support/eventually.ts'
import { isReady, StackFixture } from '../../test/support/stacks.ts'
import { argument, inDirectory } from '../faults/chain.ts'
import { up } from '../oarlock-up.ts'
import type { Bench } from '../run.ts'
import { type ApiRequest, isWrite, readAuditLog, senderOf } from './api-requests.ts'

const warmUp = 2
const timeoutMs = 120_000

/** Wall clock in milliseconds. `run` is the Run's name, in namespace `shop`. */
type Change = { readonly changedMs: number; readonly readyMs: number; readonly run: string; readonly worker: string }

export async function podLatency(args: string[]): Promise<Bench> {
  const missing = clusterMissing() ?? imageMissing() ?? helmMissing()
  if (missing) throw new Error(missing)
  const rounds = Number(argument(args, 'rounds', '20'))
  const rows = [...(await inPods(rounds)), ...(await inProcesses(rounds))]
  return {
    title: `${rounds} changes of a Stack, one after another: from the change to Ready`,
    about:
      'Engine command, a program that does nothing; ms. Start of the Pod: from its creation to the registration of its worker. Oarlock: the rest, of which the parts follow. The image is on the node.',
    rows,
  }
}

async function inPods(rounds: number): Promise<Record<string, string | number>[]> {
  const cluster = await Cluster.start({ nodes: 1, images: [buildOarlockImage()], audit: 'Writes' })
  const installation = new Installation(cluster)
  try {
    await new ClusterFaults(cluster, installation).install(oarlockImage)
    const { client } = cluster
    const oneShot = await changes(client, 'shop', 'default', rounds)
    const { template, namespace } = (await client.resource(workerPoolResource).get('default')).spec
    const spec = { mode: 'Pod', lifecycle: 'Warm', min: 1, max: 1, template, namespace } as const
    await client.resource(workerPoolResource).create({ metadata: { name: 'warm' }, spec } as never)
    const workers = client.resource(workerResource)
    await eventually(
      async () => (await workers.listAll()).items.some(({ spec, status }) => spec.pool === 'warm' && status?.phase === 'Ready'),
      'the Warm worker',
      timeoutMs,
    )
    const warm = await changes(client, 'shop', 'warm', rounds)
    const requests: ApiRequest[] = []
    for await (const request of readAuditLog(cluster.controlPlane.auditLog))
      if (isWrite(request) && request.code < 300) requests.push(request)
    return [rowOf('Pod of its own', oneShot, partsOf(oneShot, requests)), rowOf('Warm Pod', warm)]
  } finally {
    await cluster.close()
    installation.remove()
  }
}

async function inProcesses(rounds: number): Promise<Record<string, string | number>[]> {
  return await inDirectory(async directory => {
    const { client, stop } = await up(directory)
    try {
      const oneShot = await changes(client, 'default', 'default', rounds)
      const spec = { mode: 'Process', lifecycle: 'Warm', min: 1, max: 1 } as const
      await client.resource(workerPoolResource).create({ metadata: { name: 'warm' }, spec })
      await sleep(3_000)
      return [
        rowOf('process of its own (oarlock up)', oneShot),
        rowOf('Warm process (oarlock up)', await changes(client, 'default', 'warm', rounds)),
      ]
    } finally {
      await stop()
    }
  })
}

async function changes(client: Client, namespace: string, pool: string, rounds: number): Promise<Change[]> {
  const stacks = new StackFixture(client, namespace)
  const name = `latency-${pool}`
  const spec: StackSpec = {
    ...{ engine: 'command', pool, historyLimit: 100, interval: '24h', source: { inline: { files: { a: '' } } } },
    command: { apply: ['true'] },
    variables: { change: 0 },
  }
  await stacks.create(name, spec)
  await stacks.until(name, 'Ready', isReady, timeoutMs)
  const made: Change[] = []
  for (let change = 1; change <= warmUp + rounds; change++) {
    // The previous worker and its Pod have ended.
    await sleep(pool === 'default' ? 3_000 : 500)
    const changedMs = Date.now()
    await stacks.patch(name, { spec: { variables: { change } } })
    const ready = await eventually(
      async () => {
        const stack = await stacks.get(name)
        return isReady(stack) && stack
      },
      `change ${change} of ${name}`,
      timeoutMs,
    )
    const readyMs = Date.now()
    const run = ready.status?.lastRun?.name ?? ''
    const { spec } = await stacks.runs.get(run, { namespace })
    if (change > warmUp) made.push({ changedMs, readyMs, run, worker: spec.workerName ?? '' })
  }
  return made
}

/** Names of parts with their milliseconds for each change, and the writes of a Run. */
function partsOf(made: readonly Change[], requests: readonly ApiRequest[]): Record<string, number[]> {
  const parts: Record<string, number[]> = {}
  const add = (part: string, ms: number) => {
    parts[part] ??= []
    parts[part].push(ms)
  }
  for (const { changedMs, readyMs, run, worker } of made) {
    const timeOf = (verb: string, resource: string, name: string) =>
      requests.find(each => each.verb === verb && each.resource === resource && each.name === name)?.receivedMs ?? Number.NaN
    const podMs = timeOf('create', 'pods', worker)
    const scheduledMs = timeOf('create', 'pods/binding', worker)
    const registeredMs = timeOf('create', 'leases', worker)
    const endedMs = timeOf('patch', 'runs/status', run)
    add('change → Pod created', podMs - changedMs)
    add('of it scheduler', scheduledMs - podMs)
    add('start of the Pod', registeredMs - podMs)
    add('registered → result', endedMs - registeredMs)
    add('result → Ready', readyMs - endedMs)
    // Of this Run: the writes until the next change that name it, its worker or its Stack.
    const names = new Set([run, worker, run.replace(/-\d+$/, '')])
    const own = requests.filter(
      each =>
        ['controllers', 'workers'].includes(senderOf(each)) &&
        each.resource !== 'events' &&
        each.receivedMs >= changedMs &&
        each.receivedMs < readyMs + 3_000 &&
        names.has(each.name),
    )
    add('writes', own.length)
  }
  return parts
}

function rowOf(where: string, made: readonly Change[], parts: Record<string, number[]> = {}): Record<string, string | number> {
  const middle = (values: readonly number[], share = 0.5) => {
    const sorted = values.toSorted((a, b) => a - b)
    return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN)
  }
  const totals = made.map(({ changedMs, readyMs }) => readyMs - changedMs)
  const start = parts['start of the Pod']
  const text = (part: string) => (parts[part] ? String(middle(parts[part])) : '')
  return {
    worker: where,
    'p50 ms': middle(totals),
    'p90 ms': middle(totals, 0.9),
    'start of the Pod p50': text('start of the Pod'),
    'without it': start ? String(middle(totals.map((total, index) => total - (start[index] ?? 0)))) : '',
    'change → Pod': text('change → Pod created'),
    scheduler: text('of it scheduler'),
    'registered → result': text('registered → result'),
    'result → Ready': text('result → Ready'),
    'writes for a Run': text('writes'),
  }
}
