import { request } from 'node:http'
import { isDeepStrictEqual } from 'node:util'
import { gunzipSync, gzipSync } from 'node:zlib'
import type { RecordedAction, RecordedExchange, Recording } from './recording.ts'

export type ReplayOptions = {
  readonly recording: Pick<Recording, 'lines'> & { readonly header: { readonly accessToken: string } }
  /** The endpoint. */
  readonly url: string
  readonly accessToken: string
  /** Stops after this number of requests, as a CLI that is killed there. Default: all of them. Requests that are left out count. */
  readonly until?: number
  /** Called at what was recorded besides requests, such as `abandon`. May return another endpoint, to which the following requests are sent. */
  readonly onAction?: (action: RecordedAction) => Promise<ReplayTarget | undefined> | Promise<void> | void
  /** Called before each request; false: it is left out. */
  readonly onRequest?: (exchange: RecordedExchange) => Promise<boolean> | boolean
  /** Strings of the recording, with what is sent and expected in their place; the replay adds what it finds. */
  readonly substitutes?: Map<string, string>
  /** What of an answer is compared, of both the recorded and the received one. Default: all of it. */
  readonly comparable?: (exchange: RecordedExchange, answer: ParsedAnswer) => unknown
}

export type ReplayTarget = { readonly url: string; readonly accessToken: string }

/** `body` is parsed JSON, or text. */
export type ParsedAnswer = { readonly status: number; readonly body: unknown }

/** An answer that is not that of the recording. */
export type Difference = { readonly request: string; readonly expected: string; readonly received: string }

export type ReplayResult = { readonly requests: number; readonly differences: readonly Difference[] }

/**
 * Fields of answers whose values an endpoint chooses: the recorded value is replaced by the received one in everything that follows. Of equal ciphertexts
 * the first one, since an endpoint may encrypt equal values to different texts.
 */
const chosenFields: ReadonlySet<string> = new Set(['updateID', 'updateId', 'token', 'ciphertext', 'ciphertexts', 'secure'])
/** Points in time. */
const ignoredFields: ReadonlySet<string> = new Set(['tokenExpiration'])
/** Set by the client that sends the request. */
const connectionHeaders: ReadonlySet<string> = new Set(['host', 'connection', 'content-length', 'accept-encoding', 'transfer-encoding'])

/**
 * Sends the requests of a recording, one after the other, and compares status and JSON of each answer. Update ids, tokens, ciphertexts and the address of the
 * endpoint are substituted: they are chosen by an endpoint.
 */
export async function replayRecording(options: ReplayOptions): Promise<ReplayResult> {
  const { recording, until, onAction, onRequest, comparable } = options
  const { header, lines } = recording
  let target: ReplayTarget = options
  const substitutes = options.substitutes ?? new Map<string, string>()
  const differences: Difference[] = []
  let requests = 0
  for (const line of lines) {
    if (line.kind === 'action') {
      target = (await onAction?.(line)) ?? target
      continue
    }
    if (requests === until) break
    requests++
    if ((await onRequest?.(line)) === false) continue
    const { url, accessToken } = target
    substitutes.set(header.accessToken, accessToken)
    const host = headerOf(line.headers, 'host')
    if (host !== undefined) substitutes.set(`http://${host}`, url)
    const received = await sendRequest(url, line, substitutes)
    if (line.status === undefined) continue
    const recorded = { status: line.status, body: decode(line.answer ?? '', headerOf(line.answerHeaders ?? [], 'content-encoding')) }
    const difference = compareAnswers(recorded, received, substitutes, answer => (comparable ? comparable(line, answer) : answer))
    if (difference) differences.push({ request: `${requests}: ${line.method} ${line.path}`, ...difference })
  }
  return { requests, differences }
}

type ReceivedAnswer = { readonly status: number; readonly body: string }

async function sendRequest(url: string, line: RecordedExchange, substitutes: ReadonlyMap<string, string>): Promise<ReceivedAnswer> {
  const headers: Record<string, string> = {}
  for (let i = 0; i < line.headers.length; i += 2) {
    const name = String(line.headers[i]).toLowerCase()
    if (!connectionHeaders.has(name)) headers[name] = substituteWords(String(line.headers[i + 1]), substitutes)
  }
  const raw = Buffer.from(line.body, 'base64')
  const isPacked = headers['content-encoding'] === 'gzip'
  const text = isPacked ? gunzipSync(raw).toString() : raw.toString()
  const substituted = substituteStrings(text, substitutes)
  const body = substituted === text ? raw : isPacked ? gzipSync(substituted) : Buffer.from(substituted)
  const path = line.path.split('/').map(segment => substitutes.get(segment) ?? segment)
  return await new Promise((resolve, reject) => {
    const sent = request(`${url}${path.join('/')}`, {
      ...{ method: line.method, agent: false },
      headers: { ...headers, ...(body.byteLength > 0 && { 'content-length': String(body.byteLength) }) },
    })
    sent.once('error', reject)
    sent.once('response', async response => {
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk)
      resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() })
    })
    sent.end(body)
  })
}

function compareAnswers(
  recorded: ReceivedAnswer,
  received: ReceivedAnswer,
  substitutes: Map<string, string>,
  comparable: (answer: ParsedAnswer) => unknown,
): Omit<Difference, 'request'> | undefined {
  const print = ({ status, body }: ReceivedAnswer) => `${status} ${body.slice(0, 2_000)}`
  const actual = parse(received.body)
  learn(parse(recorded.body), actual, substitutes)
  const expected = { ...recorded, body: substituteStrings(recorded.body, substitutes) }
  const toComparable = (status: number, body: unknown) => comparable({ status, body: withoutIgnored(body) })
  if (isDeepStrictEqual(toComparable(expected.status, parse(expected.body)), toComparable(received.status, actual))) return undefined
  return { expected: print(expected), received: print(received) }
}

/** Finds what an endpoint has chosen in place of recorded values: both have the same structure. */
export function learn(recorded: unknown, received: unknown, substitutes: Map<string, string>): void {
  if (typeof recorded !== 'object' || typeof received !== 'object' || recorded === null || received === null) return
  for (const [field, value] of Object.entries(recorded)) {
    const other = (received as Record<string, unknown>)[field]
    learn(value, other, substitutes)
    if (!chosenFields.has(field)) continue
    const pairs = Array.isArray(value) && Array.isArray(other) ? value.map((each, i) => [each, other[i]]) : [[value, other]]
    for (const [from, to] of pairs)
      if (typeof from === 'string' && typeof to === 'string' && from !== '' && !substitutes.has(from)) substitutes.set(from, to)
  }
}

const withoutIgnored = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).filter(([field]) => !ignoredFields.has(field)))
    : value

/** Replaces whole JSON strings, also names of members: the answer of a decryption is keyed by ciphertexts. */
export const substituteStrings = (text: string, substitutes: ReadonlyMap<string, string>): string =>
  text.replace(/"((?:[^"\\]|\\.)*)"/g, (found, content: string) => {
    const other = substitutes.get(content)
    return other === undefined ? found : `"${other}"`
  })

const substituteWords = (text: string, substitutes: ReadonlyMap<string, string>): string =>
  text
    .split(' ')
    .map(word => substitutes.get(word) ?? word)
    .join(' ')

function decode(base64: string, encoding: string | undefined): string {
  const bytes = Buffer.from(base64, 'base64')
  return (encoding === 'gzip' ? gunzipSync(bytes) : bytes).toString()
}

function headerOf(headers: readonly string[], name: string): string | undefined {
  const index = headers.findIndex((each, i) => i % 2 === 0 && each.toLowerCase() === name)
  return index < 0 ? undefined : headers[index + 1]
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
