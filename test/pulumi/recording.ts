import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'

/** How the endpoint of a conversation was set up; a replay does the same. */
export type EndpointSettings = {
  /** Default: those of the handler. */
  readonly testedCliVersions?: readonly string[]
  readonly deltaCutoffBytes?: number
  /** A request with more journal entries is refused as too large. */
  readonly maxBatchEntries?: number
  /** The journal request from which on the backend refuses as fenced, counted from 1. */
  readonly fencedFromAppend?: number
  /** Updates are refused because of the lock of this user. */
  readonly lockedBy?: string
}

/** State of a stack at the start of a conversation. */
export type InitialStack = { readonly tags: Readonly<Record<string, string>>; readonly deployment?: string }

/** The first line. */
export type RecordingHeader = {
  readonly kind: 'header'
  readonly format: 1
  readonly scenario: string
  /** As `pulumi version` prints it, without `v`. */
  readonly cliVersion: string
  /** Digest of the binary. */
  readonly cliSha256: string
  readonly platform: string
  readonly recordedAt: string
  readonly accessToken: string
  readonly settings: EndpointSettings
  /** By `organization/project/stack`. */
  readonly stacks: Readonly<Record<string, InitialStack>>
}

/** A request in the order of arrival, with its answer; bodies as they were on the wire, in base64. */
export type RecordedExchange = {
  readonly kind: 'exchange'
  readonly atMs: number
  readonly method: string
  readonly path: string
  /** Names and values alternate, as received. */
  readonly headers: readonly string[]
  readonly body: string
  /** Undefined: the client was killed before it got the answer, or the request never reached the endpoint. */
  readonly status?: number
  readonly answerHeaders?: readonly string[]
  readonly answer?: string
  readonly durationMs?: number
}

/** What happened besides requests. `start` and `exit` are those of the CLI; after `abandon` the endpoint knows that it has ended. */
export type RecordedAction = {
  readonly kind: 'action'
  readonly atMs: number
  readonly action: 'start' | 'exit' | 'kill' | 'abandon'
  readonly detail?: string
}

export type RecordingLine = RecordedExchange | RecordedAction

export type Recording = { readonly header: RecordingHeader; readonly lines: readonly RecordingLine[] }

/** JSON lines, compressed with zstd. */
export function encodeRecording({ header, lines }: Recording): Buffer {
  const text = [header, ...lines].map(line => `${JSON.stringify(line)}\n`).join('')
  return zstdCompressSync(text, { params: { 100: 19 } })
}

/** @throws {Error} if the content is not that of a recording of a known CLI: version and digest are required. */
export function decodeRecording(bytes: Uint8Array): Recording {
  const [first, ...rest] = zstdDecompressSync(bytes)
    .toString()
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line))
  const header = first as RecordingHeader
  requireKnownCli(header)
  return { header, lines: rest as RecordingLine[] }
}

/** @throws {Error} without the version and the digest of the CLI. */
export function requireKnownCli(header: Pick<RecordingHeader, 'kind' | 'format' | 'cliVersion' | 'cliSha256'> | undefined): void {
  if (header?.kind !== 'header' || header.format !== 1) throw new Error('the recording has no header of format 1')
  if (!/^\d+\.\d+\.\d+/.test(header.cliVersion)) throw new Error(`the recording has no version of the CLI: ${header.cliVersion}`)
  if (!/^[0-9a-f]{64}$/.test(header.cliSha256)) throw new Error(`the recording has no digest of the CLI: ${header.cliSha256}`)
}
