/**
 * Managed resources (issue 17): `npm run bench -- managed --what polls|locks|jobs`. `polls`: `--resources 10000 --replicas 3 --poll 60 --rounds 3 --latency 200
 * [--kill]`. `locks`: `--times 50 --fault kill|stop --lock none|shard|lease --lease 4`. `jobs`: `--resources 10000 --replicas 3
 * --poll 60 --latency 200 --jobs 100 --minutes 10 --compress 4 --times 2`.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { bucketResource } from '../src/controllers/managed/fake-cloud.testing.ts'
import { type Client, createClient, installKinds } from '../src/kubernetes/client/index.ts'
import { lockNames } from '../test/support/managed/fleet.ts'
import { jobs } from './managed/jobs.ts'
import { locks } from './managed/locks.ts'
import { polls } from './managed/polls.ts'
import type { Bench } from './run.ts'
import { startServerProcess } from './server-process.ts'

export type BenchServer = { readonly client: Client; readonly kubeconfig: string }

export async function bench(args: string[]): Promise<Bench> {
  const text = { type: 'string' } as const
  const options = {
    ...{
      what: text,
      resources: text,
      replicas: text,
      poll: text,
      rounds: text,
      latency: text,
      times: text,
      fault: text,
      lock: text,
      lease: text,
      jobs: text,
      minutes: text,
      compress: text,
    },
    kill: { type: 'boolean' },
  } as const
  const { values } = parseArgs({ args, strict: false, allowPositionals: true, options })
  type NumberName = 'resources' | 'replicas' | 'poll' | 'rounds' | 'latency' | 'times' | 'lease' | 'jobs' | 'minutes' | 'compress'
  const number = (name: NumberName, byDefault: number) => {
    const value = Number(values[name] ?? byDefault)
    if (!(value > 0)) throw new RangeError(`--${name} must be a number > 0, got ${JSON.stringify(values[name])}`)
    return value
  }
  if (values.what === 'polls') {
    const settings = {
      resources: number('resources', 10_000),
      replicas: number('replicas', 3),
      pollS: number('poll', 60),
      rounds: number('rounds', 3),
    }
    const faults = { latencyMs: number('latency', 200), leaseMs: number('lease', 6) * 1_000, kills: values.kill === true }
    return await withServer(server => polls(server, { ...settings, ...faults }))
  }
  if (values.what === 'locks') {
    const fault = values.fault ?? 'kill'
    if (fault !== 'kill' && fault !== 'stop') throw new TypeError(`--fault must be kill or stop, got ${JSON.stringify(fault)}`)
    const chosen = lockNames.filter(name => values.lock === undefined || values.lock === name)
    if (chosen.length === 0) throw new TypeError(`--lock must be one of ${lockNames.join(', ')}, got ${JSON.stringify(values.lock)}`)
    return await locks(withServer, { fault, locks: chosen, times: number('times', 50), leaseMs: number('lease', 4) * 1_000 })
  }
  if (values.what === 'jobs') {
    return await jobs({
      ...{ resources: number('resources', 10_000), replicas: number('replicas', 3), pollS: number('poll', 60) },
      ...{ latencyMs: number('latency', 200), leaseMs: number('lease', 6) * 1_000, times: number('times', 2) },
      ...{ jobs: number('jobs', 100), minutes: number('minutes', 10), compress: number('compress', 4) },
    })
  }
  throw new TypeError(`--what must be polls, locks or jobs, got ${JSON.stringify(values.what)}`)
}

export type WithServer = <T>(use: (server: BenchServer) => Promise<T>) => Promise<T>

/** An API server in a process of its own for the time of `use`. */
const withServer: WithServer = async use => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-bench-managed-'))
  const server = await startServerProcess(join(directory, 'server'))
  const killServer = () => process.kill(server.pid, 'SIGKILL')
  process.once('exit', killServer)
  const client = await createClient({ kubeconfig: server.kubeconfigPath, userAgent: 'bench', connections: 4 })
  try {
    await installKinds(client, [bucketResource])
    return await use({ client, kubeconfig: server.kubeconfigPath })
  } finally {
    await client.close()
    process.removeListener('exit', killServer)
    await server.stop()
    rmSync(directory, { recursive: true, force: true })
  }
}
