import { setTimeout as sleep } from 'node:timers/promises'
import { parse } from 'yaml'
import { Normalizer } from './normalize.ts'
import { valueAt } from './paths.ts'
import { headerLists, type Response, sendRequest, type Target } from './target.ts'
import type { Step, Transcript } from './transcript.ts'

const patchTypes: Record<string, string> = {
  'JSON-PATCH': 'application/json-patch+json',
  'MERGE-PATCH': 'application/merge-patch+json',
  'STRATEGIC-PATCH': 'application/strategic-merge-patch+json',
  APPLY: 'application/apply-patch+yaml',
}
// Headers that clients act on, printed if present.
const shownHeaders = ['warning', 'allow', 'retry-after', 'location']
const untilTimeoutMs = 5_000
const eventTimeoutMs = 4_000

/** Plays a transcript against a server; returns the normalized responses in the order of the steps. */
export async function play(transcript: Transcript, target: Target): Promise<string[]> {
  const player = new Player(target, namespaceOf(transcript.file))
  try {
    await player.createNamespace()
    const responses: string[] = []
    for (const step of transcript.cases.flatMap(({ steps }) => steps)) responses.push(await player.step(step))
    return responses
  } finally {
    player.close()
  }
}

/** Every transcript has a namespace of its own, so that transcripts can be played concurrently. */
function namespaceOf(file: string): string {
  return `t-${file
    .replace(/^.*cases\//, '')
    .replace(/\.txt$/, '')
    .replace(/[^a-z0-9]+/g, '-')}`
}

class Player {
  readonly #target: Target
  readonly #variables: Record<string, string>
  readonly #normalizer = new Normalizer()
  readonly #watches = new Map<string, Watch>()

  constructor(target: Target, namespace: string) {
    this.#target = target
    this.#variables = { NS: namespace }
  }

  async createNamespace(): Promise<void> {
    const name = this.#variables.NS ?? ''
    const body = JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: this.#target.namespaceLabels?.(name) } })
    const headers = { authorization: `Bearer ${this.#target.tokens.admin}`, 'content-type': 'application/json' }
    const { code, text } = await sendRequest(this.#target, { method: 'POST', path: '/api/v1/namespaces', headers, body })
    if (code !== 201) throw new Error(`creating the namespace of the transcript failed with ${code}: ${text}`)
  }

  close(): void {
    for (const watch of this.#watches.values()) watch.close()
  }

  async step(step: Step): Promise<string> {
    switch (step.verb) {
      case 'WATCH':
        return this.#openWatch(step)
      case 'EVENTS':
        return this.#readEvents(step)
      case 'CLOSE':
        this.#watches.get(step.target)?.close()
        return ''
      default:
        return this.#request(step)
    }
  }

  async #request(step: Step): Promise<string> {
    const request = this.#requestOf(step)
    const { until, save } = step.directives
    const deadlineMs = Date.now() + untilTimeoutMs
    let response = await sendRequest(this.#target, request)
    while (until && !isReached(response, until) && Date.now() < deadlineMs) {
      await sleep(20)
      response = await sendRequest(this.#target, request)
    }
    if (save) {
      for (const assignment of save.split(/, */)) {
        const [name = '', path = ''] = assignment.split(/ *= */)
        this.#variables[name] = String(valueAt(parseJson(response.text), path) ?? `no-${name}`)
      }
    }
    return this.#describe(response, step)
  }

  #requestOf(step: Step): { method: string; path: string; headers: Record<string, string>; body?: string } {
    const headers: Record<string, string> = { 'user-agent': 'tester/1.0 (conformance)' }
    const who = this.#substitute(step.directives.as ?? 'admin')
    if (who !== 'anonymous') headers.authorization = `Bearer ${this.#target.tokens[who] ?? who}`
    for (const [name, value] of step.headers) headers[name.toLowerCase()] = this.#substitute(value)
    const method = patchTypes[step.verb] ? 'PATCH' : step.verb === 'WATCH' ? 'GET' : step.verb
    const path = this.#substitute(step.verb === 'WATCH' ? step.target.replace(/^\S+ +/, '') : step.target)
    this.#normalizer.addRequest(path)
    if (!step.body) return { method, path, headers }
    const body = this.#substitute(step.body)
    this.#normalizer.addRequest(body)
    headers['content-type'] ??= patchTypes[step.verb] ?? 'application/json'
    const sent = bodyOf(body, headers['content-type'], step.directives.raw !== undefined)
    return { method, path, headers, body: writesNamespace(method, path) ? this.#withLabels(sent) : sent }
  }

  /** A new or replaced Namespace, with the labels that it needs on this target: a partition rejects a change of the Tenant. */
  #withLabels(body: string): string {
    const object = parseJson(body) as { metadata?: { name?: string; generateName?: string; labels?: Record<string, string> } } | undefined
    const { metadata } = object ?? {}
    const name = metadata?.name ?? metadata?.generateName
    if (!this.#target.namespaceLabels || name === undefined) return body
    return JSON.stringify({ ...object, metadata: { ...metadata, labels: { ...this.#target.namespaceLabels(name), ...metadata?.labels } } })
  }

  /** A response without the labels that this target needed, which no transcript has sent. */
  #withoutAdded(value: unknown): unknown {
    if (value === undefined || !this.#target.namespaceLabels) return value
    const added = new Set(Object.keys(this.#target.namespaceLabels('')).flatMap(key => [key, `f:${key}`]))
    return JSON.parse(JSON.stringify(value), (key, inner) => (added.has(key) ? undefined : inner))
  }

  #substitute(text: string): string {
    return text.replace(/\$([A-Za-z]+)|\$\{([A-Za-z]+)\}/g, (whole, name, other) => this.#variables[name ?? other] ?? whole)
  }

  #describe({ code, headers, text }: Response, { directives }: Step): string {
    const lines = [String(code)]
    const type = headers['content-type']?.[0]
    if (text !== '' && type !== 'application/json') lines.push(`Content-Type: ${type ?? ''}`)
    for (const name of shownHeaders) {
      // Several values of one header are equivalent to several headers.
      const values = (headers[name] ?? []).flatMap(value => (name === 'warning' ? value.split(/, (?=\d{3} )/) : value))
      // kube-apiserver iterates over maps in random order, and warns in that order.
      for (const value of values.sort()) lines.push(`${capitals(name)}: ${this.#normalizer.text(value)}`)
    }
    for (const name of (directives.show ?? '').match(/header:\S+/g) ?? []) {
      for (const value of headers[name.slice(7).toLowerCase()] ?? ['(none)']) lines.push(`${capitals(name.slice(7))}: ${value}`)
    }
    const show = directives.show?.replace(/header:\S+/g, '').trim()
    const json = this.#withoutAdded(parseJson(text) ?? (type?.includes('yaml') ? parse(text) : undefined))
    const isSuccess = code < 300
    const body =
      json === undefined
        ? this.#normalizer.text(text.trim())
        : this.#normalizer.body(json, isSuccess ? { show, hide: directives.hide } : {})
    if (body && !(isSuccess && show === 'nothing')) lines.push('', body)
    return lines.join('\n')
  }

  async #openWatch(step: Step): Promise<string> {
    const name = step.target.split(' ')[0]!
    const { method, path, headers } = this.#requestOf(step)
    const response = await this.#target.pool.request({ method: method as 'GET', path, headers })
    const opened: Response = { code: response.statusCode, headers: headerLists(response.headers), text: '' }
    if (response.statusCode !== 200) opened.text = await response.body.text()
    else this.#watches.set(name, new Watch(response.body))
    return this.#describe(opened, step)
  }

  /** `EVENTS name 3` waits for three events, `EVENTS name end` for the end of the stream, `EVENTS name none` verifies that none arrives. */
  async #readEvents({ target, directives }: Step): Promise<string> {
    const [name = '', count = '1'] = target.split(' ')
    const watch = this.#watches.get(name)
    if (!watch) return `no watch ${name}`
    const wanted = count === 'end' ? Number.POSITIVE_INFINITY : count === 'none' ? 1 : Number(count)
    const deadlineMs = Date.now() + (count === 'none' ? 150 : eventTimeoutMs)
    const events: string[] = []
    while (events.length < wanted) {
      const line = await watch.next(deadlineMs - Date.now())
      if (line === undefined) break
      const event = this.#withoutAdded(parseJson(line))
      // The time of bookmarks is up to the server, except for the one that ends the initial events.
      if (count !== 'end' && isPlainBookmark(event)) continue
      events.push(event === undefined ? line : this.#normalizer.event(event, { show: directives.show, hide: directives.hide }))
    }
    if (events.length < wanted) events.push(watch.hasEnded ? '(the stream ended)' : '(nothing more)')
    return events.join('\n')
  }
}

/** The lines of a response as they arrive. */
class Watch {
  readonly #body: AsyncIterable<Uint8Array> & { destroy(): unknown }
  readonly #lines: string[] = []
  #wake: () => void = () => {}
  hasEnded = false

  constructor(body: AsyncIterable<Uint8Array> & { destroy(): unknown }) {
    this.#body = body
    void this.#read()
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder()
    let rest = ''
    try {
      for await (const chunk of this.#body) {
        const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
        rest = lines.pop()!
        this.#lines.push(...lines.filter(Boolean))
        if (this.#lines.length > 0) this.#wake()
      }
    } catch {
      // Closed by the client or by the server: both end the stream.
    }
    if (rest) this.#lines.push(rest)
    this.hasEnded = true
    this.#wake()
  }

  async next(timeoutMs: number): Promise<string | undefined> {
    if (this.#lines.length === 0 && !this.hasEnded && timeoutMs > 0) {
      const stop = new AbortController()
      const woken = new Promise<void>(resolve => {
        this.#wake = resolve
      })
      await Promise.race([woken, sleep(timeoutMs, undefined, { signal: stop.signal }).catch(() => {})])
      stop.abort()
    }
    return this.#lines.shift()
  }

  close(): void {
    this.#body.destroy()
  }
}

function bodyOf(text: string, contentType: string, isRaw: boolean): string {
  // JSON is sent unchanged (with duplicate keys); YAML only if the server is to parse YAML.
  if (isRaw || /^[[{"]/.test(text) || contentType.includes('yaml')) return text
  return JSON.stringify(parse(text))
}

function isReached({ code, text }: Response, until: string): boolean {
  if (/^\d+$/.test(until)) return code === Number(until)
  const [path = '', expected = ''] = until.split(/ = /)
  return String(valueAt(parseJson(text), path)) === expected
}

const writesNamespace = (method: string, path: string): boolean =>
  (method === 'POST' && /^\/api\/v1\/namespaces(\?|$)/.test(path)) ||
  (method === 'PUT' && /^\/api\/v1\/namespaces\/[^/?]+(\/(status|finalize))?(\?|$)/.test(path))

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isPlainBookmark(event: unknown): boolean {
  return valueAt(event, 'type') === 'BOOKMARK' && !JSON.stringify(event).includes('k8s.io/initial-events-end')
}

function capitals(name: string): string {
  return name.replace(/\b[a-z]/g, letter => letter.toUpperCase())
}
