import { type Run, reportedState, runResource, type Stack, type StackSpec, stackResource } from '../../src/api/index.ts'
import type { Client } from '../../src/kubernetes/client/index.ts'
import { type Condition, findCondition, isConditionTrue } from '../../src/kubernetes/object/index.ts'
import { eventually } from './eventually.ts'

export const condition = ({ status }: Pick<Stack, 'status'>, type: string): Condition | undefined => findCondition(status?.conditions, type)

/** Reports whether the status describes the current spec. */
export const isUpToDate = ({ metadata, status }: Pick<Stack, 'metadata' | 'status'>): boolean =>
  status?.observedGeneration === metadata.generation

export const isReady = (stack: Stack): boolean => isUpToDate(stack) && isConditionTrue(stack.status?.conditions, 'Ready')

/** Creates, changes and awaits Stacks of one namespace. */
export class StackFixture {
  readonly #client: Client | (() => Client)
  readonly namespace: string

  /** A function is called when the client is needed. */
  constructor(client: Client | (() => Client), namespace = 'default') {
    this.#client = client
    this.namespace = namespace
  }

  get client(): Client {
    return typeof this.#client === 'function' ? this.#client() : this.#client
  }

  get stacks() {
    return this.client.resource(stackResource)
  }

  get runs() {
    return this.client.resource(runResource)
  }

  async create(name: string, spec: StackSpec): Promise<Stack> {
    return await this.stacks.create({ metadata: { name, namespace: this.namespace }, spec })
  }

  /** @throws if the conditions are none of the states in `src/api/stack-conditions.ts`. */
  async get(name: string): Promise<Stack> {
    const stack = await this.stacks.get(name, { namespace: this.namespace })
    if (condition(stack, 'Ready') && !reportedState(stack))
      throw new Error(`stack ${name} reports conditions that exclude each other: ${JSON.stringify(stack.status?.conditions)}`)
    return stack
  }

  /** Applies a merge patch such as `{ spec: … }` or `{ metadata: … }`. */
  async patch(name: string, patch: object): Promise<Stack> {
    return await this.stacks.patch(name, patch, { type: 'merge', namespace: this.namespace })
  }

  async runsOf(name: string): Promise<Run[]> {
    const { items } = await this.runs.listAll({ namespace: this.namespace, labelSelector: `oarlock.dev/stack=${name}` })
    return items.sort((a, b) => a.spec.epoch - b.spec.epoch)
  }

  async until(name: string, what: string, check: (stack: Stack) => boolean, timeoutMs = 40_000): Promise<Stack> {
    let last: Stack | undefined
    try {
      return await eventually(
        async () => {
          last = await this.get(name)
          return check(last) && last
        },
        what,
        timeoutMs,
      )
    } catch (error) {
      throw new Error(`stack ${name}: ${(error as Error).message}; its status is ${JSON.stringify(last?.status, null, 1)}`)
    }
  }

  async untilReady(name: string): Promise<Stack> {
    return await this.until(name, 'Ready', isReady)
  }

  async untilRun(name: string, what: string, check: (run: Run) => boolean, timeoutMs = 40_000): Promise<Run> {
    return await eventually(async () => (await this.runsOf(name)).find(check), `${what} of a Run of ${name}`, timeoutMs)
  }

  async untilDeleted(name: string, timeoutMs = 40_000): Promise<void> {
    await eventually(
      async () => !(await this.stacks.getOrUndefined(name, { namespace: this.namespace })),
      `${name} to be deleted`,
      timeoutMs,
    )
  }
}
