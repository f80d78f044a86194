import { StatusError } from '../../../kubernetes/object/index.ts'
import { ClientLimiter, LimitedProcess, type LimitedRequestsOptions, RequestLimitError } from '../../../kubernetes/util/index.ts'
import { performTask, type TaskName, type TaskReply, type TaskRequest, type Tasks } from './stack-tasks.ts'

/** Performs one of {@link tasks}. */
export type RunTask = <Name extends TaskName>(name: Name, ...args: Parameters<Tasks[Name]>) => Promise<ReturnType<Tasks[Name]>>

export type TaskCaller = {
  /** Users take turns. */
  readonly user: string
  /** Aborted when no one waits for the result any more. */
  readonly signal: AbortSignal
}

type TaskRunnerOptions = LimitedRequestsOptions & {
  /** Up to this size this process performs the tasks, immediately. */
  readonly maxInlineSize: number
  /** What exceeds a limit, and what the user does instead. */
  readonly subject: string
  readonly remedy: string
}

const waiting = { waitingPerClient: 8, waiting: 32 }

/** Performs the tasks of a large input in a process, one caller after another; those of a small one here. */
export class TaskRunner {
  readonly #options: TaskRunnerOptions
  readonly #limiter = new ClientLimiter({ concurrent: 1, concurrentPerClient: 1, ...waiting })
  readonly #process: LimitedProcess<TaskRequest, TaskReply>
  readonly #closing = new AbortController()

  constructor(options: TaskRunnerOptions) {
    this.#options = options
    this.#process = new LimitedProcess('console/server/offload/offload-process', options)
  }

  /**
   * Calls `work` when it is the turn of the caller, so that it reads a large input into memory only then.
   * @param size of the input, in bytes or characters; Infinity if it is not known.
   * @throws {StatusError} RequestEntityTooLarge if a task takes too long or too much memory, what a task throws, ServiceUnavailable when the runner is closed.
   * @throws {LimitExceededError} if too many calls wait, of this user or of all. The reason of the caller's signal. What a task throws.
   */
  async run<Value>({ user, signal }: TaskCaller, size: number, work: (run: RunTask) => Promise<Value>): Promise<Value> {
    if (size <= this.#options.maxInlineSize) return await work(async (name, ...args) => resultOf(performTask({ name, args })))
    const ended = AbortSignal.any([signal, this.#closing.signal])
    return await this.#limiter.run(user, async () => {
      ended.throwIfAborted()
      return await work(async (name, ...args) => resultOf(await this.#perform({ name, args }, ended)))
    })
  }

  async close(): Promise<void> {
    this.#closing.abort(new StatusError('ServiceUnavailable', 'the console is stopping: retry'))
    await this.#process.close()
  }

  async #perform(request: TaskRequest, signal: AbortSignal): Promise<TaskReply> {
    try {
      return await this.#process.request(request, signal)
    } catch (error) {
      if (!(error instanceof RequestLimitError)) throw error
      const { subject, remedy } = this.#options
      throw new StatusError('RequestEntityTooLarge', `${subject} takes more than ${error.limit}: ${remedy}`)
    }
  }
}

function resultOf<Result>(reply: TaskReply): Result {
  if ('status' in reply) throw StatusError.fromStatus(reply.status)
  return reply.result as Result
}
