import { constants, type FSWatcher, watch } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'

export type StreamStateFileOptions = {
  /** The engine's state file; it may not exist yet. Its directory must. */
  path: string
  /** Resolves when the bytes are safe. Called one at a time, with the newest complete content; what was overtaken is skipped. */
  upload(bytes: Buffer): Promise<void>
  /** Wait between a change and reading it, so that one write is seen as one change. Default 2. */
  settleMs?: number
  /** Told of every failed upload or read; the content is tried again with the next change, with `retryMs`, and by `flush`. */
  onError: (error: unknown) => void
  /** Wait after a failed upload. Default 500. */
  retryMs?: number
  /** Content already in the store (what the file was made from): not uploaded again. */
  known?: Buffer
}

export type StateFileStream = {
  /** Call when the engine has ended. Uploads what the file holds now; rejects if it could not, or if the file is torn. */
  flush(): Promise<void>
  /** Stops watching. Uploads nothing more. */
  close(): void
}

/** inotify may be exhausted or missing (network file systems): looking at the file this often bounds the delay to 100 ms without it. */
const pollMs = 50
/** Between two looks at a file that is being written. */
const tornRetryMs = 3
/** Writes that are never complete are left to the next poll. */
const tornRetries = 20

/**
 * Uploads every completed version of a state file as soon as it is written; when uploads are slower than writes, the newest wins.
 *
 * How Terraform writes it (strace of 1.11.4, 40 `terraform_data`): it keeps one descriptor open for the whole apply and for each version does
 * `lseek 0`, `ftruncate 0`, ONE `write` of everything, `fsync`, 1 ms apart in all, after every resource. There is no rename. So a reader sees the old content,
 * nothing, a prefix, or, when it reads in parts, an old head with a new tail. Hence: two reads in a row must be equal, and the content must
 * parse as JSON; a prefix of an object never does. Engines that rename a new file into place (Pulumi) are covered: the directory is watched, and each look opens the path anew.
 */
export function streamStateFile(options: StreamStateFileOptions): StateFileStream {
  const { path, upload, settleMs = 2, onError, retryMs = 500 } = options
  let uploaded = options.known
  let closed = false
  let running: Promise<void> | undefined
  let dirty = false
  let flushing = false
  let settle: NodeJS.Timeout | undefined
  let retry: NodeJS.Timeout | undefined
  let seen = ''

  /** Looks once, uploads if there is something new. Rejects when that failed. `false`: the file is being written. */
  const pass = async (): Promise<boolean> => {
    const content = await readComplete(path)
    if (content === 'torn') return false
    // Empty before the first version is "no state yet", empty after one is a version that was cut off.
    if (content?.byteLength === 0) return uploaded === undefined
    if (content === undefined || (uploaded !== undefined && content.equals(uploaded))) return true
    await upload(content)
    uploaded = content
    return true
  }

  const loop = async () => {
    while (dirty && !closed && !flushing) {
      dirty = false
      try {
        if (!(await pass())) onError(new Error(`${path} is written all the time: no complete version could be read yet`))
      } catch (error) {
        onError(error)
        retry ??= setTimeout(() => {
          retry = undefined
          changed()
        }, retryMs)
      }
    }
  }

  const changed = () => {
    dirty = true
    if (running === undefined && !closed && !flushing) {
      running = loop().finally(() => {
        running = undefined
        // A change between the loop's last look and here.
        if (dirty && !closed) changed()
      })
    }
  }

  const soon = () => {
    settle ??= setTimeout(() => {
      settle = undefined
      changed()
    }, settleMs)
  }

  let watcher: FSWatcher | undefined
  try {
    const name = basename(path)
    watcher = watch(dirname(path), { persistent: false }, (_, file) => {
      if (file === null || file === name) soon()
    })
    watcher.on('error', error => {
      watcher?.close()
      onError(error)
    })
  } catch (error) {
    onError(error)
  }

  const poll = setInterval(() => {
    fingerprint(path).then(now => {
      if (now === seen) return
      seen = now
      soon()
    }, onError)
  }, pollMs)
  soon()

  const close = () => {
    closed = true
    clearInterval(poll)
    clearTimeout(settle)
    clearTimeout(retry)
    watcher?.close()
  }

  return {
    close,
    flush: async () => {
      flushing = true
      try {
        await running
        dirty = false
        if (!(await pass())) throw new Error(`${path} holds no complete state: the engine was cut off while writing it`)
      } finally {
        flushing = false
        if (dirty) changed()
      }
    },
  }
}

/**
 * The whole content, undefined if there is no file, `torn` if it is being written. Empty is a content too: Terraform makes the file
 * when it locks it, before it has something to write.
 */
async function readComplete(path: string): Promise<Buffer | undefined | 'torn'> {
  let before: Buffer | undefined
  for (let look = 0; look < tornRetries; look++) {
    const now = await readWhole(path)
    const isSame = before === undefined ? now === undefined : now?.equals(before) === true
    if (look > 0 && isSame && (now === undefined || isJsonObject(now))) return now
    before = now
    if (now !== undefined && !isJsonObject(now)) await new Promise(resolve => setTimeout(resolve, tornRetryMs))
  }
  return before?.byteLength === 0 ? before : 'torn'
}

/** An engine in a sandbox may put a link there, to a file that only its worker may read; or a pipe, to keep it waiting. */
const plainFile = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

async function readWhole(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path, { flag: plainFile })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

async function fingerprint(path: string): Promise<string> {
  try {
    const { ino, size, mtimeNs } = await stat(path, { bigint: true })
    return `${ino} ${size} ${mtimeNs}`
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}

function isJsonObject(bytes: Buffer): boolean {
  if (bytes.byteLength === 0) return false
  try {
    const value: unknown = JSON.parse(bytes.toString())
    return typeof value === 'object' && value !== null
  } catch {
    return false
  }
}
