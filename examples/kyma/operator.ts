/** The operator as a separate process: settings as JSON in argv[2]; reports to its parent over IPC. */
import { type Client, createClient } from '../../src/kubernetes/client/index.ts'
import { coerceError, type Log, lowPriority, Manager } from '../../src/kubernetes/controller/index.ts'
import { objectKey } from '../../src/kubernetes/index.ts'
import { componentController } from './component-controller.ts'
import { componentResource, kymaResource } from './kinds.ts'
import { kymaController, ownerOf, succeededOf } from './kyma-controller.ts'
import { Renderer } from './renderer.ts'
import { ring, type Settings } from './settings.ts'
import { type FromOperator, newCounters, ownUsage, type ToOperator } from './stats.ts'

const startedMs = performance.now()
const settings = JSON.parse(process.argv[2] as string) as Settings
const counters = newCounters()
let errors = 0
let lastError: string | undefined
const note = (fields: object) => {
  errors++
  lastError = coerceError((fields as { err?: unknown }).err).message
}
const log: Log = { debug: () => undefined, info: () => undefined, warn: note, error: note, child: () => log }

const client = await createClient({
  kubeconfig: settings.kubeconfig,
  userAgent: 'kyma-operator',
  rateLimit: settings.rateLimit,
  connections: settings.connections,
})
const { faults, shards } = settings
const manager = new Manager({ client: faults > 0 ? await faulty() : client, log, ...(shards && { shards: { ...ring, ...shards } }) })
const kymas = manager.informer(kymaResource, { sharded: shards && 'root', hotObjects: settings.hotObjects })
const components = manager.informer(componentResource, {
  sharded: shards && 'owned',
  indexes: { owner: ownerOf, succeeded: succeededOf },
  hotObjects: settings.hotObjects,
})
const renderer = settings.render === 'no' ? undefined : new Renderer(settings.render === 'once')
const componentWalker = componentController(manager, settings, counters, renderer)
const kymaWalker = kymaController(manager, settings, counters)
manager.add(componentWalker)
manager.add(kymaWalker)

let succeeded = 0
const isSuccess = (kyma: { status?: { status?: string } }) => (kyma.status?.status === 'success' ? 1 : 0)
kymas.onChange({
  added: kyma => {
    succeeded += isSuccess(kyma)
  },
  updated: (old, kyma) => {
    succeeded += isSuccess(kyma) - isSuccess(old)
  },
  deleted: kyma => {
    succeeded -= isSuccess(kyma)
  },
})

/** Loaded only when needed, because it includes an API server. */
async function faulty(): Promise<Client> {
  const { withFaults } = await import('../../src/kubernetes/testing/index.ts')
  return withFaults(client, { internalError: faults, filter: ({ method }) => method !== 'GET' })
}

const send = (message: FromOperator) => process.send?.(message)
const report = () =>
  send({
    type: 'report',
    ...counters,
    kymas: kymas.size,
    components: components.size,
    succeeded,
    queueDepth: componentWalker.depth.waiting + kymaWalker.depth.waiting,
    delayed: componentWalker.depth.delayed + kymaWalker.depth.delayed,
    ...ownUsage(),
    errors,
    lastError,
    renderedKb: (renderer?.bytes ?? 0) / 1e3,
  })
const reports = setInterval(report, 250)

/** Reconciles everything once at low priority; done when the queues are empty. */
async function resync(): Promise<number> {
  const began = performance.now()
  for (const object of components.list()) componentWalker.enqueue(objectKey(object), { priority: lowPriority })
  for (const object of kymas.list()) kymaWalker.enqueue(objectKey(object), { priority: lowPriority })
  while (componentWalker.depth.waiting + componentWalker.depth.running + kymaWalker.depth.waiting + kymaWalker.depth.running > 0) {
    await new Promise(resolve => setTimeout(resolve, 5))
  }
  return (performance.now() - began) / 1_000
}

async function stop(): Promise<void> {
  clearInterval(reports)
  await manager.stop({ graceMs: 5_000 })
  report()
  await client.close()
  process.disconnect?.()
  process.exit(0)
}

process.on('message', (message: ToOperator) => {
  if (message.type === 'stop') void stop()
  else void resync().then(seconds => send({ type: 'resynced', seconds }))
})
process.on('SIGTERM', () => void stop())
process.on('SIGINT', () => undefined)
process.on('disconnect', () => void stop())

await manager.start()
send({ type: 'synced', seconds: (performance.now() - startedMs) / 1_000, objects: kymas.size + components.size })
