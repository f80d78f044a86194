import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { type LimitedExecutor, LimitedRequests, type LimitedRequestsOptions, RequestLimitError } from './limited-requests.ts'
import { modulePath, smallEnvironment } from './worker-thread.ts'

/** V8 aborts a process that exceeds its heap limit; the kernel kills one when the memory of the machine or container is used up. */
const outOfMemorySignals: readonly (string | null)[] = ['SIGABRT', 'SIGKILL']
/** How much of the end of stderr is part of an error. */
const maxErrorLength = 2_000

type Ending = { readonly error: Error }
type Reply<Response> = { readonly response: Response } | { readonly error: unknown }

/**
 * A process for work on untrusted input, with a limit of time and memory for each request. The heap limit of a thread contains less: a single large
 * allocation beyond it, such as that of a growing Set, aborts the whole process.
 *
 * It does not keep this process alive, and has nothing of its environment but the directory of the compile cache.
 */
export class LimitedProcess<Request, Response> extends LimitedRequests<Request, Response> {
  /** @param path of a module that calls {@link serveProcessRequests}, below the source directory and without an extension. */
  constructor(path: string, options: LimitedRequestsOptions) {
    super(options, () => startExecutor(path, options))
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

function startExecutor<Request, Response>(path: string, options: LimitedRequestsOptions): LimitedExecutor<Request, Response> {
  const child = startChild(path, options)
  let hasEnded = false
  const ended = endingOf(child, options).finally(() => {
    hasEnded = true
  })
  return {
    get hasEnded() {
      return hasEnded
    },
    async request(request) {
      const reply = await exchange<Request, Response>(child, ended, request)
      if ('response' in reply) return reply.response
      throw reply.error
    },
    async end() {
      child.kill('SIGKILL')
      // So that who closes it can wait for the end.
      child.ref()
      await ended
    },
  }
}

function startChild(path: string, { name, maxHeapMb }: LimitedRequestsOptions): ChildProcess {
  // Loaded here: many processes that import this module start no other.
  const { fork } = process.getBuiltinModule('node:child_process')
  const child = fork(modulePath(path), [name], {
    ...{ cwd: '/', env: smallEnvironment(), execArgv: [`--max-old-space-size=${maxHeapMb}`] },
    ...{ serialization: 'advanced', stdio: ['ignore', 'ignore', 'pipe', 'ipc'] },
  })
  child.unref()
  child.channel?.unref()
  return child
}

/** Why a process has ended, or could not start. */
function endingOf(child: ChildProcess, { name, maxHeapMb }: LimitedRequestsOptions): Promise<Ending> {
  // Without a free file descriptor there is none.
  const stderr = child.stderr as Socket | undefined
  stderr?.unref()
  let output = ''
  stderr?.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-maxErrorLength)
  })
  return new Promise(resolve => {
    child.on('error', cause => {
      if (child.pid === undefined) resolve({ error: new Error(`cannot start process ${name}: ${cause.message}`, { cause }) })
    })
    child.once('exit', (code, signal) => {
      const error =
        outOfMemorySignals.includes(signal) && !child.killed
          ? new RequestLimitError(name, `${maxHeapMb} MB of memory`)
          : new Error(`process ${name} has ended with ${signal ?? `exit code ${code}`}: ${output}`)
      resolve({ error })
    })
  })
}

async function exchange<Request, Response>(
  child: ChildProcess,
  ended: Promise<Ending>,
  request: Request,
): Promise<Reply<Response> | Ending> {
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
