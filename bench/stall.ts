/** What one user's costly requests do to the requests of another: `npm run bench -- stall [--requests N] [--only REGEXP]`. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Endpoint, RawConnection } from './load/raw-connection.ts'
import type { Bench } from './run.ts'
import { endpointOf } from './server.ts'
import { type ServerProcess, startServerProcess } from './server-process.ts'
import { type CostlyRequest, costlyRequests, prepare } from './stall-requests.ts'

const connections = 4

/** The server alone; the costly requests are sent over 4 connections, the gets of another user by a process of their own. */
export async function bench(args: string[]): Promise<Bench> {
  const { values } = parseArgs({
    args: args.slice(1),
    strict: false,
    options: { requests: { type: 'string', default: '12' }, only: { type: 'string', default: '' } },
  })
  const count = Number(values.requests)
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-bench-'))
  const server = await startServerProcess(dataDir)
  const attacker = endpointOf(server.kubeconfigPath)
  const open = await Promise.all(Array.from({ length: connections }, () => RawConnection.open(attacker)))
  const getter = await startGetter(open[0]!, attacker)
  try {
    await prepare(open[0]!)
    const rows: Bench['rows'] = []
    for (const requests of costlyRequests) {
      if (!new RegExp(String(values.only)).test(requests.name)) continue
      rows.push(await measure(requests, count, open, getter, server))
    }
    return {
      title: `Latency of a get while another user sends costly requests over ${connections} connections`,
      about:
        'CPU is that of the whole server process per costly request. `blocked ms` is the longest get: no other request was served meanwhile.',
      rows,
    }
  } finally {
    getter.disconnect()
    for (const connection of open) connection.close()
    await server.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function measure(
  { name, send }: CostlyRequest,
  count: number,
  open: readonly RawConnection[],
  getter: ChildProcess,
  server: ServerProcess,
): Promise<Bench['rows'][number]> {
  const statuses = new Map<number, number>()
  await latenciesOf(getter)
  const cpuBefore = server.cpuSeconds()
  let next = 0
  await Promise.all(
    open.map(async connection => {
      while (next < count) {
        const { status } = await send(connection, next++)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }),
  )
  const cpuMs = ((server.cpuSeconds() - cpuBefore) * 1_000) / count
  const latencies = (await latenciesOf(getter)).sort((a, b) => a - b)
  return {
    request: name,
    status: [...statuses].map(([status, times]) => `${status}: ${times}`).join(', '),
    'cpu ms each': cpuMs,
    'get p50 ms': latencies[Math.floor(latencies.length / 2)] ?? 0,
    'get p99 ms': latencies[Math.floor(latencies.length * 0.99)] ?? 0,
    'blocked ms': latencies.at(-1) ?? 0,
    load: loadavg()[0] ?? 0,
  }
}

async function latenciesOf(getter: ChildProcess): Promise<number[]> {
  getter.send('latencies')
  const [latencies] = (await once(getter, 'message')) as [number[]]
  return latencies
}

/** A process that sends gets as another user. */
async function startGetter(admin: RawConnection, endpoint: Endpoint): Promise<ChildProcess> {
  const accounts = '/api/v1/namespaces/default/serviceaccounts'
  await admin.request('POST', accounts, JSON.stringify({ metadata: { name: 'other' } }))
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' }
  const subjects = [{ kind: 'ServiceAccount', name: 'other', namespace: 'default' }]
  const binding = { metadata: { name: 'other' }, roleRef, subjects }
  await admin.request('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', JSON.stringify(binding))
  const { body } = await admin.request('POST', `${accounts}/other/token`, JSON.stringify({ spec: {} }))
  const { token } = JSON.parse(body.toString()).status as { token: string }
  const script = join(import.meta.dirname, 'load', 'get-latency.ts')
  return fork(script, [JSON.stringify({ ...endpoint, token }), '/api/v1/namespaces/default'])
}
