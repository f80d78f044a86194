import { setTimeout as sleep } from 'node:timers/promises'
import { labels, type Run, runResource, stackResource } from '../../../api/index.ts'
import type { Client } from '../../../kubernetes/client/index.ts'
import { isReason } from '../../../kubernetes/object/index.ts'
import { Latencies } from './latencies.ts'

export type StackLoadOptions = {
  readonly client: Client
  readonly namespace: string
  /** Stacks are named `<prefix>-0`, …, and labelled with {@link hollowLabel}. */
  readonly prefix: string
  readonly pool: string
  /** Changes, and so Runs, that are to begin each second. */
  readonly runsPerSecond: number
  /** How many Stacks take turns: never more Runs are under way or wait. */
  readonly stacks: number
  onError?(error: unknown): void
}

/** On each Stack of a hollow fleet: its prefix. */
const hollowLabel = 'oarlock.dev/hollow'

/** How often the pace is looked at. */
const tickMs = 10
const deleteConcurrency = 32

type LoadStack = { isCreated: boolean; changedAtMs: number; generation: number; isActive: boolean; isAssigned: boolean }

/**
 * Makes Runs the way users do: by Stacks that are made, and then changed again and again, each when its Run before has ended.
 * Times count from before the change is sent.
 */
export class StackLoad {
  readonly #options: StackLoadOptions
  readonly #stacks: LoadStack[]
  readonly #sending = new Set<Promise<void>>()
  /** Until a watcher sees that the change has a Run with a Worker. */
  assignedLatencies = new Latencies()
  /** Until the Run's end is written. */
  endedLatencies = new Latencies()
  /** Changes sent so far. */
  changes = 0
  /** Changes that were due while the Run of every Stack was under way: the pace was not kept. */
  skipped = 0
  #next = 0
  #timer: NodeJS.Timeout | undefined

  constructor(options: StackLoadOptions) {
    this.#options = options
    this.#stacks = Array.from({ length: options.stacks }, () => ({
      isCreated: false,
      changedAtMs: 0,
      generation: 0,
      isActive: false,
      isAssigned: false,
    }))
  }

  get activeStacks(): number {
    return this.#stacks.reduce((sum, { isActive }) => sum + (isActive ? 1 : 0), 0)
  }

  start(): void {
    const startMs = performance.now()
    let given = 0
    this.#timer = setInterval(() => {
      const until = Math.floor(((performance.now() - startMs) / 1_000) * this.#options.runsPerSecond)
      for (; given < until; given++) this.#change()
    }, tickMs)
  }

  /** Forgets the times so far. */
  resetLatencies(): void {
    this.assignedLatencies = new Latencies()
    this.endedLatencies = new Latencies()
  }

  /** To be told of each Run that a Worker of the fleet got. */
  onRunAssigned(run: Run): void {
    const stack = this.#stackOf(run)
    if (!stack || stack.isAssigned || run.spec.stackRef.generation < stack.generation) return
    stack.isAssigned = true
    this.assignedLatencies.add(performance.now() - stack.changedAtMs)
  }

  /** To be told of each Run that has ended, or was taken from its Worker: a Lost one is followed by another. */
  onRunEnded(run: Run, phase: string | undefined): void {
    const stack = this.#stackOf(run)
    if (!stack || phase === undefined || run.spec.stackRef.generation < stack.generation) return
    // A failed one is tried again by the Stack's own rules; the next change does not wait for that.
    if (stack.isActive) this.endedLatencies.add(performance.now() - stack.changedAtMs)
    stack.isActive = false
  }

  /** Changes nothing more, and waits until what is under way has ended, at most so long. */
  async stop(waitMs: number): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all(this.#sending)
    for (const untilMs = performance.now() + waitMs; this.activeStacks > 0 && performance.now() < untilMs; ) await sleep(20)
  }

  /** Deletes the Stacks, with their Runs, and waits until they are gone, at most so long. Returns how many are left. */
  async remove(waitMs: number): Promise<number> {
    const { client, namespace, onError } = this.#options
    const names = this.#stacks.flatMap(({ isCreated }, index) => (isCreated ? [this.#nameOf(index)] : []))
    const take = async () => {
      for (let name = names.pop(); name !== undefined; name = names.pop()) {
        await client
          .resource(stackResource)
          .delete(name, { namespace })
          .catch(error => isReason(error, 'NotFound') || onError?.(error))
      }
    }
    await Promise.all(Array.from({ length: deleteConcurrency }, take))
    for (const untilMs = performance.now() + waitMs; ; await sleep(100)) {
      const left = await this.#countRemaining()
      if (left === 0 || performance.now() > untilMs) return left
    }
  }

  async #countRemaining(): Promise<number> {
    const { client, namespace, prefix } = this.#options
    const stacks = await client.resource(stackResource).list({ namespace, labelSelector: `${hollowLabel}=${prefix}`, limit: 500 })
    if (stacks.items.length > 0) return stacks.items.length
    // Runs are removed after their Stack.
    const runs = await client.resource(runResource).listAll({ namespace, labelSelector: labels.stack })
    return runs.items.filter(run => this.#stackOf(run) !== undefined).length
  }

  #change(): void {
    for (let tried = 0; tried < this.#stacks.length; tried++) {
      const index = this.#next
      this.#next = (this.#next + 1) % this.#stacks.length
      const stack = this.#stacks[index]!
      if (stack.isActive) continue
      this.changes++
      Object.assign(stack, { changedAtMs: performance.now(), generation: stack.generation + 1, isActive: true, isAssigned: false })
      const sending = this.#send(index, stack).finally(() => this.#sending.delete(sending))
      this.#sending.add(sending)
      return
    }
    this.skipped++
  }

  async #send(index: number, stack: LoadStack): Promise<void> {
    const { client, namespace, prefix, pool, onError } = this.#options
    const stacks = client.resource(stackResource)
    const name = this.#nameOf(index)
    const variables = { change: stack.generation }
    try {
      if (stack.isCreated) {
        await stacks.patch(name, { spec: { variables } }, { type: 'merge', namespace })
        return
      }
      await stacks.create({
        metadata: { name, namespace, labels: { [hollowLabel]: prefix } },
        spec: {
          engine: 'command',
          command: { apply: ['true'] },
          source: { inline: { files: { 'README.md': 'made by "oarlock hollow"' } } },
          variables,
          pool,
          // There is nothing to destroy.
          deletion: 'Orphan',
          drift: 'Off',
          historyLimit: 1,
        },
      })
      stack.isCreated = true
    } catch (error) {
      stack.isActive = false
      stack.generation--
      onError?.(error)
    }
  }

  #nameOf(index: number): string {
    return `${this.#options.prefix}-${index}`
  }

  #stackOf(run: Run): LoadStack | undefined {
    const { namespace, prefix } = this.#options
    const { name } = run.spec.stackRef
    const isOurs = run.metadata.namespace === namespace && name.startsWith(`${prefix}-`)
    return isOurs ? this.#stacks[Number(name.slice(prefix.length + 1))] : undefined
  }
}
