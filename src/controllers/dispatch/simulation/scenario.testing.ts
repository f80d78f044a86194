import type { TranscriptPlayer } from '../../../../test/support/transcripts.ts'
import {
  type CrashReason,
  dependencyCacheKey,
  type PriorityClass,
  priorityClasses,
  type Run,
  subjectOf,
  type WorkerPool,
  workerBucketOf,
} from '../../../api/index.ts'
import { formatDuration, objectKey, parseDuration, rfc3339 } from '../../../kubernetes/object/index.ts'
import { sha256 } from '../../../kubernetes/util/index.ts'
import type { DispatchAction } from '../dispatch-action.ts'
import { DispatchCore } from '../dispatch-core.ts'
import type { DispatchEvent, Now } from '../dispatch-event.ts'
import { epochMs, testPool, testRun, testTenant, testWorker } from '../objects.testing.ts'
import { decideWorkerView, failureDomainLabel, type WorkerView } from '../placement/index.ts'
import type { LossReason } from '../pool/index.ts'
import { executeAction } from './execute-action.testing.ts'
import { formatAction, formatAssignments } from './format-action.testing.ts'
import { Invariants } from './invariants.testing.ts'
import { SimulatedApiServer } from './simulated-api-server.testing.ts'
import { SimulatedWorkers } from './simulated-workers.testing.ts'
import { Simulation } from './simulation.testing.ts'

/**
 * Plays transcripts of dispatch on virtual time: the core, and in place of the shell a simulated API server, pool driver and workers.
 *
 * `runs COUNT ns=a duration=60s class=Drift priority=1 key=aws limit=2 pool=p engine=e memory=1Gi label=k:v level=Pod sa=NAME`, `worker NAME slots=1
 * zone=z label=k:v caches=…`, `workers COUNT`, `tenant NAME namespaces=a,b weight=2 max=3`, `pool NAME mode=External max=4 limit=2 min=1 startup=1s lifecycle=Warm slots=2 pods=Stack deregisters=Controller`,
 * `place COUNT` (Runs with the options of `runs`, which the Stack controller has placed before it creates them), `quiet on` (starts are not printed), `advance 5m`, `show COUNT` (queue positions and pending reasons), `shares` (slot time by tenant since the
 * previous `shares`).
 *
 * Other partitions: `home partitions=t1,t2,t3` (this dispatcher sizes the pools of these partitions, and claims numbers for workers of mode Process; everything that it does is printed), `demand PARTITION pool=p queued=5 startable=4` (what one reports; without numbers it has none),
 * `executes NAME runs=x/1,x/2` (a worker reports that it executes Runs of other partitions), `ends NAME` (a worker of another host deletes its Worker and ends), `counts POOL` (its status),
 * `ready POOL` (its condition).
 *
 * Failures: `lease 10s` (workers renew every 2 s from now on, and everything that dispatch does is printed), `pause NAME` and `resume NAME` (a
 * worker, which stops renewing and working), `stuck NAME` (it renews and
 * starts no Runs), `exit NAME crash=WorkerCrashed loss=Evicted` (its process), `fails NAME` (a worker deregisters, and its process exits with code 1), `hold KIND` (actions of this kind, or the creations of placed Runs, CreateRun, are not executed until `send` executes them, at
 * the version that they were decided from), `refuse CREATIONS` (the server refuses so many creations), `crash` (the leader; what it has begun remains held), `lead` (a new leader knows only the objects), `cancel RUN`, `delete RUN`, `status` (phases of all Runs).
 */
export const createScenario = (): TranscriptPlayer => new Scenario()

/** Without failures nothing renews a Lease. */
const noLeaseMs = 10 ** 10
const renewEveryMs = 2_000
const longestStepMs = 30_000

class Scenario implements TranscriptPlayer {
  readonly #simulation = new Simulation(event => this.#observe(event))
  readonly #server = new SimulatedApiServer(this.#simulation)
  readonly #workers = new SimulatedWorkers(this.#simulation, this.#server, (key, startedMs) => this.#addUsage(key, startedMs))
  readonly #invariants = new Invariants(this.#simulation, this.#server, this.#workers, noLeaseMs)
  readonly #held = new Map<DispatchAction['kind'], { action: DispatchAction; core: DispatchCore }[]>()
  readonly #namespaces = new Set<string>()
  readonly #usedMs = new Map<string, number>()
  /** By namespace: of the last Run. */
  readonly #numbers = new Map<string, number>()
  /** Creations of placed Runs that wait for `send`; undefined: they are sent immediately. */
  #heldCreations: (() => void)[] | undefined
  #refusals = 0
  #core: DispatchCore | undefined
  #leaseMs = noLeaseMs
  #nextDecisionMs = Number.POSITIVE_INFINITY
  #sharesSinceMs = epochMs
  #names = 0
  #isQuiet = false
  #hasCrashed = false
  /** Of other partitions; undefined: there are none. */
  #views: ReadonlyMap<string, WorkerView | undefined> | undefined

  takeLines(): string[] {
    return this.#simulation.takeLines()
  }

  play(command: string, [first = '']: string[], options: Record<string, string>): void {
    if (command === 'home') {
      this.#views = new Map((options.partitions ?? '').split(',').map((name, _, all) => [name, decideWorkerView(name, all)]))
      this.#workers.areOnOtherHosts = true
      this.#core = undefined
    }
    if (command === 'lease') {
      this.#leaseMs = parseDuration(first)
      this.#invariants.leaseMs = this.#leaseMs
      this.#core = undefined
    }
    if (!this.#core && (!this.#hasCrashed || command === 'lead')) this.#lead(command === 'lead')
    switch (command) {
      case 'lease':
      case 'lead':
      case 'home':
        break
      case 'demand':
        this.#server.reportDemand(options.pool ?? 'default', first, this.#reportOf(options))
        break
      case 'executes':
        this.#server.setWorkerRuns(first, options.runs?.split(',') ?? [])
        break
      case 'fails':
        this.#workers.fail(first)
        break
      case 'ends':
        this.#workers.drain(first)
        break
      case 'counts':
        this.#counts(first)
        break
      case 'ready':
        this.#ready(first)
        break
      case 'runs':
        for (const run of this.#newRuns(Number(first), options)) this.#server.createRun(run)
        break
      case 'place':
        for (const run of this.#newRuns(Number(first), options)) this.#placeRun(run)
        break
      case 'refuse':
        this.#refusals = Number(first)
        break
      case 'worker':
        this.#addWorker(first, options)
        break
      case 'workers':
        for (let i = 1; i <= Number(first); i++) this.#addWorker(`w${i}`, options)
        break
      case 'quiet':
        this.#isQuiet = first !== 'off'
        break
      case 'tenant':
        this.#addTenant(first, options)
        break
      case 'pool':
        this.#addPool(first, options)
        break
      case 'advance':
        this.#advance(parseDuration(first))
        break
      case 'show':
        this.#show(Number(first))
        break
      case 'shares':
        this.#shares()
        break
      case 'pause':
        this.#workers.pause(first)
        break
      case 'resume':
        this.#workers.resume(first)
        break
      case 'cordon':
      case 'uncordon':
        this.#server.changeWorker(first, { cordon: command === 'cordon' })
        break
      case 'stuck':
        this.#workers.block(first)
        break
      case 'exit':
        this.#workers.exit(first, options as { crash?: CrashReason; loss?: LossReason })
        break
      case 'hold':
        if (first === 'CreateRun') this.#heldCreations ??= []
        else if (!this.#held.has(first as DispatchAction['kind'])) this.#held.set(first as DispatchAction['kind'], [])
        break
      case 'send':
        this.#send()
        break
      case 'crash':
        this.#core = undefined
        this.#hasCrashed = true
        this.#nextDecisionMs = Number.POSITIVE_INFINITY
        break
      case 'cancel':
        this.#server.changeRun(first, run => ({ ...run, spec: { ...run.spec, cancel: true } }))
        break
      case 'delete':
        this.#server.deleteRun(first)
        break
      case 'status':
        for (const [key, { status, spec }] of this.#server.runs)
          this.#simulation.print(`${key} ${status?.phase ?? 'Queued'}${spec.workerName === undefined ? '' : ` on ${spec.workerName}`}`)
        break
      default:
        throw new Error(`unknown command ${JSON.stringify(command)}`)
    }
    this.#decide()
  }

  // ---- the leader

  get #now(): Now {
    const { nowMs } = this.#simulation
    return { wallMs: nowMs, monotonicMs: nowMs - epochMs }
  }

  /** Starts a core that knows nothing, and reports to it what exists. */
  #lead(isTakeover: boolean): void {
    const sees = (partition: string, worker: string) => {
      const view = this.#views?.get(partition)
      return !view || view.preferred.has(workerBucketOf(worker)) || view.spare.has(workerBucketOf(worker))
    }
    const shared = this.#views && { isPreferred: () => true, sizesPools: true, sees }
    const claimsNames = { Pod: true, Process: this.#views !== undefined }
    this.#core = new DispatchCore({ leaseDurationMs: this.#leaseMs, claimsNames, shared }, this.#now)
    this.#invariants.leadsSinceMs = this.#simulation.nowMs
    this.#namespaces.clear()
    for (const event of this.#server.list({ isTakeover })) this.#observe(event)
    for (const event of this.#workers.listProcesses()) this.#observe(event)
  }

  #observe(event: DispatchEvent): void {
    if (event.kind === 'RunChanged') this.#observeSubject(event.run)
    this.#core?.observe(event, this.#now)
  }

  /** All test objects of a namespace belong to one Stack. */
  #observeSubject(run: Run): void {
    const subject = subjectOf(run)
    if (this.#namespaces.has(subject.namespace)) return
    this.#namespaces.add(subject.namespace)
    this.#core?.observe({ kind: 'SubjectChanged', subject, recordedEpoch: Number.POSITIVE_INFINITY }, this.#now)
  }

  /** Decides until nothing changes at this time. */
  #decide(): void {
    const core = this.#core
    if (!core) return
    for (;;) {
      const { actions, requeueAfterMs } = core.decide(this.#now, () => ++this.#names / 0x1_0000_0000)
      this.#nextDecisionMs = this.#simulation.nowMs + (requeueAfterMs ?? Number.POSITIVE_INFINITY)
      this.#printActions(actions)
      for (const action of actions) if (action.kind === 'AssignRun') this.#invariants.checkSuspect(action.worker)
      for (const action of actions) {
        const held = this.#held.get(action.kind)
        if (held) held.push({ action, core })
        else this.#execute(action, core)
      }
      if (!actions.some(({ kind }) => kind !== 'PatchPoolStatus' && kind !== 'PatchTenantStatus')) return
    }
  }

  #printActions(actions: readonly DispatchAction[]): void {
    const assignments = this.#isQuiet ? undefined : formatAssignments(actions)
    const others = this.#leaseMs === noLeaseMs && !this.#views ? [] : actions.map(formatAction)
    for (const text of [assignments, ...others]) if (text !== undefined) this.#simulation.print(text)
  }

  #send(): void {
    const held = [...this.#held.values()].flat()
    this.#held.clear()
    for (const { action, core } of held) this.#execute(action, core)
    const creations = this.#heldCreations ?? []
    this.#heldCreations = undefined
    for (const create of creations) create()
  }

  /** What the Stack controller does in the process of the leader: the Run is placed, then created, and the outcome is reported. */
  #placeRun(run: Run): void {
    const core = this.#core
    const { namespace = '', name } = run.metadata
    const key = objectKey(run)
    this.#observeSubject(run)
    const placement = core?.placeNewRun({ namespace, name, spec: run.spec }, this.#now, () => ++this.#names / 0x1_0000_0000)
    if (placement) this.#invariants.checkSuspect(placement.worker)
    if (placement && !this.#isQuiet) this.#simulation.print(`${key} is placed on ${placement.worker}`)
    const create = () => {
      const isRefused = this.#refusals > 0
      if (isRefused) {
        this.#refusals--
        this.#simulation.print(`refused the creation of ${key}`)
      } else if (placement) {
        const { worker: workerName, atMs, finalizers } = placement
        const spec = { ...run.spec, workerName, assignedAt: rfc3339(atMs) }
        this.#server.createRun({ ...run, metadata: { ...run.metadata, finalizers: [...finalizers] }, spec })
        this.#workers.accept(key, workerName)
      } else this.#server.createRun(run)
      if (placement && core === this.#core) this.#observe({ kind: 'CreationSettled', run: placement.object })
    }
    if (this.#heldCreations) this.#heldCreations.push(create)
    else create()
  }

  /** Executes an action of `core`, which may have crashed meanwhile. */
  #execute(action: DispatchAction, core: DispatchCore): void {
    executeAction(action, {
      simulation: this.#simulation,
      server: this.#server,
      workers: this.#workers,
      invariants: this.#invariants,
      isLeading: core === this.#core,
    })
  }

  // ---- objects that users create

  #addTenant(name: string, { namespaces, weight, max }: Record<string, string>): void {
    const tenant = testTenant(name, {
      ...(namespaces && { namespaces: namespaces.split(',') }),
      ...(weight && { weight: Number(weight) }),
      ...(max && { limits: { maxRunning: Number(max) } }),
    })
    this.#server.createTenant(tenant)
  }

  #addPool(
    name: string,
    { mode = 'External', max, min, limit, startup, lifecycle, slots, pods, deregisters }: Record<string, string>,
  ): void {
    if (deregisters) this.#workers.leaving.add(name)
    if (startup) this.#workers.startupMs.set(name, parseDuration(startup))
    const pool = testPool(name, {
      mode: mode as WorkerPool['spec']['mode'],
      ...(max && { max: Number(max) }),
      ...(min && { min: Number(min) }),
      ...(limit && { limits: { maxRunning: Number(limit) } }),
      ...(lifecycle && { lifecycle: lifecycle as 'Warm' }),
      ...(slots && { slots: Number(slots) }),
      ...(pods && { podNamespace: pods as 'Stack' }),
    })
    this.#server.applyPool(pool)
  }

  *#newRuns(count: number, options: Record<string, string>): Generator<Run> {
    const { ns = 'a', duration = '60s', priority, key, limit, pool, memory, label, cache, digest, level, sa } = options
    for (let i = 0; i < count; i++) {
      const number = (this.#numbers.get(ns) ?? 0) + 1
      this.#numbers.set(ns, number)
      const run = testRun(`${number}`, {
        namespace: ns,
        priority: Number(priority ?? 0),
        atMs: this.#simulation.nowMs - epochMs,
        version: this.#server.nextVersion(),
        ...(pool && { pool }),
        ...(isPriorityClass(options.class) && { priorityClass: options.class }),
        stack: {
          ...(cache && { source: { path: { path: cache } } }),
          ...(key && { concurrencyKey: key, concurrencyLimit: Number(limit ?? 1) }),
          ...(memory && { resources: { memory } }),
          ...(level && { isolation: { level: level as 'Pod' } }),
          ...(sa && { serviceAccountName: sa }),
          ...(label && { placement: { workerLabels: pair(label) } }),
        },
      })
      this.#workers.durationsMs.set(`${ns}/${number}`, parseDuration(duration))
      yield digest === undefined ? run : { ...run, spec: { ...run.spec, dependencyDigest: sha256(digest) } }
    }
  }

  #addWorker(name: string, { slots = '1', pool, zone, label, caches, digests, memory }: Record<string, string>): void {
    const labels = { ...(zone && { [failureDomainLabel]: zone }), ...(label && pair(label)) }
    const status = {
      ...((caches || digests) && {
        caches: [...keysOf(caches, path => `command ${path}`), ...keysOf(digests, heldDependencies)],
      }),
      ...(memory && { capacity: { memory } }),
    }
    this.#workers.register(testWorker(name, { slots: Number(slots), lifecycle: 'Warm', labels, status, ...(pool && { pool }) }))
  }

  // ---- time

  #advance(ms: number): void {
    const simulation = this.#simulation
    const endMs = simulation.nowMs + ms
    const stepMs = this.#leaseMs === noLeaseMs ? longestStepMs : renewEveryMs
    for (;;) {
      const stepEndMs = epochMs + (Math.floor((simulation.nowMs - epochMs) / stepMs) + 1) * stepMs
      const nextMs = Math.min(endMs, stepEndMs, this.#nextDecisionMs, this.#workers.nextMs())
      this.#workers.work(nextMs - simulation.nowMs)
      simulation.nowMs = nextMs
      this.#workers.processEvents()
      if (this.#leaseMs !== noLeaseMs && nextMs === stepEndMs) this.#workers.renew()
      this.#decide()
      if (nextMs >= endMs) return
    }
  }

  // ---- other partitions

  #reportOf({ queued, startable = queued }: Record<string, string>) {
    if (queued === undefined) return undefined
    return { queued: Number(queued), startable: Number(startable), reportedAt: rfc3339(this.#simulation.nowMs) }
  }

  #counts(pool: string): void {
    const { queued, busy, starting, workers, desired, demand = {} } = this.#server.pools.get(pool)?.status ?? {}
    const reports = Object.keys(demand).join(', ') || 'none'
    this.#simulation.print(
      `queued ${queued}, busy ${busy}, starting ${starting}, workers ${workers}, desired ${desired}; reports: ${reports}`,
    )
  }

  #ready(pool: string): void {
    const ready = this.#server.pools.get(pool)?.status?.conditions?.find(({ type }) => type === 'Ready')
    this.#simulation.print(`${ready?.status} ${ready?.reason}: ${ready?.message}`)
  }

  // ---- reports

  #addUsage(key: string, startedMs: number): void {
    const tenant = this.#core?.tenantOf(this.#server.runs.get(key)!) ?? ''
    const usedMs = this.#simulation.nowMs - Math.max(startedMs, this.#sharesSinceMs)
    this.#usedMs.set(tenant, (this.#usedMs.get(tenant) ?? 0) + usedMs)
  }

  #show(count: number): void {
    const { runs } = this.#core!.report({ limit: count }, this.#simulation.nowMs)
    for (const { position, namespace, name, reason, message } of runs)
      this.#simulation.print(`${position ?? '-'}. ${namespace}/${name} ${reason}: ${message}`)
  }

  #shares(): void {
    for (const { key, startedMs } of this.#workers.activeRuns()) this.#addUsage(key, startedMs)
    this.#sharesSinceMs = this.#simulation.nowMs
    const shares = [...this.#usedMs].sort(([a], [b]) => (a < b ? -1 : 1)).map(([tenant, ms]) => `${tenant} ${formatDuration(ms)}`)
    this.#usedMs.clear()
    this.#simulation.print(`used ${shares.join(', ')}`)
  }
}

function pair(text: string): Record<string, string> {
  const [key = '', value = ''] = text.split(':')
  return { [key]: value }
}

function isPriorityClass(text: string | undefined): text is PriorityClass {
  return priorityClasses.includes(text as PriorityClass)
}

/** `<trust domain>/<name>`, of which the digest is that of the name. */
function heldDependencies(text: string): string {
  const [domain = '', name = ''] = text.split('/')
  return dependencyCacheKey(domain, sha256(name))
}

const keysOf = (names: string | undefined, toKey: (name: string) => string) => (names ? names.split(',').map(toKey) : [])
