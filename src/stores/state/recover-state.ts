// Used by the supervisor process, which runs alongside every worker and must stay small: this file imports only Node's modules, lazily,
// and modules without imports.
import { exponentialDelayMs } from '../../kubernetes/util/backoff.ts'
import { RootDirectory } from '../../kubernetes/util/root-directory.ts'

export type RecoverStateOptions = {
  /** The engine's state file. */
  path: string
  /** The Run's directory, which contains `path`. */
  root: string
  /** The URL of the state: `https://host:port/state/<namespace>/<stack>/run/<runName>/state`. */
  url: string
  /** The request uses this Unix socket instead of the host and port of `url`. */
  socketPath?: string
  token: string
  /** PEM of the CA of the server's certificate. Default: the system's CAs. */
  caCertificate?: string
  epoch: number
  /** How long the upload is retried. Default 30,000. */
  deadlineMs?: number
}

/** In the directory of a Run: the newest version that its worker could not upload, see stream-state-file.ts. */
export const keptStatePath = 'private/unsaved.tfstate'

/**
 * `orphaned`: a newer Run had started, or the file is incomplete, and the content is stored as an orphaned version. `skipped`: the file
 * is missing or empty.
 */
export type RecoverStateResult =
  | { kind: 'saved'; version: number }
  | { kind: 'orphaned'; orphan: number }
  | { kind: 'skipped'; reason: string }

/** As in stream-state-file.ts. */
const maxStateFileBytes = 256 * 1024 * 1024
/** Higher than the sequence of every write of the lost worker, so that a delayed one does not replace this. */
const maxSequence = Number.MAX_SAFE_INTEGER

/**
 * Uploads the last state file of a Run whose worker was lost, with the Run's epoch (invariant 3). The engine must have ended: the file is
 * read once. If it is missing, empty or incomplete, the version before is uploaded that the worker has kept, if any. The upload is retried until the deadline; content that is stored already creates no version.
 * @throws {Error} when the upload failed until the deadline: the file must be kept then.
 */
export async function recoverState(options: RecoverStateOptions): Promise<RecoverStateResult> {
  const { path, root, url, deadlineMs = 30_000 } = options
  const endMs = performance.now() + deadlineMs
  const bytes = await readStateFile(root, path)
  if (bytes && isJsonObject(bytes)) return await upload(url, bytes, options, endMs)
  // Interrupted while it replaced a version, which the store has unless it was kept.
  const kept = await readStateFile(root, keptStatePath)
  const result = kept && isJsonObject(kept) ? await upload(url, kept, options, endMs) : undefined
  if (!bytes?.byteLength) return result ?? { kind: 'skipped', reason: bytes ? `${path} is empty` : `${path} does not exist` }
  // It may name resources that no version contains, so it is stored for a user to read.
  const incomplete = await upload(url.replace(/\/state$/, '/incomplete'), bytes, options, endMs)
  return result ?? incomplete
}

async function upload(target: string, bytes: Buffer, options: RecoverStateOptions, endMs: number): Promise<RecoverStateResult> {
  const { path, url, socketPath, token, caCertificate, epoch } = options
  for (let failures = 1; ; failures++) {
    const remainingMs = endMs - performance.now()
    const response = await put(target, bytes, {
      socketPath,
      token,
      caCertificate,
      epoch,
      timeoutMs: Math.max(100, Math.min(remainingMs, 10_000)),
    }).catch((cause: Error) => cause)
    if (!(response instanceof Error)) {
      if (response.status === 200) return { kind: 'saved', version: Number(response.body.version) }
      if (response.status === 409 && response.body.orphan !== undefined) return { kind: 'orphaned', orphan: Number(response.body.orphan) }
    }
    // A server that has just started may not know the worker or the Run yet: only errors in the content are final.
    const isFinal = !(response instanceof Error) && (response.status === 400 || response.status === 413)
    const delayMs = exponentialDelayMs(failures, { minMs: 100, maxMs: 1_000 })
    if (isFinal || performance.now() + delayMs >= endMs) {
      const reason = response instanceof Error ? response.message : `response status ${response.status}`
      throw new Error(`failed to upload ${path} to ${socketPath ?? new URL(url).origin}: ${reason}`, {
        cause: response instanceof Error ? response : undefined,
      })
    }
    await new Promise(resolve => setTimeout(resolve, delayMs))
  }
}

/** The content; undefined if there is none. Rejects a symlink out of the sandbox, and does not block on a pipe. */
export async function readStateFile(root: string, path: string): Promise<Buffer | undefined> {
  return await new RootDirectory(root).read(path, { maxBytes: maxStateFileBytes })
}

function isJsonObject(bytes: Buffer): boolean {
  try {
    const value: unknown = JSON.parse(bytes.toString())
    return typeof value === 'object' && value !== null
  } catch {
    return false
  }
}

type PutOptions = { socketPath?: string; token: string; caCertificate?: string; epoch: number; timeoutMs: number }

async function put(
  url: string,
  bytes: Buffer,
  options: PutOptions,
): Promise<{ status: number; body: { version?: unknown; orphan?: unknown } }> {
  const { request } = url.startsWith('https:') ? await import('node:https') : process.getBuiltinModule('node:http')
  return await new Promise((resolve, reject) => {
    const req = request(url, {
      ...{
        method: 'PUT',
        socketPath: options.socketPath,
        ca: options.caCertificate,
        signal: AbortSignal.timeout(options.timeoutMs),
        agent: false,
      },
      headers: {
        authorization: `Bearer ${options.token}`,
        'content-length': bytes.byteLength,
        'oarlock-epoch': String(options.epoch),
        'oarlock-sequence': String(maxSequence),
      },
    })
    req.once('error', reject)
    req.once('response', res => {
      let text = ''
      res.setEncoding('utf8')
      res.on('data', (part: string) => {
        text += part
      })
      res.once('error', reject)
      res.once('end', () => {
        try {
          resolve({ status: res.statusCode ?? 0, body: JSON.parse(text) as { version?: unknown; orphan?: unknown } })
        } catch {
          resolve({ status: res.statusCode ?? 0, body: {} })
        }
      })
    })
    req.end(bytes)
  })
}
