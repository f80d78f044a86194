import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Run,
  runResource,
  type Stack,
  type StackSpec,
  stackResource,
  type WorkerPoolSpec,
  workerPoolResource,
  workerResource,
} from '../../src/api/index.ts'
import { type Client, namespaceResource } from '../../src/kubernetes/client/index.ts'
import { isConditionTrue } from '../../src/kubernetes/object/index.ts'
import type { Up } from '../oarlock-up.ts'
import { processesOf } from './memory.ts'

const timeoutMs = 1_800_000

/** Stacks of one project in one `oarlock up`. */
export class Fleet {
  readonly #up: Up
  readonly #dataDir: string
  readonly #client: Client

  constructor(up: Up, dataDir: string) {
    this.#up = up
    this.#dataDir = dataDir
    this.#client = up.client
  }

  async setPool(spec: Partial<WorkerPoolSpec>): Promise<void> {
    const pools = this.#client.resource(workerPoolResource)
    while (!(await pools.getOrUndefined('default'))) await sleep(50)
    await pools.patch('default', { spec } as object, { type: 'merge' })
  }

  async create(namespace: string, names: readonly string[], specOf: (name: string) => StackSpec): Promise<void> {
    if (namespace !== 'default') await this.#client.resource(namespaceResource).create({ metadata: { name: namespace } })
    await Promise.all(names.map(name => this.#client.resource(stackResource).create({ metadata: { name, namespace }, spec: specOf(name) })))
  }

  async stacks(namespace: string): Promise<Stack[]> {
    return (await this.#client.resource(stackResource).listAll({ namespace })).items
  }

  /** Runs of a commit, in the order of their epochs. */
  async runsOf(namespace: string, commit: string): Promise<Run[]> {
    const { items } = await this.#client.resource(runResource).listAll({ namespace })
    return items.filter(({ spec }) => spec.revision?.includes(commit)).sort((a, b) => a.spec.epoch - b.spec.epoch)
  }

  /** Waits until every Stack of the namespace has applied the commit and is Ready. */
  async untilApplied(namespace: string, commit: string, stackCount: number): Promise<Stack[]> {
    const deadline = performance.now() + timeoutMs
    let reported = -1
    for (;;) {
      const stacks = await this.stacks(namespace)
      const applied = stacks.filter(
        ({ status }) => status?.applied?.revision?.includes(commit) && isConditionTrue(status?.conditions, 'Ready'),
      )
      if (applied.length !== reported) process.stderr.write(`\r${namespace}: ${applied.length}/${stackCount} at ${commit.slice(0, 8)} `)
      reported = applied.length
      if (applied.length === stackCount) return stacks
      const stalled = stacks.find(({ status }) => isConditionTrue(status?.conditions, 'Stalled'))
      if (stalled || performance.now() > deadline)
        throw new Error(
          `${applied.length} of ${stackCount} Stacks have applied ${commit}: ${JSON.stringify((stalled ?? stacks[0])?.status)}`,
        )
      await sleep(500)
    }
  }

  async suspend(namespace: string, name: string): Promise<void> {
    await this.#client.resource(stackResource).patch(name, { spec: { suspend: true } } as object, { type: 'merge', namespace })
  }

  /** Waits until the programs of as many Runs of the commit are running at the same time. */
  async untilApplying(commit: string, count: number): Promise<void> {
    const deadline = performance.now() + timeoutMs
    for (;;) {
      const runs = await this.runsOf('default', commit)
      const applying = runs.filter(({ status }) => status?.phase === 'Applying').length
      if (applying === count) return
      if (performance.now() > deadline) throw new Error(`${applying} of ${count} Runs are applying ${commit}`)
      await sleep(500)
    }
  }

  async locks(namespace: string): Promise<number> {
    let count = 0
    for (const { metadata } of await this.stacks(namespace)) {
      const response = await this.#client.request({ method: 'GET', path: `/state/${namespace}/${metadata.name}/lock` })
      if (Object.keys((await response.json()) as object).length > 0) count++
    }
    return count
  }

  /** Waits until no worker is left, at most three minutes, and returns what is there then. */
  async untilIdle(): Promise<{ workers: number; processes: number }> {
    const startedMs = performance.now()
    for (;;) {
      const { items } = await this.#client.resource(workerResource).listAll()
      const processes = processesOf(this.#up.pid, this.#dataDir).filter(({ kind }) => kind === 'worker' || kind === 'program')
      const isLate = performance.now() - startedMs > 180_000
      if ((items.length === 0 && processes.length === 0) || isLate) return { workers: items.length, processes: processes.length }
      await sleep(100)
    }
  }
}

export const megabytesOf = (path: string): number =>
  (Number(execFileSync('du', ['-sk', path], { encoding: 'utf8' }).split('\t')[0]) * 1_024) / 1e6
