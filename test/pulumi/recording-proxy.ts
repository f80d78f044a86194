import { createServer, type IncomingMessage, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { RecordedAction, RecordingLine } from './recording.ts'
import { unpack } from './request-text.ts'

/** Before a request reaches the endpoint, or after the endpoint has answered it. */
export type Breakpoint = {
  readonly path: RegExp
  /** Of the unpacked body. Default: any. */
  readonly body?: RegExp
  readonly count: number
  /** `wait`: before, and the request is sent afterwards. */
  readonly when: 'before' | 'after' | 'wait'
  reach(): Promise<void>
}

/** Forwards requests to an endpoint and records both directions as they are. */
export class RecordingProxy {
  readonly #target: string
  readonly #started = performance.now()
  readonly #lines: RecordingLine[] = []
  readonly #server: Server
  #breakpoint: Breakpoint | undefined
  #matched = 0

  constructor(target: string) {
    this.#target = target
    this.#server = createServer((req, res) => {
      const chunks: Buffer[] = []
      req.on('data', chunk => chunks.push(chunk))
      req.once('end', () => {
        this.#forward(req, Buffer.concat(chunks)).then(
          answer => {
            if (!answer) return res.destroy()
            res.writeHead(answer.status, answer.headers)
            res.end(answer.body)
          },
          () => res.destroy(),
        )
      })
    })
  }

  async listen(): Promise<string> {
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** What is recorded so far. */
  get lines(): readonly RecordingLine[] {
    return this.#lines
  }

  /** Calls `reach` at the given request of those that match. */
  breakAt(breakpoint: Breakpoint | undefined): void {
    this.#breakpoint = breakpoint
    this.#matched = 0
  }

  note(action: RecordedAction['action'], detail?: string): void {
    this.#lines.push({ kind: 'action', atMs: this.#atMs(), action, ...(detail !== undefined && { detail }) })
  }

  async close(): Promise<readonly RecordingLine[]> {
    this.#server.closeAllConnections()
    await new Promise(resolve => this.#server.close(resolve))
    return this.#lines
  }

  #atMs(): number {
    return Math.round(performance.now() - this.#started)
  }

  async #forward(req: IncomingMessage, body: Buffer): Promise<{ status: number; headers: string[]; body: Buffer } | undefined> {
    const { method = 'GET', url: path = '/', rawHeaders: headers } = req
    const atMs = this.#atMs()
    const line = { kind: 'exchange' as const, atMs, method, path, headers, body: body.toString('base64') }
    this.#lines.push(line)
    const breakpoint = this.#breakpoint
    const isMatch = breakpoint?.path.test(path) && (breakpoint.body?.test(unpack(body)) ?? true)
    const reached = isMatch && ++this.#matched === breakpoint?.count ? breakpoint : undefined
    if (reached?.when === 'wait') await reached.reach()
    if (reached?.when === 'before') {
      // It never arrives: not a part of the conversation.
      this.#lines.splice(this.#lines.indexOf(line), 1)
      await reached.reach()
      return undefined
    }
    const answer = await new Promise<{ status: number; headers: string[]; body: Buffer }>((resolve, reject) => {
      const sent = request(`${this.#target}${path}`, { method, headers, agent: false }, async response => {
        const chunks: Buffer[] = []
        for await (const chunk of response) chunks.push(chunk)
        resolve({ status: response.statusCode ?? 0, headers: response.rawHeaders, body: Buffer.concat(chunks) })
      })
      sent.once('error', reject)
      sent.end(body)
    })
    if (reached?.when === 'after') {
      await reached.reach()
      return undefined
    }
    Object.assign(line, { status: answer.status, answerHeaders: answer.headers, answer: answer.body.toString('base64') })
    Object.assign(line, { durationMs: this.#atMs() - atMs })
    return answer
  }
}
