import { StatusError } from '../../object/index.ts'
import { ClientLimiter, LimitExceededError, LimitedThread, RequestLimitError } from '../../util/index.ts'
import { notYaml } from './body.ts'
import type { YamlReply } from './yaml-thread.ts'

/** YAML up to this length is parsed inline, which takes up to 5 ms; ten times that for malicious input. */
const maxInlineLength = 4 * 1024
/** Parsing is aborted after this time: so long a text of each other user may delay a text. 2 MB of plain lines take 3 s. */
const timeoutMs = 4_000
/** Texts that wait for the thread. */
const waiting = { waitingPerClient: 8, waiting: 64 }
const maxHeapMb = 512

/** True for YAML that would block other requests while it is parsed, unless it is JSON. */
export function isLongYaml(text: string, contentType: string): boolean {
  return text.length > maxInlineLength && contentType.endsWith('yaml')
}

/** Parses long YAML in a thread of its own, one text after another; users take turns. */
export class YamlParserThread {
  readonly #limiter = new ClientLimiter({ concurrent: 1, concurrentPerClient: 1, ...waiting })
  readonly #thread: LimitedThread<string, YamlReply>

  constructor(limits: { limitMs?: number } = {}) {
    const options = { name: 'oarlock-yaml', timeoutMs: limits.limitMs ?? timeoutMs, maxHeapMb }
    this.#thread = new LimitedThread('kubernetes/server/rest/yaml-thread', options)
  }

  /**
   * Converts YAML to JSON.
   * @throws {StatusError} BadRequest for invalid YAML, RequestEntityTooLarge for a text that takes too long or too much memory, TooManyRequests when
   * too many texts wait, of this user or of all.
   */
  async toJson(text: string, user: string): Promise<string> {
    try {
      const reply = await this.#limiter.run(user, () => this.#thread.request(text))
      if ('json' in reply) return reply.json
      throw 'status' in reply ? StatusError.fromStatus(reply.status) : notYaml(reply.error)
    } catch (error) {
      if (error instanceof RequestLimitError)
        throw new StatusError(
          'RequestEntityTooLarge',
          `parsing the body of the request as YAML takes more than ${error.limit}: send it as JSON`,
        )
      if (!(error instanceof LimitExceededError)) throw error
      const why = 'too many long YAML bodies wait to be parsed: retry later, or send JSON'
      throw new StatusError('TooManyRequests', why, { details: { retryAfterSeconds: 1 } })
    }
  }
}
