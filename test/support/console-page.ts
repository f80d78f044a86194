import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { History, type ProjectionSources, Projections } from '../../src/console/projection/index.ts'
import type { RunRow, StackRow, StackState } from '../../src/console/protocol/index.ts'
import { ConsoleServer, type ConsoleServerOptions, OneTimeLinks } from '../../src/console/server/index.ts'
import { StatusError } from '../../src/kubernetes/object/index.ts'

const { buildConsole } = (await import(join(import.meta.dirname, '../../scripts/build-console.mjs'))) as {
  buildConsole(root: string, outdir: string): Promise<string[]>
}

const states: readonly StackState[] = [
  'Ready',
  'Ready',
  'Ready',
  'Ready',
  'Ready',
  'Working',
  'Failed',
  'Drifted',
  'AwaitingApproval',
  'Suspended',
]
const engines = ['opentofu', 'terraform', 'pulumi', 'manifests', 'command']
/** As the controller of Stacks writes them (`src/controllers/stack/outlook-conditions.ts`), about this Run. */
const messagesOf = (run: string): Partial<Record<StackState, readonly [reason: string, message: string]>> => ({
  Ready: ['Applied', 'Applied: 3 added, 0 changed, 0 destroyed'],
  Working: ['Progressing', `Run ${run} (Apply) is Applying`],
  Failed: [
    'ApplyFailed',
    `Run ${run} failed: Error: creating S3 Bucket: operation error S3: CreateBucket, https response error StatusCode: 403, AccessDenied`,
  ],
  Drifted: ['Drifted', `Run ${run} found drift: 0 to add, 2 to change, 0 to destroy. It is corrected by the next Run`],
  AwaitingApproval: ['AwaitingApproval', `Plan sha256:ab12ab12ab12… of Run ${run} awaits approval: 1 to add, 0 to change, 0 to destroy`],
  Suspended: ['Suspended', 'The Stack is suspended; set spec.suspend to false to resume. Applied: 3 added, 0 changed, 0 destroyed'],
})

/** The row of one of many Stacks: the same for the same number. */
export function stackRowOf(index: number, nowMs: number): StackRow {
  const state = states[index % states.length] as StackState
  const namespace = `team-${String(index % 40).padStart(2, '0')}`
  const name = `service-${String(index).padStart(5, '0')}`
  const [reason, message] = messagesOf(`${name}-2`)[state] ?? ['Progressing', 'A Run is needed for generation 1']
  return {
    ...{
      key: `${namespace}/${name}`,
      namespace,
      name,
      tenant: `tenant-${index % 7}`,
      engine: engines[index % 5] as string,
      pool: 'default',
    },
    ...{ state, reason, message, resources: (index * 7) % 140, suspended: state === 'Suspended', labels: { team: namespace } },
    ...(state === 'Working' && { activeRun: `${name}-2`, phase: 'Applying', progress: { done: index % 12, total: 12 } }),
    ...(state === 'AwaitingApproval' && {
      plan: {
        add: index % 9,
        change: index % 4,
        destroy: index % 3,
        digest: `sha256:${'ab12'.repeat(16)}`,
        runName: `${name}-2`,
      },
    }),
    ...{ createdMs: nowMs - 86_400_000, finishedMs: nowMs - (index % 900) * 60_000, sinceMs: nowMs - (index % 700) * 60_000 },
  }
}

export function runRowOf(index: number, nowMs: number): RunRow {
  const { namespace, name, tenant, engine, pool } = stackRowOf(index, nowMs)
  const phase = (['Succeeded', 'Succeeded', 'Failed', 'Applying', 'Queued', 'Planning'] as const)[index % 6] as string
  const isEnded = phase === 'Succeeded' || phase === 'Failed'
  const createdMs = nowMs - index * 7_000
  return {
    ...{
      key: `${namespace}/${name}-1`,
      namespace,
      name: `${name}-1`,
      stack: name,
      epoch: 1,
      tenant: tenant as string,
      engine,
      pool,
      phase,
    },
    ...{ type: index % 3 === 0 ? 'Plan' : 'Apply', trigger: index % 2 === 0 ? 'SourceChanged' : 'DriftCheck', createdMs },
    ...(phase === 'Queued'
      ? { queuePosition: (index % 90) + 1, reason: 'PoolLimit', message: 'pool default has its maximum of workers' }
      : { startedMs: createdMs + 1_000 }),
    ...(isEnded && { finishedMs: createdMs + 42_000, plan: { add: index % 4, change: 1, destroy: 0 } }),
    ...(phase === 'Applying' && { progress: { done: index % 8, total: 8 }, worker: 'worker-1' }),
  }
}

/** The built page on the console's server, with rows that no cache has made. `#token=` of `link` signs in. */
export async function startConsolePage(
  directory: string,
  options: { readonly stacks: number } & Partial<ConsoleServerOptions>,
): Promise<{
  readonly url: string
  readonly link: () => string
  readonly projections: Projections
  readonly history: History
  readonly server: Server
  close(): Promise<void>
}> {
  const { stacks, ...more } = options
  await buildConsole(join(import.meta.dirname, '../..'), directory)
  const cache = { onChange: () => {}, get: () => undefined, list: () => [] }
  const names = ['stacks', 'runs', 'workers', 'pools', 'tenants', 'namespaces', 'leases'] as const
  const projections = new Projections(Object.fromEntries(names.map(name => [name, cache])) as unknown as ProjectionSources)
  const nowMs = Date.now()
  for (let index = 0; index < stacks; index++) projections.tables.stacks.set(stackRowOf(index, nowMs))
  const links = new OneTimeLinks()
  const history = new History()
  const console_ = new ConsoleServer({
    administrator: { linkToken: 'token-of-the-data-directory', user: { name: 'oarlock:admin', groups: ['system:masters'] } },
    ...{ projections, history, links, assetsDirectory: directory, version: '0.1.0' },
    reachedBy: () => 'loopback',
    authenticateToken: async token => (token === 'test-token' ? { name: 'anna@example.com', groups: ['platform'] } : undefined),
    connect: async () => {
      throw new StatusError('ServiceUnavailable', 'this server has no objects')
    },
    isAllowed: async () => true,
    onError: error => console.error(error),
    ...more,
  })
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '', 'http://localhost').pathname
    void console_.handle(path, request, response)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/console/`
  const close = async () => {
    await console_.close()
    server.close()
    server.closeAllConnections()
  }
  return {
    url,
    link: () => `${url}#token=${links.issue({ user: { name: 'anna@example.com', groups: ['platform'] }, method: 'link' })}`,
    projections,
    history,
    server,
    close,
  }
}
