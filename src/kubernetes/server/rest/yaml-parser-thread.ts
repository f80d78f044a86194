import { StatusError } from '../../object/index.ts'
import { ClientLimiter, LimitExceededError, RequestThread } from '../../util/index.ts'
import { notYaml } from './body.ts'
import type { YamlReply } from './yaml-thread.ts'

/** YAML up to this length is parsed inline, which takes up to 5 ms; ten times that for malicious input. */
const maxInlineLength = 4 * 1024
/** Parsing is aborted after this time: so long a text of each other user may delay a text. 2 MB of plain lines take 3 s. */
const timeoutMs = 4_000
/** Texts that wait for the thread. */
const waiting = { waitingPerClient: 8, waiting: 64 }
/** The thread ends after this long without work. */
const idleMs = 30_000
/** Limit of the thread's heap: a small text can expand without bound. */
const maxHeapMb = 512

/** True for YAML that would block other requests while it is parsed, unless it is JSON. */
export function isLongYaml(text: string, contentType: string): boolean {
  return text.length > maxInlineLength && contentType.endsWith('yaml')
}

/** Parses long YAML in a thread of its own, one text after another; users take turns. */
export class YamlParserThread {
  readonly #limiter = new ClientLimiter({ concurrent: 1, concurrentPerClient: 1, ...waiting })
  #thread: RequestThread<string, YamlReply> | undefined
  #idleTimer: NodeJS.Timeout | undefined
  readonly #timeoutMs: number

  constructor(limits: { limitMs?: number } = {}) {
    this.#timeoutMs = limits.limitMs ?? timeoutMs
  }

  /**
   * Converts YAML to JSON.
   * @throws {StatusError} BadRequest for invalid YAML or a timeout, TooManyRequests when too many texts wait, of this user or of all.
   */
  async toJson(text: string, user: string): Promise<string> {
    try {
      return await this.#limiter.run(user, () => this.#parse(text))
    } catch (error) {
      if (!(error instanceof LimitExceededError)) throw error
      const why = 'too many long YAML bodies wait to be parsed: retry later, or send JSON'
      throw new StatusError('TooManyRequests', why, { details: { retryAfterSeconds: 1 } })
    }
  }

  async #parse(text: string): Promise<string> {
    clearTimeout(this.#idleTimer)
    const resourceLimits = { maxOldGenerationSizeMb: maxHeapMb }
    this.#thread ??= new RequestThread('kubernetes/server/rest/yaml-thread', { name: 'oarlock-yaml', resourceLimits })
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      this.#stop()
    }, this.#timeoutMs)
    try {
      const reply = await this.#thread.request(text)
      if ('json' in reply) return reply.json
      throw 'status' in reply ? StatusError.fromStatus(reply.status) : notYaml(reply.error)
    } catch (error) {
      if (isLate) throw notYaml(`parsing takes longer than ${this.#timeoutMs} ms: send it as JSON`)
      if (error instanceof StatusError) throw error
      // The thread failed, usually because it ran out of memory.
      this.#stop()
      throw new StatusError('RequestEntityTooLarge', 'the body of the request is too large to be parsed as YAML: send it as JSON')
    } finally {
      clearTimeout(timer)
      this.#idleTimer = setTimeout(() => this.#stop(), idleMs).unref()
    }
  }

  #stop(): void {
    void this.#thread?.terminate()
    this.#thread = undefined
  }
}
