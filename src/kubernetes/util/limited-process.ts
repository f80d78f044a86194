import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { modulePath, smallEnvironment } from './worker-thread.ts'

export type LimitedProcessOptions = {
  /** Shown by `ps`. */
  readonly name: string
  /** A request that takes longer is aborted. */
  readonly timeoutMs: number
  /** Of the old generation; a small input can expand without bound. */
  readonly maxHeapMb: number
}

/** The process ends after this long without a request. */
const idleMs = 30_000
/** V8 aborts a process that exceeds its heap limit; the kernel kills one when the memory of the machine or container is used up. */
const outOfMemorySignals: readonly (string | null)[] = ['SIGABRT', 'SIGKILL']
/** How much of the end of stderr is part of an error. */
const maxErrorLength = 2_000

/** The process could not finish a request within its limits. */
export class ProcessLimitError extends Error {
  override readonly name = 'ProcessLimitError'
  /** What the request takes more of: `5 s`, or `256 MB of memory`. */
  readonly limit: string

  constructor(process: string, limit: string) {
    super(`a request to process ${process} takes more than ${limit}`)
    this.limit = limit
  }
}

type Child = { readonly process: ChildProcess; readonly ended: Promise<Ending> }
type Ending = { readonly error: Error }
type Reply<Response> = { readonly response: Response } | { readonly error: unknown }

/**
 * A process for work on untrusted input, with a limit of time and memory for each request. The heap limit of a thread contains less: a single large
 * allocation beyond it, such as that of a growing Set, aborts the whole process.
 *
 * It starts with the first request, ends when it is idle, and is replaced after a request that it could not finish. It does not keep this process alive,
 * and has nothing of its environment but the directory of the compile cache.
 */
export class LimitedProcess<Request, Response> {
  readonly #path: string
  readonly #options: LimitedProcessOptions
  #child: Child | undefined
  #isBusy = false
  #idleTimer: NodeJS.Timeout | undefined
  /** Of the last process. */
  #ending: Promise<unknown> = Promise.resolve()

  /** @param path of a module that calls {@link serveProcessRequests}, below the source directory and without an extension. */
  constructor(path: string, options: LimitedProcessOptions) {
    this.#path = path
    this.#options = options
  }

  /**
   * One request at a time: see `ClientLimiter`. Rejects when the process has ended, so that two never need memory at the same time.
   * @throws {ProcessLimitError}, the reason of `signal`, or what the responding function has thrown.
   */
  async request(request: Request, signal?: AbortSignal): Promise<Response> {
    if (this.#isBusy) throw new Error(`bug: process ${this.#options.name} has a request already`)
    signal?.throwIfAborted()
    this.#isBusy = true
    clearTimeout(this.#idleTimer)
    const { name, timeoutMs } = this.#options
    let stopped: Ending | undefined
    const stop = (reason: unknown) => {
      stopped ??= { error: reason as Error }
      this.#stop()
    }
    const abort = () => stop(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    const timer = setTimeout(() => stop(new ProcessLimitError(name, `${timeoutMs / 1_000} s`)), timeoutMs)
    try {
      this.#child ??= this.#start()
      const reply = await exchange<Request, Response>(this.#child, request)
      if ('response' in reply) return reply.response
      throw stopped?.error ?? reply.error
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      this.#isBusy = false
      if (this.#child) this.#idleTimer = setTimeout(() => this.#stop(), idleMs).unref()
    }
  }

  /** Ends the process, and with it a pending request. Resolves when it has ended. */
  async close(): Promise<void> {
    this.#stop()
    await this.#ending
  }

  #start(): Child {
    const child = startChild(this.#path, this.#options)
    this.#ending = child.ended.then(() => {
      if (this.#child === child) this.#child = undefined
    })
    return child
  }

  #stop(): void {
    clearTimeout(this.#idleTimer)
    const child = this.#child?.process
    this.#child = undefined
    child?.kill('SIGKILL')
    // So that `close` can wait for the end.
    child?.ref()
  }
}

/** In the module of a process: answers the requests of {@link LimitedProcess}. */
export function serveProcessRequests<Request, Response>(respond: (request: Request) => Response | Promise<Response>): void {
  process.on('message', async message => {
    // Without a receiver the process ends.
    process.send?.(await replyTo(respond, (message as { readonly request: Request }).request), () => {})
  })
}

async function replyTo<Request, Response>(
  respond: (request: Request) => Response | Promise<Response>,
  request: Request,
): Promise<Reply<Response>> {
  try {
    return { response: await respond(request) }
  } catch (error) {
    return { error }
  }
}

function startChild(path: string, { name, maxHeapMb }: LimitedProcessOptions): Child {
  // Loaded here: many processes that import this module start no other.
  const { fork } = process.getBuiltinModule('node:child_process')
  const child = fork(modulePath(path), [name], {
    ...{ cwd: '/', env: smallEnvironment(), execArgv: [`--max-old-space-size=${maxHeapMb}`] },
    ...{ serialization: 'advanced', stdio: ['ignore', 'ignore', 'pipe', 'ipc'] },
  })
  child.unref()
  child.channel?.unref()
  // Without a free file descriptor there is none.
  const stderr = child.stderr as Socket | undefined
  stderr?.unref()
  let output = ''
  stderr?.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-maxErrorLength)
  })
  const ended = new Promise<Ending>(resolve => {
    child.on('error', cause => {
      if (child.pid === undefined) resolve({ error: new Error(`cannot start process ${name}: ${cause.message}`, { cause }) })
    })
    child.once('exit', (code, signal) => {
      const error =
        outOfMemorySignals.includes(signal) && !child.killed
          ? new ProcessLimitError(name, `${maxHeapMb} MB of memory`)
          : new Error(`process ${name} has ended with ${signal ?? `exit code ${code}`}: ${output}`)
      resolve({ error })
    })
  })
  return { process: child, ended }
}

async function exchange<Request, Response>({ process: child, ended }: Child, request: Request): Promise<Reply<Response> | Ending> {
  if (child.pid === undefined) return await ended
  const done = new AbortController()
  try {
    // Throws for what cannot be serialized. Another error means that the process ends.
    child.send({ request }, () => {})
    const reply = once(child, 'message', { signal: done.signal }) as Promise<[Reply<Response>]>
    return await Promise.race([reply.then(([first]) => first), ended])
  } finally {
    done.abort()
  }
}
