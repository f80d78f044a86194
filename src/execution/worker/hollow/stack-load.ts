import { setTimeout as sleep } from 'node:timers/promises'
import { labels, type Run, runResource, stackResource } from '../../../api/index.ts'
import type { Client } from '../../../kubernetes/client/index.ts'
import { isReason } from '../../../kubernetes/object/index.ts'
import { Latencies } from './latencies.ts'

export type HollowStackLoadOptions = {
  readonly client: Client
  readonly namespace: string
  /** Stacks are named `<prefix>-0`, …, and have the label `oarlock.dev/hollow`. */
  readonly prefix: string
  readonly pool: string
  /** The rate of changes, and so of Runs. */
  readonly runsPerSecond: number
  /** The number of Stacks, changed in turn: the maximum of Runs that are queued or in progress. */
  readonly stacks: number
  onError?(error: unknown): void
}

/** Label of each Stack; its value is the prefix. */
const hollowLabel = 'oarlock.dev/hollow'

/** How often due changes are sent. */
const tickMs = 10
const deleteConcurrency = 32

type LoadStack = { isCreated: boolean; changedAtMs: number; generation: number; isActive: boolean; isAssigned: boolean }

/**
 * Creates Runs as users do: Stacks are created, then changed repeatedly, each when its previous Run has ended.
 * Latencies are measured from before the change is sent.
 */
export class HollowStackLoad {
  readonly #options: HollowStackLoadOptions
  readonly #stacks: LoadStack[]
  readonly #sending = new Set<Promise<void>>()
  /** Until a watch delivers the assigned Run of the change. */
  assignedLatencies = new Latencies()
  /** Until the Run's result is written. */
  endedLatencies = new Latencies()
  /** Changes sent so far. */
  changes = 0
  /** Changes that were due while every Stack had a Run in progress: the rate was not reached. */
  skipped = 0
  #next = 0
  #timer: NodeJS.Timeout | undefined

  constructor(options: HollowStackLoadOptions) {
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
    let sent = 0
    this.#timer = setInterval(() => {
      const until = Math.floor(((performance.now() - startMs) / 1_000) * this.#options.runsPerSecond)
      for (; sent < until; sent++) this.#change()
    }, tickMs)
  }

  /** Discards the latencies so far. */
  resetLatencies(): void {
    this.assignedLatencies = new Latencies()
    this.endedLatencies = new Latencies()
  }

  /** Call it for each Run that is assigned to a worker of the fleet. */
  onRunAssigned(run: Run): void {
    const stack = this.#stackOf(run)
    if (!stack || stack.isAssigned || run.spec.stackRef.generation < stack.generation) return
    stack.isAssigned = true
    this.assignedLatencies.add(performance.now() - stack.changedAtMs)
  }

  /** Call it for each Run that has ended, or was revoked (`phase` undefined): a Lost Run is followed by another. */
  onRunEnded(run: Run, phase: string | undefined): void {
    const stack = this.#stackOf(run)
    if (!stack || phase === undefined || run.spec.stackRef.generation < stack.generation) return
    // A failed Run is retried by the Stack's own rules; the next change does not wait for the retry.
    if (stack.isActive) this.endedLatencies.add(performance.now() - stack.changedAtMs)
    stack.isActive = false
  }

  /** Sends no further change, and waits up to `waitMs` for the Runs in progress. */
  async stop(waitMs: number): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all(this.#sending)
    for (const untilMs = performance.now() + waitMs; this.activeStacks > 0 && performance.now() < untilMs; ) await sleep(20)
  }

  /** Deletes the Stacks with their Runs, and waits up to `waitMs`. Returns the number of objects that still exist. */
  async remove(waitMs: number): Promise<number> {
    const { client, namespace, onError } = this.#options
    const names = this.#stacks.flatMap(({ isCreated }, index) => (isCreated ? [this.#nameOf(index)] : []))
    const deleteNext = async () => {
      for (let name = names.pop(); name !== undefined; name = names.pop()) {
        await client
          .resource(stackResource)
          .delete(name, { namespace })
          .catch(error => isReason(error, 'NotFound') || onError?.(error))
      }
    }
    await Promise.all(Array.from({ length: deleteConcurrency }, deleteNext))
    for (const untilMs = performance.now() + waitMs; ; await sleep(100)) {
      const remaining = await this.#countRemaining()
      if (remaining === 0 || performance.now() > untilMs) return remaining
    }
  }

  async #countRemaining(): Promise<number> {
    const { client, namespace, prefix } = this.#options
    const stacks = await client.resource(stackResource).list({ namespace, labelSelector: `${hollowLabel}=${prefix}`, limit: 500 })
    if (stacks.items.length > 0) return stacks.items.length
    // Runs are deleted after their Stack.
    const runs = await client.resource(runResource).listAll({ namespace, labelSelector: labels.stack })
    return runs.items.filter(run => this.#stackOf(run) !== undefined).length
  }

  #change(): void {
    for (let checked = 0; checked < this.#stacks.length; checked++) {
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
          source: { inline: { files: { 'README.md': 'created by "oarlock hollow"' } } },
          variables,
          pool,
          // Nothing was created, so nothing has to be destroyed.
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
