/**
 * A queue of Runs in Pods on nodes that kwok simulates: etcd, kube-apiserver, scheduler, controller manager and `oarlock controller` are real, and for each
 * Pod that kwok reports as running, this process acts as its worker. `--nodes N` (default 2000), `--runs N` (default 5000), `--max N` workers (default 200).
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Run,
  runResource,
  stackFinalizer,
  stackResource,
  systemNamespace,
  workerPoolResource,
  workerResource,
} from '../src/api/index.ts'
import { installOarlock } from '../src/app/controllers/install.ts'
import { type Client, namespaceResource } from '../src/kubernetes/client/index.ts'
import { Manager, silentLog } from '../src/kubernetes/controller/index.ts'
import { describeResource } from '../src/kubernetes/object/index.ts'
import { Cluster } from '../test/cluster/cluster.ts'
import { built, clusterMissing, Program } from '../test/cluster/programs.ts'
import { eventually } from '../test/support/eventually.ts'
import { accountKubeconfig, controllerArgs, RoleProcesses } from '../test/support/role-process.ts'
import { isWrite, readAuditLog, senderOf } from './cluster/api-requests.ts'
import { HollowPods, type PodBody, podResource } from './cluster/hollow-pods.ts'
import { argument, spread } from './faults/chain.ts'
import type { Bench } from './run.ts'

const maxWritesPerRun = 8
const nodeResource = describeResource<object>({ group: '', version: 'v1', kind: 'Node', plural: 'nodes', scope: 'Cluster' })
const namespace = 'fleet'

export async function bench(args: string[]): Promise<Bench> {
  const missing = clusterMissing({ hasNodes: false, others: ['kwok', 'kwok-stages.yaml'] })
  if (missing) throw new Error(`${missing}; kwok: scripts/build-kwok.sh`)
  const [nodes, runs, max] = [
    ['nodes', '2000'],
    ['runs', '5000'],
    ['max', '200'],
  ].map(([name, value]) => Number(argument(args, name as string, value as string))) as [number, number, number]
  const base = mkdtempSync(join(tmpdir(), 'oarlock-kwok-'))
  const cluster = await Cluster.start({ nodes: 0, monitorGraceSeconds: 86_400, audit: 'Writes' })
  const roles = new RoleProcesses(base)
  const programs: Program[] = []
  try {
    const { client, controlPlane } = cluster
    await installOarlock(client)
    for (const name of [namespace, systemNamespace]) await createNamespace(client, name)
    const kwok = new Program('kwok', join(base, 'kwok.log'), [
      ...[built('kwok'), `--kubeconfig=${controlPlane.kubeconfig('kwok', 'system:masters')}`, '--manage-all-nodes=true'],
      // Few heartbeats: nodes are not what is measured.
      ...[`--config=${built('kwok-stages.yaml')}`, '--node-lease-duration-seconds=600', '--server-address='],
    ])
    programs.push(kwok)
    await addNodes(client, nodes)
    const text = readFileSync(cluster.kubeconfig, 'utf8')
    const ca = Buffer.from(JSON.parse(text).clusters[0].cluster['certificate-authority-data'], 'base64').toString()
    const file = roles.file('controller', 'kubeconfig', await accountKubeconfig(client, 'oarlock-controller', ca))
    await roles.start('controller', [...controllerArgs, '--kubeconfig', file, '--data', '.'], /^ready/m)

    await createStacks(client, runs)
    await untilObserved(client)
    const queuedAtMs = Date.now()
    await resumeStacks(client, runs)
    await eventually(async () => (await countRuns(client)) >= runs, `${runs} queued Runs`, 600_000)
    const observed = await Observation.start(client)
    const pods = new HollowPods({ client, server: controlPlane.url, caCertificate: ca })
    await pods.start()
    const template = { spec: { containers: [{ name: 'worker', image: 'oarlock:hollow' }] } }
    const startedMs = Date.now()
    await client
      .resource(workerPoolResource)
      .create({ metadata: { name: 'pods' }, spec: { mode: 'Pod', lifecycle: 'OneShot', max, template } })
    await observed.untilEnded(runs)
    const seconds = (Date.now() - startedMs) / 1_000
    // Until the controllers have reported the last Runs and everything of the last workers is deleted.
    await eventually(async () => (await client.resource(workerResource).listAll()).items.length === 0, 'no Worker to remain', 120_000)
    await sleep(5_000)
    await pods.stop()
    await observed.stop()
    return await summarize({ auditLog: controlPlane.auditLog, queuedAtMs, nodes, runs, max, seconds, observed, pods })
  } finally {
    await roles.stopAll()
    for (const program of programs) await program.stop(2_000)
    await cluster.close()
    rmSync(base, { recursive: true, force: true })
  }
}

async function createNamespace(client: Client, name: string): Promise<void> {
  const namespaces = client.resource(namespaceResource)
  if (!(await namespaces.getOrUndefined(name))) await namespaces.create({ metadata: { name } })
}

async function inParallel(count: number, work: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const consume = async () => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: 32 }, consume))
}

async function addNodes(client: Client, count: number): Promise<void> {
  const handle = client.resource(nodeResource)
  const capacity = { cpu: '8', memory: '32Gi', pods: '110' }
  await inParallel(count, index =>
    handle.create({ metadata: { name: `kwok-${index}` }, status: { capacity, allocatable: capacity } } as never),
  )
  const ready = async () =>
    (await handle.listAll()).items.filter(node =>
      (node as { status?: { conditions?: { type: string; status: string }[] } }).status?.conditions?.some(
        ({ type, status }) => type === 'Ready' && status === 'True',
      ),
    ).length
  await eventually(async () => (await ready()) === count, `${count} nodes to be Ready`, 300_000)
}

async function createStacks(client: Client, count: number): Promise<void> {
  await inParallel(count, index =>
    client.resource(stackResource).create({
      metadata: { name: `stack-${index}`, namespace },
      spec: {
        ...{ engine: 'command', pool: 'pods', interval: '24h', suspend: true },
        source: { inline: { files: { 'note.txt': `${index}` } } },
        command: { apply: ['true'] },
      },
    }),
  )
}

/** The Stacks are ready for their first Run, so that only writes for Runs are counted. */
async function untilObserved(client: Client): Promise<void> {
  const stacks = client.resource(stackResource)
  await eventually(
    async () =>
      (await stacks.listAll({ namespace })).items.every(
        ({ metadata, status }) => status?.observedGeneration === 1 && metadata.finalizers?.includes(stackFinalizer),
      ),
    'all Stacks to be observed',
    600_000,
  )
}

async function resumeStacks(client: Client, count: number): Promise<void> {
  const stacks = client.resource(stackResource)
  await inParallel(count, index => stacks.patch(`stack-${index}`, { spec: { suspend: false } }, { type: 'merge', namespace }))
}

async function countRuns(client: Client): Promise<number> {
  return (await client.resource(runResource).listAll({ namespace })).items.length
}

/** What an observer sees of pool and Runs while the queue is executed. */
class Observation {
  readonly #manager: Manager
  readonly #workers = new Set<string>()
  readonly #pods = new Map<string, string>()
  readonly #livePods = new Set<string>()
  readonly #ended = new Map<string, Run>()
  maxWorkers = 0
  maxPods = 0

  private constructor(client: Client) {
    this.#manager = new Manager({ client, log: silentLog })
    this.#manager.informer(workerResource).onChange({
      added: ({ metadata }) => {
        this.#workers.add(metadata.name)
        this.maxWorkers = Math.max(this.maxWorkers, this.#workers.size)
      },
      deleted: ({ metadata }) => void this.#workers.delete(metadata.name),
    })
    this.#manager.informer(podResource, { namespace: systemNamespace }).onChange({
      added: pod => this.#observePod(pod),
      updated: (_, pod) => this.#observePod(pod),
      deleted: ({ metadata }) => void this.#livePods.delete(metadata.uid),
    })
    this.#manager.informer(runResource).onChange({
      added: run => this.#observeRun(run),
      updated: (_, run) => this.#observeRun(run),
    })
  }

  static async start(client: Client): Promise<Observation> {
    const observation = new Observation(client)
    await observation.#manager.start()
    return observation
  }

  async stop(): Promise<void> {
    await this.#manager.stop()
  }

  async untilEnded(count: number): Promise<void> {
    const startedMs = Date.now()
    for (;;) {
      if (this.#ended.size >= count) return
      if (Date.now() - startedMs > 3_000_000) throw new Error(`${this.#ended.size} of ${count} Runs ended`)
      await sleep(1_000)
      process.stderr.write(`\r${this.#ended.size} of ${count} Runs, ${this.#workers.size} workers, ${this.#livePods.size} Pods  `)
    }
  }

  /** Runs that succeeded in a Pod of their own. */
  get inOwnPod(): number {
    const used = new Set<string>()
    for (const { spec, status } of this.#ended.values()) {
      const uid = spec.workerPod?.uid
      if (status?.phase === 'Succeeded' && uid !== undefined && this.#pods.get(uid) === spec.workerName) used.add(uid)
    }
    return used.size
  }

  get runSeconds(): { p50: number; max: number } {
    return spread(
      [...this.#ended.values()].map(
        ({ status, spec }) => (Date.parse(status?.finishedAt ?? '') - Date.parse(spec.assignedAt ?? '')) / 1_000,
      ),
    )
  }

  #observePod(pod: { metadata: { uid: string; name: string; deletionTimestamp?: string }; status?: PodBody['status'] }): void {
    const { uid, name, deletionTimestamp } = pod.metadata
    this.#pods.set(uid, name)
    if (deletionTimestamp !== undefined || pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed') this.#livePods.delete(uid)
    else this.#livePods.add(uid)
    this.maxPods = Math.max(this.maxPods, this.#livePods.size)
  }

  #observeRun(run: Pick<Run, 'metadata' | 'spec' | 'status'>): void {
    if (run.status?.finishedAt) this.#ended.set(run.metadata.uid, run as Run)
  }
}

type Result = {
  readonly auditLog: string
  /** Earlier requests are not counted. */
  readonly queuedAtMs: number
  readonly nodes: number
  readonly runs: number
  readonly max: number
  readonly seconds: number
  readonly observed: Observation
  readonly pods: HollowPods
}

async function summarize({ auditLog, queuedAtMs, nodes, runs, max, seconds, observed, pods }: Result): Promise<Bench> {
  const counts = new Map<string, number>()
  const totals = { writes: 0, renewals: 0, events: 0, rejected: 0 }
  const others = new Map<string, number>()
  for await (const request of readAuditLog(auditLog)) {
    if (!isWrite(request) || request.receivedMs < queuedAtMs) continue
    const sender = senderOf(request)
    if (sender !== 'controllers' && sender !== 'workers') {
      others.set(sender, (others.get(sender) ?? 0) + 1)
      continue
    }
    if (request.resource === 'events') totals.events++
    // Renewals of Leases depend on time and not on the number of Runs.
    else if (request.resource === 'leases' && request.verb !== 'create' && request.verb !== 'delete') totals.renewals++
    else {
      totals.writes++
      if (request.code >= 400) totals.rejected++
      const key = `${request.verb} ${request.resource}`
      counts.set(key, (counts.get(key) ?? 0) + 1)
    }
  }
  const perRun = totals.writes / runs
  const byWrite = [...counts].sort(([, a], [, b]) => b - a).map(([key, count]) => `${key} ${(count / runs).toFixed(3)}`)
  const inOwnPod = observed.inOwnPod
  const failed = observed.maxWorkers > max || inOwnPod !== runs || perRun > maxWritesPerRun || pods.errors.length > 0
  const row = (what: string, bar: string | number, measured: string | number) => ({ what, bar: String(bar), measured: String(measured) })
  return {
    title: `${runs} queued Runs in Pods on ${nodes} nodes of kwok, a pool of at most ${max} workers`,
    about: `Writes of controllers and workers from the audit log of kube-apiserver, except Events and renewals of Leases. By write, for each Run: ${byWrite.join(', ')}. Others: ${[...others].map(([who, count]) => `${who} ${(count / runs).toFixed(1)}`).join(', ')} for each Run.`,
    rows: [
      row('most workers at a time', `${max}`, observed.maxWorkers),
      row('most Pods at a time that had not ended', '', observed.maxPods),
      row('Runs that succeeded in a Pod of their own', runs, inOwnPod),
      row('writes for each Run', maxWritesPerRun, perRun.toFixed(3)),
      row('of these rejected, such as by a conflict', '', (totals.rejected / runs).toFixed(3)),
      row('Events; renewals of Leases, for each Run', '', `${(totals.events / runs).toFixed(2)}; ${(totals.renewals / runs).toFixed(2)}`),
      row('seconds; Runs a second', '', `${seconds.toFixed(0)}; ${(runs / seconds).toFixed(1)}`),
      row('from assignment to end, p50 and max s', '', `${observed.runSeconds.p50}; ${observed.runSeconds.max}`),
      row('errors of simulated workers', 0, pods.errors.length === 0 ? 0 : `${pods.errors.length}: ${pods.errors[0]}`),
    ],
    failed,
  }
}
