// For the supervisor process: it starts in every Run and must stay small, so this file imports nothing but Node's own modules, and lazily.
import { constants, readFile } from 'node:fs/promises'

export type SalvageOptions = {
  /** The engine's state file. */
  path: string
  /** The worker's address of the state: `https://host:port/state/<namespace>/<stack>/run/<runName>/state`. */
  url: string
  token: string
  /** PEM. Default: the system's. */
  caCertificate?: string
  epoch: number
  /** How long to try again in all. Default 30,000. */
  deadlineMs?: number
}

/** `orphaned`: a newer Run had begun, or the file is torn, and the content is kept aside. `nothing`: there was no file to upload, or an empty one. */
export type SalvageResult = { kind: 'saved'; version: number } | { kind: 'orphaned'; orphan: number } | { kind: 'nothing'; why: string }

/** Later than anything the dead worker sent: what of it still comes must not overtake this. */
const lastSequence = Number.MAX_SAFE_INTEGER

/**
 * Uploads the last state file of a Run whose worker died, with the Run's epoch (invariant 3). The engine must be gone: the file is read once.
 * Tries again until the deadline; content that is there already makes no new version.
 * @throws {Error} when the store did not take it in time: the file must then be kept.
 */
export async function salvageState(options: SalvageOptions): Promise<SalvageResult> {
  const { path, url, token, caCertificate, epoch, deadlineMs = 30_000 } = options
  let bytes: Buffer
  try {
    // Neither a link out of the sandbox nor a pipe.
    bytes = await readFile(path, { flag: constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { kind: 'nothing', why: `${path} does not exist` }
    throw error
  }
  // Cut off between truncate and write: the version before it was uploaded when it was complete.
  if (bytes.byteLength === 0) return { kind: 'nothing', why: `${path} is empty` }
  // Cut off in the middle: what it says of resources that no version knows is for a person to read.
  const target = isJsonObject(bytes) ? url : url.replace(/\/state$/, '/torn')
  const endMs = performance.now() + deadlineMs
  for (let attempt = 0; ; attempt++) {
    const leftMs = endMs - performance.now()
    const answer = await put(target, bytes, { token, caCertificate, epoch, timeoutMs: Math.max(100, Math.min(leftMs, 10_000)) }).catch(
      (cause: Error) => cause,
    )
    if (!(answer instanceof Error)) {
      if (answer.status === 200) return { kind: 'saved', version: Number(answer.body.version) }
      if (answer.status === 409 && answer.body.orphan !== undefined) return { kind: 'orphaned', orphan: Number(answer.body.orphan) }
    }
    // A server that has just started may not know yet who asks, or for which Run: only what is wrong with the content stays wrong.
    const isFinal = !(answer instanceof Error) && (answer.status === 400 || answer.status === 413)
    const waitMs = Math.min(100 * 2 ** attempt, 1_000)
    if (isFinal || performance.now() + waitMs >= endMs) {
      const why = answer instanceof Error ? answer.message : `it answered ${answer.status}`
      throw new Error(`could not upload ${path} to ${new URL(url).origin}: ${why}`, { cause: answer instanceof Error ? answer : undefined })
    }
    await new Promise(resolve => setTimeout(resolve, waitMs))
  }
}

function isJsonObject(bytes: Buffer): boolean {
  try {
    const value: unknown = JSON.parse(bytes.toString())
    return typeof value === 'object' && value !== null
  } catch {
    return false
  }
}

type PutOptions = { token: string; caCertificate?: string; epoch: number; timeoutMs: number }

async function put(
  url: string,
  bytes: Buffer,
  options: PutOptions,
): Promise<{ status: number; body: { version?: unknown; orphan?: unknown } }> {
  const { request } = url.startsWith('https:') ? await import('node:https') : process.getBuiltinModule('node:http')
  return await new Promise((resolve, reject) => {
    const req = request(url, {
      ...{ method: 'PUT', ca: options.caCertificate, signal: AbortSignal.timeout(options.timeoutMs), agent: false },
      headers: {
        authorization: `Bearer ${options.token}`,
        'content-length': bytes.byteLength,
        'oarlock-epoch': String(options.epoch),
        'oarlock-sequence': String(lastSequence),
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
