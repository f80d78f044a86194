import { StatusError } from '../../object/index.ts'
import { RequestThread } from '../../util/index.ts'
import { notYaml } from './body.ts'
import type { YamlReply } from './yaml-thread.ts'

/** YAML up to this length is parsed inline, which takes up to 5 ms; ten times that for malicious input. */
const maxInlineLength = 4 * 1024
/** Parsing is aborted after this time; 3 MB of plain lines take 5 s. */
const timeoutMs = 15_000
/** At most this many texts wait for the thread. */
const maxQueued = 64
/** The thread ends after this long without work. */
const idleMs = 30_000
/** Limit of the thread's heap: a small text can expand without bound. */
const maxHeapMb = 512

type Job = { readonly text: string; readonly resolve: (json: string) => void; readonly reject: (error: Error) => void }

/** True for YAML that would block other requests while it is parsed, unless it is JSON. */
export function isLongYaml(text: string, contentType: string): boolean {
  return text.length > maxInlineLength && contentType.endsWith('yaml')
}

/** Parses long YAML in a thread of its own, one text after another. */
export class YamlParserThread {
  readonly #queue: Job[] = []
  #job: Job | undefined
  #thread: RequestThread<string, YamlReply> | undefined
  #timer: NodeJS.Timeout | undefined
  readonly #timeoutMs: number

  constructor(limits: { limitMs?: number } = {}) {
    this.#timeoutMs = limits.limitMs ?? timeoutMs
  }

  /**
   * Converts YAML to JSON.
   * @throws {StatusError} BadRequest for invalid YAML or a timeout, TooManyRequests when too many texts wait.
   */
  toJson(text: string): Promise<string> {
    if (this.#queue.length >= maxQueued) {
      const why = `more than ${maxQueued} long YAML bodies wait to be parsed: retry later, or send JSON`
      return Promise.reject(new StatusError('TooManyRequests', why, { details: { retryAfterSeconds: 1 } }))
    }
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    this.#queue.push({ text, resolve, reject })
    this.#next()
    return promise
  }

  #next(): void {
    if (this.#job) return
    const job = this.#queue.shift()
    this.#job = job
    clearTimeout(this.#timer)
    if (!job) {
      this.#timer = setTimeout(() => this.#stop(), idleMs)
      this.#timer.unref()
      return
    }
    this.#timer = setTimeout(() => {
      this.#stop()
      this.#settle(job, () => job.reject(notYaml(`parsing takes longer than ${this.#timeoutMs} ms: send it as JSON`)))
    }, this.#timeoutMs)
    this.#timer.unref()
    const resourceLimits = { maxOldGenerationSizeMb: maxHeapMb }
    this.#thread ??= new RequestThread('kubernetes/server/rest/yaml-thread', { name: 'oarlock-yaml', resourceLimits })
    const thread = this.#thread
    thread.request(job.text).then(
      reply =>
        this.#settle(job, () => {
          if ('json' in reply) job.resolve(reply.json)
          else job.reject('status' in reply ? StatusError.fromStatus(reply.status) : notYaml(reply.error))
        }),
      // The thread failed, usually because it ran out of memory.
      () => {
        if (this.#thread === thread) this.#thread = undefined
        this.#settle(job, () =>
          job.reject(
            new StatusError('RequestEntityTooLarge', 'the body of the request is too large to be parsed as YAML: send it as JSON'),
          ),
        )
      },
    )
  }

  #stop(): void {
    void this.#thread?.terminate()
    this.#thread = undefined
  }

  /** A job that ran out of time is settled before its thread has ended. */
  #settle(job: Job, settle: () => void): void {
    if (this.#job !== job) return
    this.#job = undefined
    settle()
    this.#next()
  }
}
