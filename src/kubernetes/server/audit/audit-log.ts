import { closeSync, fstatSync, openSync } from 'node:fs'
import { type FileHandle, open, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'
import type { Log } from '../../util/index.ts'
import { makeDirectories } from '../../util/index.ts'

/** The limits are those of kube-apiserver's flags `--audit-log-maxsize` and so on. */
export type AuditLogOptions = {
  path: string
  /** Above this size, the file is renamed and a new one begins. Default 50 MB. */
  maxBytes?: number
  /** Number of renamed files that are kept. Default 5. */
  maxBackups?: number
  /** Renamed files that are older are deleted. Default: no limit. */
  maxAgeMs?: number
  log: Pick<Log, 'error' | 'info'>
}

export type AuditStats = { events: number; lost: number }

/** Events wait at most this long for the disk. */
const flushAfterMs = 200
/** Further events are lost while this many bytes wait for a slow disk. */
const maxBufferedBytes = 8 * 1024 * 1024
const defaultMaxBytes = 50 * 1024 * 1024
const defaultMaxBackups = 5

/**
 * Appends lines to a file off the event loop. What cannot be written is lost and counted: the server serves requests whose events are lost,
 * for example when the disk is full. Lines are whole, also after a failed write.
 */
export class AuditLog {
  readonly #options: Required<AuditLogOptions>
  #lines: string[] = []
  #bytes = 0
  #file: FileHandle | undefined
  #size = 0
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()
  #isFailing = false
  #stats: AuditStats = { events: 0, lost: 0 }

  /** @throws an error of the file system when the file cannot be opened for a reason other than a full disk. */
  constructor(options: AuditLogOptions) {
    this.#options = { maxBytes: defaultMaxBytes, maxBackups: defaultMaxBackups, maxAgeMs: Number.POSITIVE_INFINITY, ...options }
    try {
      makeDirectories(dirname(options.path), 0o700)
      const file = openSync(options.path, 'a', 0o600)
      const isFile = fstatSync(file).isFile()
      closeSync(file)
      if (!isFile) throw Object.assign(new Error(`${options.path} is not a regular file`), { code: 'EINVAL' })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }

  get stats(): Readonly<AuditStats> {
    return this.#stats
  }

  /** @param line without the newline. */
  append(line: string): void {
    this.#stats.events++
    if (this.#bytes > maxBufferedBytes) {
      this.#stats.lost++
      return
    }
    this.#lines.push(line)
    this.#bytes += line.length
    this.#timer ??= setTimeout(() => void this.flush(), flushAfterMs).unref()
  }

  async close(): Promise<void> {
    await this.flush()
    await this.#file?.close().catch(() => {})
    this.#file = undefined
  }

  /** Writes what waits. Never rejects. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    // One write at a time: the size of the file is known only between two.
    const before = this.#writing
    const writing = (async () => {
      await before
      await this.#write()
    })()
    this.#writing = writing
    await writing
  }

  async #write(): Promise<void> {
    const lines = this.#lines
    if (lines.length === 0) return
    this.#lines = []
    this.#bytes = 0
    try {
      await this.#writeAll(Buffer.from(`${lines.join('\n')}\n`))
      if (this.#isFailing) this.#options.log.info({ lost: this.#stats.lost }, 'audit events are written again')
      this.#isFailing = false
    } catch (error) {
      this.#stats.lost += lines.length
      if (!this.#isFailing) this.#options.log.error({ err: error }, 'audit events are lost: they cannot be written')
      this.#isFailing = true
    }
  }

  async #writeAll(bytes: Buffer): Promise<void> {
    this.#file ??= await this.#open()
    if (this.#size > 0 && this.#size + bytes.length > this.#options.maxBytes) this.#file = await this.#rotate(this.#file)
    let written = 0
    try {
      while (written < bytes.length) written += (await this.#file.write(bytes, written)).bytesWritten
      this.#size += bytes.length
    } catch (error) {
      if (written > 0) await this.#file.truncate(this.#size)
      throw error
    }
  }

  async #open(): Promise<FileHandle> {
    const file = await open(this.#options.path, 'a', 0o600)
    this.#size = (await file.stat()).size
    return file
  }

  /** Renames the file as kube-apiserver does: audit.log becomes audit-2026-01-02T03-04-05.678.log. Returns the new file. */
  async #rotate(file: FileHandle): Promise<FileHandle> {
    const { path, maxBackups, maxAgeMs } = this.#options
    const directory = dirname(path)
    const extension = extname(path)
    const prefix = `${basename(path, extension)}-`
    const timeOf = (name: string) => {
      const found = /^(\d{4}-\d\d-\d\dT\d\d)-(\d\d)-(\d\d\.\d{3})$/.exec(name.slice(prefix.length, name.length - extension.length))
      return name.startsWith(prefix) && name.endsWith(extension) && found ? Date.parse(`${found[1]}:${found[2]}:${found[3]}Z`) : Number.NaN
    }
    const backups = (await readdir(directory)).filter(name => !Number.isNaN(timeOf(name))).sort()
    // Later than every other backup, whatever the clock shows: the order of the names is that of the events.
    const nowMs = Math.max(Date.now(), ...backups.slice(-1).map(name => timeOf(name) + 1))
    const backup = `${prefix}${new Date(nowMs).toISOString().slice(0, -1).replaceAll(':', '-')}${extension}`
    await rename(path, join(directory, backup))
    this.#file = undefined
    await file.close()
    for (const [index, name] of [...backups, backup].reverse().entries()) {
      if (index >= maxBackups || Date.now() - timeOf(name) > maxAgeMs) await rm(join(directory, name), { force: true })
    }
    return await this.#open()
  }
}
