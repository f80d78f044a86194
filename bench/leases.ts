/** Renewals of the Leases of many workers on the embedded server. `--workers N`, `--duration S`, `--renew S` (seconds). */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { oarlockResources, systemNamespace } from '../src/api/index.ts'
import type { HollowReport } from '../src/cli/commands/hollow.ts'
import { createClient, installKinds, namespaceResource } from '../src/kubernetes/client/index.ts'
import { isReason } from '../src/kubernetes/object/index.ts'
import type { Bench } from './run.ts'
import { rssMbOf, startServerProcess } from './server-process.ts'

/** The server alone, every write durable and over TLS; all workers in another process. Memory is the highest sample. */
export async function bench(args: string[]): Promise<Bench> {
  const { workers, seconds, renew } = optionsOf(args)
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-bench-'))
  const server = await startServerProcess(dataDir)
  try {
    await prepare(server.kubeconfigPath)
    const idleMb = server.rssMb()
    const fleet = startHollow([
      ...['--kubeconfig', server.kubeconfigPath, '--workers', String(workers), '--renew', `${renew}s`, '--duration', `${seconds}s`],
      ...['--connections', '2', '-o', 'json'],
    ])
    let serverMb = 0
    let fleetMb = 0
    let bothMb = 0
    const cpuBefore = server.cpuSeconds()
    const sampling = setInterval(() => {
      const [one, other] = [server.rssMb(), rssMbOf(fleet.pid)]
      serverMb = Math.max(serverMb, one)
      fleetMb = Math.max(fleetMb, other)
      bothMb = Math.max(bothMb, one + other)
    }, 500)
    const report = await fleet.ended.finally(() => clearInterval(sampling))
    const { renewals } = report
    return {
      title: `${workers.toLocaleString('en-US')} workers' Leases, each renewed every ${renew} s`,
      about:
        'Time from the due time of a renewal until its response, after all workers have registered; the embedded server alone, the workers in one process. ' +
        'Memory is the highest sample, including registration and removal.',
      rows: [
        {
          workers: report.workers.registered,
          lost: report.workers.lost,
          'seconds in all': report.seconds,
          renewals: renewals.succeeded,
          late: renewals.late,
          'p50 ms': renewals.p50Ms,
          'p99 ms': renewals.p99Ms,
          'max ms': renewals.maxMs,
          'server idle MB': idleMb,
          'server MB': serverMb,
          'workers MB': fleetMb,
          'both MB': bothMb,
          'server cpu s': server.cpuSeconds() - cpuBefore,
          load: loadavg()[0] ?? 0,
        },
      ],
    }
  } finally {
    await server.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

function optionsOf(args: string[]): { workers: number; seconds: number; renew: number } {
  const text = (value: string) => ({ type: 'string', default: value }) as const
  const { values } = parseArgs({
    args,
    strict: false,
    allowPositionals: true,
    options: { workers: text('50000'), duration: text('60'), renew: text('10') },
  })
  const [workers = 0, seconds = 0, renew = 0] = [values.workers, values.duration, values.renew].map(Number)
  if (workers > 0 && seconds > 0 && renew > 0) return { workers, seconds, renew }
  throw new Error('--workers, --duration and --renew must be numbers > 0; duration and renew are in seconds')
}

async function prepare(kubeconfig: string): Promise<void> {
  const client = await createClient({ kubeconfig })
  await installKinds(client, oarlockResources)
  await client
    .resource(namespaceResource)
    .create({ metadata: { name: systemNamespace } })
    .catch(error => {
      if (!isReason(error, 'AlreadyExists')) throw error
    })
  await client.close()
}

/** Starts `oarlock hollow` in its own process. */
export function startHollow(args: string[]): { pid: number; ended: Promise<HollowReport> } {
  const child = spawn(process.execPath, [join(import.meta.dirname, '..', 'bin', 'oarlock.js'), 'hollow', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  // A benchmark that fails or is interrupted leaves no process.
  process.once('exit', () => child.kill('SIGKILL'))
  const ended = (async () => {
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (part: string) => (text += part))
    const [code] = await once(child, 'close')
    if (text === '') throw new Error(`oarlock hollow exited with code ${code} and printed nothing`)
    return JSON.parse(text) as HollowReport
  })()
  return { pid: child.pid as number, ended }
}
