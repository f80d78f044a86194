import { type FSWatcher, watch } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { RootDirectory } from '../../kubernetes/util/index.ts'

export type StreamStateFileOptions = {
  /** The engine's state file. It may not exist yet; its directory must. */
  path: string
  /** Accesses `path`, where an engine could place a symlink or a pipe. Default: its directory is trusted. */
  files?: RootDirectory
  /** Resolves when the bytes are stored. Never called concurrently, and only with the newest complete content; older content is skipped. */
  upload(bytes: Buffer): Promise<void>
  /** Delay between a change and reading it, so that one write is one change. Default 2. */
  settleMs?: number
  /** Called for every failed upload or read; the content is retried on the next change, after `retryMs`, and by `flush`. */
  onError: (error: unknown) => void
  /** Delay after a failed upload. Default 500. */
  retryMs?: number
  /**
   * Where a version is kept whose upload failed or takes longer than `keepAfterMs`, accessed by `files`: the engine may leave an empty or
   * incomplete file, and this process may end before the store is available. Removed when the store has it. Default: it is not kept.
   */
  keptPath?: string
  /** Default 200. */
  keepAfterMs?: number
  /** Content that is already stored (the file was created from it): it is not uploaded again. */
  known?: Buffer
}

export type StateFileStream = {
  /** To be called when the engine has ended. Uploads the present content. @throws {IncompleteStateError}, or what `upload` threw. */
  flush(): Promise<void>
  /** Stops watching and uploading. */
  close(): void
}

/** When the engine had ended, its state file did not contain one complete JSON object. */
export class IncompleteStateError extends Error {
  override readonly name = 'IncompleteStateError'

  constructor(path: string) {
    super(
      `${path} contains no complete state, which is one JSON object: the engine was interrupted while writing it, or wrote something else`,
    )
  }
}

/** Larger than the store accepts by default, so that the store reports the size; smaller than what could exhaust the memory of a worker. */
const maxStateFileBytes = 256 * 1024 * 1024
/** inotify may be exhausted or unavailable (network file systems): polling at this interval limits the delay to 100 ms without it. */
const pollMs = 50
/** Delay between two reads of a file that is being written. */
const incompleteRetryMs = 3
/** After this many incomplete reads the next poll tries again. */
const incompleteRetries = 20

/**
 * Uploads every complete version of a state file as soon as it is written; when uploads are slower than writes, only the newest.
 *
 * How Terraform writes the file (strace of 1.11.4, 40 `terraform_data`): it keeps one descriptor open for the whole apply, and after every
 * resource it does `lseek 0`, `ftruncate 0`, ONE `write` of everything, `fsync`, within 1 ms. There is no rename. So a reader gets the old
 * content, nothing, a prefix, or, when it reads in parts, an old head with a new tail. Hence two consecutive reads must be equal, and the
 * content must parse as JSON; a prefix of an object never does. Engines that rename a new file into place (Pulumi) are covered: the
 * directory is watched, and each read opens the path again.
 */
export function streamStateFile(options: StreamStateFileOptions): StateFileStream {
  const { path, upload, settleMs = 2, onError, retryMs = 500, keptPath, keepAfterMs = 200 } = options
  const files = options.files ?? new RootDirectory(dirname(path))
  let uploaded = options.known
  /** The newest complete version, while its upload has not succeeded. */
  let pending: Buffer | undefined
  /** A version is at `keptPath`. */
  let isKept = false
  let closed = false
  let running: Promise<void> | undefined
  let dirty = false
  let flushing = false
  let settle: NodeJS.Timeout | undefined
  let retry: NodeJS.Timeout | undefined
  let lastFingerprint = ''

  /** Reads the file and uploads new content. Rejects when that failed; resolves to `false` while the file is being written. */
  const uploadChange = async (): Promise<boolean> => {
    const content = await readComplete(files, path)
    const isEmpty = content !== 'incomplete' && content?.byteLength === 0
    // An empty file means "no state yet" before the first version, and an interrupted write after it.
    if (isEmpty && uploaded === undefined && pending === undefined) return true
    if (content === 'incomplete' || isEmpty) {
      // The version before, if its upload failed, is now stored nowhere else.
      if (pending !== undefined) await uploadVersion(pending)
      return false
    }
    // Without a file the version before is what the engine has left.
    const newest = content ?? pending
    if (newest !== undefined && !(uploaded !== undefined && newest.equals(uploaded))) await uploadVersion(newest)
    return true
  }

  const uploadVersion = async (content: Buffer): Promise<void> => {
    pending = content
    // What is kept is never older than what the store has: it would replace that.
    if (isKept) await keep(content)
    let keeping: Promise<void> | undefined
    const timer = setTimeout(() => (keeping = keep(content)), keepAfterMs)
    try {
      await upload(content)
    } catch (error) {
      keeping ??= keep(content)
      throw error
    } finally {
      clearTimeout(timer)
      await keeping
    }
    if (isKept) await files.remove(keptPath!)
    isKept = false
    uploaded = content
    pending = undefined
  }

  const keep = async (content: Buffer): Promise<void> => {
    if (keptPath === undefined) return
    try {
      await files.write(keptPath, content)
      isKept = true
    } catch (error) {
      onError(error)
      if (isKept) await files.remove(keptPath)
    }
  }

  const loop = async () => {
    while (dirty && !closed && !flushing) {
      dirty = false
      try {
        if (!(await uploadChange())) onError(new Error(`no complete version of ${path} could be read: it is written continuously`))
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
        // A change after the loop's last read.
        if (dirty && !closed) changed()
      })
    }
  }

  const scheduleRead = () => {
    settle ??= setTimeout(() => {
      settle = undefined
      changed()
    }, settleMs)
  }

  let watcher: FSWatcher | undefined
  try {
    const name = basename(path)
    watcher = watch(dirname(path), { persistent: false }, (_, file) => {
      if (file === null || file === name) scheduleRead()
    })
    watcher.on('error', error => {
      watcher?.close()
      onError(error)
    })
  } catch (error) {
    onError(error)
  }

  const poll = setInterval(() => {
    fingerprint(path).then(current => {
      if (current === lastFingerprint) return
      lastFingerprint = current
      scheduleRead()
    }, onError)
  }, pollMs)
  scheduleRead()

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
        if (!(await uploadChange())) throw new IncompleteStateError(path)
      } finally {
        flushing = false
        if (dirty) changed()
      }
    },
  }
}

/**
 * The content, undefined if there is no file, `incomplete` if it is being written. An empty file is valid: Terraform creates the file
 * when it locks it, before the first write.
 */
async function readComplete(files: RootDirectory, path: string): Promise<Buffer | undefined | 'incomplete'> {
  let previous: Buffer | undefined
  for (let reads = 0; reads < incompleteRetries; reads++) {
    const content = await files.read(path, { maxBytes: maxStateFileBytes })
    const isStable = previous === undefined ? content === undefined : content?.equals(previous) === true
    if (reads > 0 && isStable && (content === undefined || isJsonObject(content))) return content
    previous = content
    if (content !== undefined && !isJsonObject(content)) await new Promise(resolve => setTimeout(resolve, incompleteRetryMs))
  }
  return previous?.byteLength === 0 ? previous : 'incomplete'
}

async function fingerprint(path: string): Promise<string> {
  try {
    const { ino, size, mtimeNs } = await lstat(path, { bigint: true })
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
