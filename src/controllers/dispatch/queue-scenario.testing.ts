import { type PriorityClass, priorityClasses, type Tenant, type Worker, type WorkerPool } from '../../api/index.ts'
import { formatDuration, parseDuration } from '../../kubernetes/object/index.ts'
import { epochMs, testPool, testRun, testTenant, testWorker } from './objects.testing.ts'
import { decidePlacement, failureDomainLabel, PendingReasons, SchedulerState, WorkerInventory } from './placement/index.ts'
import { previewQueueOrder, type Requirements, RunQueue, requestOf, requirementsOf, TenantIndex } from './queue/index.ts'
import { type WorkerLoad, withRun } from './worker-load.ts'

/**
 * Plays one scenario of queue and placement on virtual time. A scenario consists of blocks of commands, each followed by `----` and by its
 * output, up to an empty line. Returns the same text with the actual output. Lines that start with # are comments.
 *
 * `runs COUNT ns=a duration=60s class=Drift priority=1 key=aws limit=2 pool=p engine=e memory=1Gi label=k:v`, `worker NAME slots=1
 * zone=z label=k:v caches=…`, `workers COUNT`, `tenant NAME namespaces=a,b weight=2 max=3`, `pool NAME max=4 limit=2`,
 * `quiet on` (starts are not printed), `advance 5m`, `show COUNT` (queue positions and pending reasons), `shares` (slot time by tenant since the
 * previous `shares`).
 */
export function playQueueScenario(text: string): string {
  const scenario = new QueueScenario()
  const output = text
    .trimEnd()
    .split('\n\n')
    .map(block => {
      const lines = block.split('\n')
      const end = lines.indexOf('----')
      const commands = end < 0 ? lines : lines.slice(0, end)
      for (const line of commands) if (line.trim() && !line.startsWith('#')) scenario.play(line)
      const isComment = commands.every(line => line.startsWith('#'))
      return [...commands, ...(isComment ? [] : ['----', ...scenario.takeOutput()])].join('\n')
    })
  return `${output.join('\n\n')}\n`
}

/** If more Runs than this start at the same time, only their number by namespace is printed. */
const maxListedStarts = 6

class QueueScenario {
  readonly #queue = new RunQueue()
  readonly #schedulerState = new SchedulerState()
  readonly #workers: Worker[] = []
  readonly #pools: WorkerPool[] = [testPool('default', { mode: 'External' })]
  readonly #tenants: Tenant[] = []
  readonly #load = new Map<string, WorkerLoad>()
  readonly #submitted = new Map<string, { ms: number; requirements: Requirements }>()
  readonly #cacheKeys = new Map<string, string>()
  #running: { key: string; worker: string; endsMs: number; startedMs: number }[] = []
  readonly #usedMs = new Map<string, number>()
  readonly #numbers = new Map<string, number>()
  #version = 0
  #nowMs = epochMs
  #sharesSinceMs = epochMs
  #lines: string[] = []
  #isQuiet = false

  takeOutput(): string[] {
    return this.#lines.splice(0)
  }

  play(line: string): void {
    const [command, first = '', ...rest] = line.split(' ')
    const options = Object.fromEntries(rest.map(word => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]))
    switch (command) {
      case 'runs':
        this.#addRuns(Number(first), options)
        return
      case 'worker':
        this.#addWorker(first, options)
        return
      case 'workers':
        for (let i = 1; i <= Number(first); i++) this.#addWorker(`w${i}`, options)
        return
      case 'quiet':
        this.#isQuiet = first !== 'off'
        return
      case 'tenant': {
        const { namespaces, weight, max } = options
        const spec: Tenant['spec'] = {
          ...(namespaces && { namespaces: namespaces.split(',') }),
          ...(weight && { weight: Number(weight) }),
          ...(max && { limits: { maxRunning: Number(max) } }),
        }
        this.#tenants.push(testTenant(first, spec))
        this.#queue.setTenants(new TenantIndex(this.#tenants))
        return
      }
      case 'pool': {
        this.#pools.push(testPool(first, { mode: 'External', ...(options.limit && { limits: { maxRunning: Number(options.limit) } }) }))
        const limits = this.#pools.flatMap(({ metadata, spec }) =>
          spec.limits?.maxRunning === undefined ? [] : [[metadata.name, spec.limits.maxRunning] as const],
        )
        this.#queue.setPoolLimits(new Map(limits))
        return
      }
      case 'advance':
        this.#advance(parseDuration(first))
        return
      case 'show':
        this.#show(Number(first))
        return
      case 'shares':
        this.#shares()
        return
      default:
        throw new Error(`unknown command ${JSON.stringify(line)}`)
    }
  }

  #addRuns(count: number, options: Record<string, string>): void {
    const { ns = 'a', duration = '60s', priority, key, limit, pool, memory, label, cache } = options
    for (let i = 0; i < count; i++) {
      const number = (this.#numbers.get(ns) ?? 0) + 1
      this.#numbers.set(ns, number)
      const run = testRun(`${number}`, {
        namespace: ns,
        priority: Number(priority ?? 0),
        atMs: this.#nowMs - epochMs,
        version: String(++this.#version),
        ...(pool && { pool }),
        ...(isPriorityClass(options.class) && { priorityClass: options.class }),
        stack: {
          ...(key && { concurrencyKey: key, concurrencyLimit: Number(limit ?? 1) }),
          ...(memory && { resources: { memory } }),
          ...(label && { placement: { workerLabels: pair(label) } }),
        },
      })
      this.#queue.put(requestOf(run))
      this.#submitted.set(`${ns}/${number}`, { ms: parseDuration(duration), requirements: requirementsOf(run.spec) })
      if (cache) this.#cacheKeys.set(`${ns}/${number}`, cache)
    }
    this.#schedule()
  }

  #addWorker(name: string, { slots = '1', pool, zone, label, caches, memory }: Record<string, string>): void {
    const labels = { ...(zone && { [failureDomainLabel]: zone }), ...(label && pair(label)) }
    const status = { ...(caches && { caches: caches.split(',') }), ...(memory && { capacity: { memory } }) }
    this.#workers.push(testWorker(name, { slots: Number(slots), lifecycle: 'Warm', labels, status, ...(pool && { pool }) }))
    this.#schedule()
  }

  #advance(ms: number): void {
    const endMs = this.#nowMs + ms
    for (;;) {
      const nextMs = Math.min(endMs, ...this.#running.map(({ endsMs }) => endsMs), this.#nowMs + 30_000)
      this.#nowMs = nextMs
      for (const run of this.#running.filter(({ endsMs }) => endsMs <= nextMs)) this.#end(run)
      this.#queue.tick(this.#nowMs)
      this.#schedule()
      if (nextMs >= endMs) return
    }
  }

  #end(run: { key: string; worker: string; startedMs: number }): void {
    this.#running = this.#running.filter(other => other !== run)
    this.#queue.end(run.key, this.#nowMs)
    this.#load.set(run.worker, withRun(this.#load.get(run.worker), -1, this.#submitted.get(run.key)!.requirements))
    this.#addUsage(run.key, Math.max(run.startedMs, this.#sharesSinceMs))
  }

  #addUsage(key: string, sinceMs: number): void {
    const tenant = this.#queue.tenantOf(key.slice(0, key.indexOf('/')))
    this.#usedMs.set(tenant, (this.#usedMs.get(tenant) ?? 0) + this.#nowMs - sinceMs)
  }

  #schedule(): void {
    const assignments = decidePlacement({
      queue: this.#queue,
      state: this.#schedulerState,
      inventory: WorkerInventory.of(this.#workers, this.#load, () => 0.5),
      cacheKeyOf: key => this.#cacheKeys.get(key),
      nowMs: this.#nowMs,
    })
    if (assignments.length === 0) return
    for (const { key, worker } of assignments) {
      const { ms, requirements } = this.#submitted.get(key)!
      this.#load.set(worker, withRun(this.#load.get(worker), 1, requirements))
      this.#running.push({ key, worker, startedMs: this.#nowMs, endsMs: this.#nowMs + ms })
    }
    const text =
      assignments.length <= maxListedStarts
        ? assignments.map(({ key, worker }) => `${key}→${worker}`).join(' ')
        : [...Map.groupBy(assignments, ({ namespace }) => namespace)].map(([ns, runs]) => `${ns} ×${runs.length}`).join(' ')
    if (!this.#isQuiet) this.#print(text)
  }

  #show(count: number): void {
    const reasons = new PendingReasons({
      queue: this.#queue,
      workers: this.#workers,
      pools: this.#pools,
      starts: new Map(),
      nowMs: this.#nowMs,
    })
    const pools = new Set([...this.#queue.equivalenceClasses()].map(({ requirements }) => requirements.pool))
    for (const pool of pools) {
      const { ordered, blocked } = previewQueueOrder(this.#queue, pool, count, this.#nowMs)
      for (const { entry, position } of [...ordered, ...blocked]) {
        const { reason, message } = reasons.of(entry.fifo)
        this.#print(`${position ?? '-'}. ${entry.request.key} ${reason}: ${message}`)
      }
    }
  }

  #shares(): void {
    for (const { key, startedMs } of this.#running) this.#addUsage(key, Math.max(startedMs, this.#sharesSinceMs))
    this.#sharesSinceMs = this.#nowMs
    const shares = [...this.#usedMs].sort(([a], [b]) => (a < b ? -1 : 1)).map(([tenant, ms]) => `${tenant} ${formatDuration(ms)}`)
    this.#usedMs.clear()
    this.#print(`used ${shares.join(', ')}`)
  }

  #print(text: string): void {
    const ms = this.#nowMs - epochMs
    this.#lines.push(`${ms === 0 ? '0s' : formatDuration(ms)} ${text}`)
  }
}

function pair(text: string): Record<string, string> {
  const [key = '', value = ''] = text.split(':')
  return { [key]: value }
}

function isPriorityClass(text: string | undefined): text is PriorityClass {
  return priorityClasses.includes(text as PriorityClass)
}
