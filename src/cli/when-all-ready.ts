import { type Stack, stackMessage, stackResource } from '../api/index.ts'
import { dependencyNames } from '../controllers/stack/index.ts'
import { type Client, listWatch } from '../kubernetes/client/index.ts'
import { objectKey } from '../kubernetes/object/index.ts'
import { formatError } from './cli-error.ts'
import { type Readiness, readinessOf } from './readiness.ts'
import { note } from './terminal.ts'
import { timedOut } from './wait-for.ts'

/** Reasons that change soon in most cases are reported later, or not. */
const reportAfterMs = 2_000

/**
 * Waits until all applied Stacks are Ready with their present spec, or only a user can continue those that are not; a Run that is retried is waited
 * for. Reports what became of each Stack, and after a moment why the first one is not Ready yet.
 * Returns the exit code of the first problem in the order of `applied`: awaitingApproval, drifted, canceled, notFound, failed or timedOut.
 */
export async function whenAllReady(client: Client, applied: readonly Stack[], timeoutMs: number): Promise<number> {
  if (applied.length === 0) return 0
  const wait = new ReadyWait(applied)
  const ended = Promise.withResolvers<void>()
  const stop = new AbortController()
  const update = () => {
    if (wait.update()) ended.resolve()
  }
  const timers = [
    setTimeout(() => ended.resolve(), timeoutMs),
    setTimeout(() => {
      wait.reportsReasons = true
      update()
    }, reportAfterMs),
  ]
  const watches = [...Map.groupBy(applied, ({ metadata }) => metadata.namespace ?? 'default')].map(([namespace, stacks]) =>
    listWatch(client, stackResource, {
      namespace,
      ...selectionOf(stacks),
      signal: stop.signal,
      onReplace: items => {
        wait.replace(namespace, items)
        update()
      },
      onEvent: ({ type, object }) => {
        if (type === 'BOOKMARK') return
        wait.set(object, type !== 'DELETED')
        update()
      },
      onError: error => {
        if ((error as { code?: unknown }).code === 403) ended.reject(error)
      },
    }),
  )
  try {
    await ended.promise
    return wait.finish(timeoutMs)
  } finally {
    for (const timer of timers) clearTimeout(timer)
    stop.abort()
    await Promise.all(watches)
  }
}

/** All Stacks of the namespace, because those that a Stack depends on show whether it can continue. */
function selectionOf([first, ...others]: readonly Stack[]): { fieldSelector?: string } {
  const isAlone = first !== undefined && others.length === 0 && dependencyNames(first.spec).length === 0
  return isAlone ? { fieldSelector: `metadata.name=${first.metadata.name}` } : {}
}

/** The applied Stacks and what is known of their namespaces. */
class ReadyWait {
  reportsReasons = false
  readonly #applied: readonly Stack[]
  readonly #stacks = new Map<string, Stack>()
  readonly #listed = new Set<string>()
  /** By key of a Stack for which the wait has ended: the exit code. */
  readonly #ended = new Map<string, number>()
  /** The last reason of each Stack that was reported. */
  readonly #reported = new Map<string, string>()

  constructor(applied: readonly Stack[]) {
    this.#applied = applied
  }

  replace(namespace: string, items: readonly Stack[]): void {
    for (const [key, { metadata }] of this.#stacks) if (metadata.namespace === namespace) this.#stacks.delete(key)
    for (const stack of items) this.set(stack, true)
    this.#listed.add(namespace)
  }

  set(stack: Stack, exists: boolean): void {
    if (exists) this.#stacks.set(objectKey(stack), stack)
    else this.#stacks.delete(objectKey(stack))
  }

  /** Reports what has changed. True when none of the Stacks can continue without a user. */
  update(): boolean {
    let first: Stack | undefined
    for (const stack of this.#remaining()) {
      const readiness = this.#readinessOf(stack)
      if (readiness.kind === 'ready') {
        note(`stack/${stack.metadata.name} is Ready`)
        this.#ended.set(objectKey(stack), 0)
      } else if (readiness.kind === 'failed') this.#fail(stack, readiness.error)
      else if (readiness.kind === 'working') first ??= stack
    }
    if (first && this.reportsReasons) this.#reportReason(first)
    return first === undefined
  }

  /** Reports the Stacks that were waited for until now; returns the exit code. */
  finish(timeoutMs: number): number {
    for (const stack of this.#remaining()) {
      const readiness = this.#readinessOf(stack)
      this.#fail(stack, 'error' in readiness ? readiness.error : timedOut(timeoutMs, this.#describe(stack)))
    }
    return this.#applied.map(stack => this.#ended.get(objectKey(stack)) ?? 0).find(code => code !== 0) ?? 0
  }

  #remaining(): Stack[] {
    return this.#applied.filter(stack => !this.#ended.has(objectKey(stack)))
  }

  #readinessOf(stack: Stack): Readiness {
    const { namespace = 'default' } = stack.metadata
    if (!this.#listed.has(namespace)) return { kind: 'working' }
    return readinessOf(stack.metadata, this.#stacks.get(objectKey(stack)), name => this.#stacks.get(`${namespace}/${name}`))
  }

  #fail(stack: Stack, error: unknown): void {
    const { message, exitCode, hint } = formatError(error)
    note(`oarlock: ${message}`)
    if (hint) note(`  hint: ${hint}`)
    this.#ended.set(objectKey(stack), exitCode)
  }

  #reportReason(stack: Stack): void {
    const { reason, message } = this.#messageOf(stack)
    const key = objectKey(stack)
    if (reason === undefined || reason === 'Progressing' || reason === this.#reported.get(key)) return
    this.#reported.set(key, reason)
    note(`  stack/${stack.metadata.name} is not Ready yet: ${reason}: ${message}`)
  }

  #describe(stack: Stack): string {
    const { reason, message } = this.#messageOf(stack)
    return `stack/${stack.metadata.name} to be Ready${reason === undefined ? '' : `: ${reason}: ${message}`}`
  }

  #messageOf(stack: Stack): { reason?: string; message?: string } {
    const now = this.#stacks.get(objectKey(stack))
    return now ? stackMessage(now) : {}
  }
}
