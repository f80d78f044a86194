import type { TableKind } from '../protocol/index.ts'
import type { ConsoleUser } from './sessions.ts'

export type ListRight = { readonly verb: 'list'; readonly group: string; readonly resource: string; readonly namespace?: string }

/** Decides as the API server does. @throws if it does not decide. */
export type IsAllowed = (user: ConsoleUser, right: ListRight) => Promise<boolean>

const oarlock = 'oarlock.dev'

/** Of which objects the rows of a table are. */
const rightOf: Readonly<Record<TableKind, ListRight & { readonly isNamespaced?: boolean }>> = {
  stacks: { verb: 'list', group: oarlock, resource: 'stacks', isNamespaced: true },
  runs: { verb: 'list', group: oarlock, resource: 'runs', isNamespaced: true },
  queue: { verb: 'list', group: oarlock, resource: 'runs', isNamespaced: true },
  workers: { verb: 'list', group: oarlock, resource: 'workers' },
  pools: { verb: 'list', group: oarlock, resource: 'workerpools' },
  tenants: { verb: 'list', group: oarlock, resource: 'tenants' },
  controllers: { verb: 'list', group: 'coordination.k8s.io', resource: 'leases', namespace: 'oarlock-system' },
  partitions: { verb: 'list', group: oarlock, resource: 'partitions' },
}

/** Rights are asked for again after so long. */
const rightsPeriodMs = 15_000
/** Each namespace is asked for apart by a user who may not list all of them. */
const concurrentReviews = 16

/** What a user may see of a table. */
export type Visible = { readonly all: true } | { readonly all: false; readonly namespaces: ReadonlySet<string> }

/** Which rows one user may see: those of objects that the user may list (SubjectAccessReview). */
export class Visibility {
  readonly #user: ConsoleUser
  readonly #isAllowed: IsAllowed
  readonly #nowMs: () => number
  /** Of {@link Visibility.period}. */
  readonly #known = new Map<string, Promise<boolean>>()
  readonly #startMs: number
  #knownPeriod = 0

  /** @param nowMs a monotonic clock in milliseconds. */
  constructor(user: ConsoleUser, isAllowed: IsAllowed, nowMs: () => number = () => performance.now()) {
    this.#user = user
    this.#isAllowed = isAllowed
    this.#nowMs = nowMs
    this.#startMs = nowMs()
  }

  /** Another one when rights are asked for again: what was shown by the earlier ones is computed again. Sessions do not change it in the same moment. */
  get period(): number {
    return Math.floor((this.#nowMs() - this.#startMs) / rightsPeriodMs)
  }

  /** @param namespaces those that have rows. @throws if the API server does not decide. */
  async of(kind: TableKind, namespaces: () => Iterable<string>): Promise<Visible> {
    const { isNamespaced, ...right } = rightOf[kind]
    if (await this.#may(right)) return { all: true }
    const visible = new Set<string>()
    if (!isNamespaced) return { all: false, namespaces: visible }
    const left = [...namespaces()]
    const reviewer = async () => {
      for (let namespace = left.pop(); namespace !== undefined; namespace = left.pop())
        if (await this.#may({ ...right, namespace })) visible.add(namespace)
    }
    await Promise.all(Array.from({ length: concurrentReviews }, reviewer))
    return { all: false, namespaces: visible }
  }

  #may(right: ListRight): Promise<boolean> {
    const { period } = this
    if (period !== this.#knownPeriod) this.#known.clear()
    this.#knownPeriod = period
    const key = `${right.group}/${right.resource}/${right.namespace ?? ''}`
    const known = this.#known.get(key)
    if (known) return known
    const answer = this.#isAllowed(this.#user, right)
    this.#known.set(key, answer)
    // What was not decided is asked again.
    answer.catch(() => this.#known.delete(key))
    return answer
  }
}
