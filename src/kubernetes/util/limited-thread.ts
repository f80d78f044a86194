import { type LimitedExecutor, LimitedRequests, type LimitedRequestsOptions, RequestLimitError } from './limited-requests.ts'
import { RequestThread } from './worker-thread.ts'

/**
 * A {@link RequestThread} for work that would block the event loop, and may never end: with a limit of time and memory for each request.
 * A single allocation of more than 16 MB beyond the limit of memory aborts the whole process, so input that can have one needs a `LimitedProcess`.
 */
export class LimitedThread<Request, Response> extends LimitedRequests<Request, Response> {
  constructor(path: string, options: LimitedRequestsOptions) {
    super(options, () => startExecutor(path, options))
  }
}

function startExecutor<Request, Response>(path: string, { name, maxHeapMb }: LimitedRequestsOptions): LimitedExecutor<Request, Response> {
  let hasEnded = false
  const onEnd = () => {
    hasEnded = true
  }
  const thread = new RequestThread<Request, Response>(path, { name, resourceLimits: { maxOldGenerationSizeMb: maxHeapMb }, onEnd })
  return {
    get hasEnded() {
      return hasEnded
    },
    request: request =>
      thread.request(request).catch(cause => {
        throw isOutOfMemory(cause) ? new RequestLimitError(name, `${maxHeapMb} MB of memory`, { cause }) : cause
      }),
    end: () => thread.terminate(),
  }
}

const isOutOfMemory = (error: unknown): boolean =>
  ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code === 'ERR_WORKER_OUT_OF_MEMORY'
