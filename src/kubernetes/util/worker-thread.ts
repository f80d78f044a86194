import { join } from 'node:path'
import type { Worker, WorkerOptions } from 'node:worker_threads'
import { moduleExtension, sourceDirectory } from './source-files.ts'
import { respondToRequests, ThreadRequests } from './thread-requests.ts'

/** The file of a module that a thread or a process starts with; `path` is below the source directory and has no extension. */
export const modulePath = (path: string): string => join(sourceDirectory, `${path}${moduleExtension}`)

/**
 * Starts a thread with the module at `path`, such as `stores/state/store-thread`. Flags of this process, such as --input-type, are
 * not passed on: they are not meant for that module.
 */
export function startThread(path: string, options: WorkerOptions = {}): Worker {
  // Loaded here: many processes that import this module start no thread.
  const threads = process.getBuiltinModule('node:worker_threads')
  return new threads.Worker(modulePath(path), { execArgv: [], ...options })
}

/** For a thread that must stay small and needs nothing of the environment: 1 MB of young and 24 MB of old generation. */
export function smallThreadOptions(): Pick<WorkerOptions, 'env' | 'resourceLimits'> {
  return { env: smallEnvironment(), resourceLimits: { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 24 } }
}

/** For a thread or a process that needs nothing of the environment: the directory of the compile cache, if there is one. */
export function smallEnvironment(): NodeJS.ProcessEnv {
  const { NODE_COMPILE_CACHE } = process.env
  // An undefined value would become a directory of that name.
  return NODE_COMPILE_CACHE ? { NODE_COMPILE_CACHE } : {}
}

/** A thread whose module calls {@link serveThreadRequests}. It keeps the process alive only while a request is pending. */
export class RequestThread<Request, Response> {
  readonly #worker: Worker
  readonly #requests: ThreadRequests<Request, Response>

  /** @param options `onEnd` is called once, with the reason: the thread failed, ended, or was terminated. */
  constructor(path: string, { onEnd, ...options }: WorkerOptions & { onEnd?(reason: Error): void } = {}) {
    this.#worker = startThread(path, options)
    this.#requests = new ThreadRequests(this.#worker)
    let hasEnded = false
    const end = (reason: Error) => {
      if (hasEnded) return
      hasEnded = true
      this.#requests.fail(reason)
      onEnd?.(reason)
    }
    this.#worker.on('error', cause => end(new Error(`the thread ${path} failed: ${(cause as Error).message}`, { cause })))
    this.#worker.on('exit', () => end(new Error(`the thread ${path} has ended`)))
    this.#worker.unref()
  }

  /** Resolves with the response; rejects when the thread fails or ends before. The message is posted before this returns. */
  async request(request: Request, transfer?: readonly ArrayBuffer[]): Promise<Response> {
    this.#worker.ref()
    try {
      return await this.#requests.send(request, transfer)
    } finally {
      if (this.#requests.pending === 0) this.#worker.unref()
    }
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate()
  }
}

/** In the module of a thread: answers the requests of {@link RequestThread}. An error that `respond` throws ends the thread. */
export function serveThreadRequests<Request, Response>(respond: (request: Request) => Response | Promise<Response>): void {
  const { parentPort } = process.getBuiltinModule('node:worker_threads')
  if (parentPort) respondToRequests(parentPort, respond)
}
