/** What an idle installation costs a kube-apiserver: two controllers, stores and join service as processes, Stacks that hollow workers have made Ready. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { stackResource } from '../../src/api/index.ts'
import { installOarlock } from '../../src/app/controllers/install.ts'
import { isConditionTrue } from '../../src/kubernetes/object/index.ts'
import { Cluster } from '../../test/cluster/cluster.ts'
import { clusterMissing } from '../../test/cluster/programs.ts'
import { accountKubeconfig, controllerArgs, RoleProcesses } from '../../test/support/role-process.ts'
import { argument } from '../faults/chain.ts'
import { startHollow } from '../leases.ts'
import type { Bench } from '../run.ts'
import { cpuSecondsOf, privateMbOf, rssMbOf } from '../server-process.ts'
import { isWrite, readAuditLog } from './api-requests.ts'

/** As bin/oarlock sets it. */
const malloc = { MALLOC_ARENA_MAX: '1', MALLOC_MMAP_THRESHOLD_: '32768', MALLOC_TRIM_THRESHOLD_: '131072' }
const settleMs = 60_000

export async function idleLoad(args: string[]): Promise<Bench> {
  const missing = clusterMissing({ hasNodes: false })
  if (missing) throw new Error(missing)
  const count = Number(argument(args, 'stacks', '1000'))
  const seconds = Number(argument(args, 'observe', '120'))
  const base = mkdtempSync(join(tmpdir(), 'oarlock-idle-'))
  const cluster = await Cluster.start({ nodes: 0, audit: 'All' })
  const roles = new RoleProcesses(base)
  try {
    const { client, controlPlane } = cluster
    await installOarlock(client)
    const config = JSON.parse(readFileSync(cluster.kubeconfig, 'utf8'))
    const ca = Buffer.from(config.clusters[0].cluster['certificate-authority-data'], 'base64').toString()
    const listen = ['--listen', '127.0.0.1:0']
    const commands = [
      { role: 'stores', args: ['stores', ...listen] },
      { role: 'join-service', args: ['join-service', ...listen] },
      { role: 'controller', args: controllerArgs, name: 'controller 1' },
      { role: 'controller', args: controllerArgs, name: 'controller 2' },
    ]
    const pids = new Map<string, number>()
    for (const { role, args, name = role } of commands) {
      const directory = name.replace(' ', '-')
      const file = roles.file(directory, 'kubeconfig', await accountKubeconfig(client, `oarlock-${role}`, ca))
      const { child } = await roles.start(directory, [...args, '--kubeconfig', file, '--data', '.'], /^ready/m, malloc)
      pids.set(name, child.pid as number)
    }
    const server = controlPlane.program('kube-apiserver').pid
    const observe = async () => {
      const [before, startedMs] = [cpuSecondsOf(server), Date.now()]
      const cpu = new Map([...pids].map(([name, pid]) => [name, cpuSecondsOf(pid)]))
      await sleep(seconds * 1_000)
      const percentOf = (used: number) => (100 * used) / seconds
      return {
        startedMs,
        endedMs: Date.now(),
        serverPercent: percentOf(cpuSecondsOf(server) - before),
        percent: (name: string) => percentOf(cpuSecondsOf(pids.get(name) as number) - (cpu.get(name) ?? 0)),
      }
    }
    const empty = await observe()

    const rate = Number(argument(args, 'rate', '30'))
    const runSeconds = Math.ceil(count / rate)
    const hollow = ['--kubeconfig', cluster.kubeconfig, '--workers', '50', '--keep', '--connections', '2', '-o', 'json']
    await startHollow([...hollow, '--stacks', String(count), '--runs-per-second', String(rate), '--duration', `${runSeconds}s`]).ended
    const readyCount = async () =>
      (await client.resource(stackResource).listAll()).items.filter(({ status }) => isConditionTrue(status?.conditions, 'Ready')).length
    let ready = await readyCount()
    // A machine that does not reach this rate has a queue left: the same workers, without further changes.
    for (let before = -1; ready < count && ready > before; ) {
      process.stderr.write(`${ready} of ${count} Stacks are Ready\n`)
      await startHollow([...hollow, '--duration', '60s']).ended
      before = ready
      ready = await readyCount()
    }
    await sleep(settleMs)
    const idle = await observe()

    const byUser = new Map<string, { reads: number; watches: number; writes: number }>()
    const emptyRequests = { reads: 0, watches: 0, writes: 0 }
    const kindOf = (verb: string) => (verb === 'watch' ? 'watches' : 'reads')
    for await (const request of readAuditLog(controlPlane.auditLog)) {
      if (!request.user.startsWith('system:serviceaccount:oarlock-system:')) continue
      const kind = isWrite(request) ? 'writes' : kindOf(request.verb)
      if (request.receivedMs >= empty.startedMs && request.receivedMs < empty.endedMs) emptyRequests[kind]++
      if (request.receivedMs < idle.startedMs || request.receivedMs >= idle.endedMs) continue
      const user = request.user.split(':').at(-1) ?? ''
      const counts = byUser.get(user) ?? { reads: 0, watches: 0, writes: 0 }
      counts[kind]++
      byUser.set(user, counts)
    }
    const perMinute = (number: number) => Number(((60 * number) / seconds).toFixed(1))
    const rows = [...pids].map(([name, pid]) => {
      // Both controllers have one account.
      const account = `oarlock-${name.replace(/ \d$/, '')}`
      const { reads = 0, watches = 0, writes = 0 } = name === 'controller 2' ? {} : (byUser.get(account) ?? {})
      return {
        process: name,
        'RSS MB': rssMbOf(pid),
        'of it private MB': privateMbOf(pid),
        'CPU % of a core': Number(idle.percent(name).toFixed(2)),
        'reads/min': perMinute(reads),
        'watches started/min': perMinute(watches),
        'writes/min': perMinute(writes),
      }
    })
    rows.push({
      ...{ process: 'kube-apiserver', 'RSS MB': rssMbOf(server), 'of it private MB': privateMbOf(server) },
      'CPU % of a core': Number(idle.serverPercent.toFixed(2)),
      ...{ 'reads/min': 0, 'watches started/min': 0, 'writes/min': 0 },
    })
    return {
      title: `${ready} of ${count} Stacks Ready on a kube-apiserver, idle`,
      about:
        `Requests over ${seconds} s from its audit log; those of both controllers are in the first row of a controller. Before the first Stack: ` +
        `${perMinute(emptyRequests.reads)} reads, ${perMinute(emptyRequests.watches)} watches and ${perMinute(emptyRequests.writes)} writes a minute together, kube-apiserver ${empty.serverPercent.toFixed(2)} % of a core.`,
      rows,
      failed: ready < count,
    }
  } finally {
    await roles.stopAll()
    await cluster.close()
    rmSync(base, { recursive: true, force: true })
  }
}
