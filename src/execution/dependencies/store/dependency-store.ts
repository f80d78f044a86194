import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { rfc3339 } from '../../../kubernetes/object/index.ts'
import { ifMissing, makeDirectories, RootDirectory, sha256, UnexpectedFileError } from '../../../kubernetes/util/index.ts'
import { isInUse, type Release, removeTree, takeEntry, temporaryName, touch, useLocked } from '../../workspace/index.ts'
import { DependencyError, toStoreError } from '../dependency-error.ts'
import { evictDependencies } from './evict-dependencies.ts'
import { tryInstallLock } from './install-lock.ts'
import { adoptTree, type CheckLink, copyForeignTree, manifestDigestOf, manifestText, readTree, type StoredFiles } from './store-files.ts'
import { manifestName, producedName, recordName, type TreePlace, type TreeRecord, treesName } from './tree-record.ts'
import { TreeSeals } from './tree-seals.ts'

export type DependencyStoreOptions = {
  /** Of the worker, shared by all processes and trust domains. */
  directory: string
  /** Trees are found only in the trust domain that has added them. The name of a directory. */
  domain: string
  /** Bytes that all domains together are reduced to, and that one tree may have. Default: 10 GiB. */
  maxBytes?: number | undefined
  /** A tree whose files were compared is used for this long without comparing them again. Default: one minute. */
  recheckMs?: number | undefined
}

/** A tree that is not removed before `release` is called. */
export type StoredTree = { readonly path: string; readonly record: TreeRecord; readonly release: Release }

/** What an installer reports to those that wait for it. */
export type InstallProgress = { readonly run: string; readonly step: string; readonly sinceMs: number }

/** Held by the only installer of one digest; ends with `release`, or with this process. */
export type InstallLock = { report(progress: InstallProgress): Promise<void>; release: Release }

export type NewTree = {
  digest: string
  inputs: TreeRecord['inputs']
  manager: string
  runName: string
  installSeconds: number
  /** Accesses what the programs have left. */
  files: RootDirectory
  /** `path` is absolute. */
  trees: { place: TreePlace; path: string; checkLink: CheckLink }[]
  /** Files outside of the trees: `name` is relative to the root of the source, `path` absolute. */
  produced: { name: string; path: string }[]
  /**
   * Move: no process can reach the trees any more, nor has one of their files open. They are adopted. Copy: that is not certain; the store gets
   * copies, and `files` keeps the trees.
   */
  transfer: 'Move' | 'Copy'
}

const defaultBytes = 10 * 1024 ** 3
const maxFiles = 1_000_000
const maxProducedBytes = 256 * 1024 ** 2
const pollMs = 100
const defaultWaitMs = 30 * 60_000
const defaultRecheckMs = 60_000

/**
 * Trees of installed dependencies by the digest of their inputs: `<directory>/<domain>/<digest>/`. Of all processes that need the same digest,
 * one installs at a time. A tree is prepared under a temporary name and renamed, so it is there either completely or not at all, whenever a
 * process ends. Only the worker writes. A Run gets a tree only if its content was verified after the start of the machine, and
 * nothing has changed since: sizes, inodes, owners, modes and times of all files are compared, at most once a minute (0.15 s of CPU time for
 * 28,000).
 */
export class DependencyStore {
  readonly #directory: string
  readonly #domain: string
  readonly #maxBytes: number
  readonly #seals: TreeSeals

  constructor({ directory, domain, maxBytes = defaultBytes, recheckMs = defaultRecheckMs }: DependencyStoreOptions) {
    if (!/^[A-Za-z0-9][\w.-]{0,200}$/.test(domain))
      throw new RangeError(`domain must be the name of a directory, got ${JSON.stringify(domain)}`)
    this.#directory = directory
    this.#domain = domain
    this.#maxBytes = maxBytes
    this.#seals = new TreeSeals({ recheckMs, replaceFile: (path, text) => this.#replaceFile(path, text) })
  }

  /**
   * The tree with this digest; undefined if the store does not have it. A damaged one is removed, unless a process installs the digest now, and
   * `onDamaged` receives what has changed.
   */
  async acquire(digest: string, onDamaged?: (problem: string) => void, { isThorough = false } = {}): Promise<StoredTree | undefined> {
    return await this.#named(async () => {
      const found = await this.#acquireVerified(digest, isThorough)
      if (typeof found !== 'string') return found
      // Another process may have replaced the tree meanwhile. Only the holder of the lock does, so a tree is removed only under the lock.
      const unlock = this.#tryLock(digest)
      try {
        return unlock && (await this.#acquireOrRemove(digest, onDamaged, isThorough))
      } finally {
        await unlock?.()
      }
    })
  }

  /**
   * Waits while another process installs the digest. Returns its tree, or the lock to install it: also when that process ended without
   * a tree, however it ended. `onWaiting` is called ten times a second with what the installer has reported.
   * @throws the reason of `signal` when it is aborted. {DependencyError} that names the installer after `maxWaitMs` (default: 30 minutes).
   */
  async acquireOrLock(
    digest: string,
    {
      signal,
      onWaiting,
      onDamaged,
      maxWaitMs = defaultWaitMs,
    }: {
      signal: AbortSignal
      maxWaitMs?: number | undefined
      onWaiting?(progress: InstallProgress | undefined): void
      onDamaged?(problem: string): void
    },
  ): Promise<{ tree: StoredTree } | { lock: InstallLock }> {
    for (const deadlineMs = performance.now() + maxWaitMs; ; ) {
      signal.throwIfAborted()
      const tree = await this.acquire(digest, onDamaged)
      if (tree) return { tree }
      const unlock = await this.#named(async () => this.#tryLock(digest))
      if (unlock) return await this.#asInstaller(digest, unlock, onDamaged)
      const progress = await this.#readProgress(digest)
      if (performance.now() >= deadlineMs) throw waitedTooLong(maxWaitMs, progress)
      onWaiting?.(progress)
      await delay(pollMs, undefined, { signal })
    }
  }

  /** Adds a tree. The caller has the {@link InstallLock}. @throws {UnexpectedFileError} if it is none that can be stored. */
  async add(tree: NewTree): Promise<StoredTree> {
    return await this.#named(async () => {
      const entry = this.#entryOf(tree.digest)
      makePrivateDirectories(dirname(entry))
      const staged = this.#temporary()
      try {
        const record = await this.#stage(staged, tree)
        // Before it is there: it would otherwise be the least recently used one of a process that removes some.
        const release = await useLocked(entry)
        try {
          await rename(staged, entry).catch(async error => {
            if (!['ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error
            await this.#removeDamaged(entry)
            await rename(staged, entry)
          })
        } catch (error) {
          await release()
          throw error
        }
        await evictDependencies(this.#directory, this.#maxBytes)
        return { path: entry, record, release }
      } finally {
        await removeTree(staged)
      }
    })
  }

  /** A small text that was stored under `name` in this domain, such as the version of a program. */
  async readNote(name: string): Promise<string | undefined> {
    return await readFile(this.#noteOf(name), 'utf8').catch(ifMissing(undefined))
  }

  async writeNote(name: string, text: string): Promise<void> {
    await this.#named(async () => {
      makePrivateDirectories(join(this.#directory, this.#domain))
      await this.#replaceFile(this.#noteOf(name), text)
    })
  }

  /** The directory of the trees and the files of a stored tree, which programs may read. */
  static treePath(tree: Pick<StoredTree, 'path'>, index: number): string {
    return join(tree.path, treesName, `${index}`)
  }

  static producedFiles(tree: Pick<StoredTree, 'path'>): RootDirectory {
    return new RootDirectory(join(tree.path, producedName))
  }

  /** The tree, or what is wrong with it. Undefined if there is none. */
  async #acquireVerified(digest: string, isThorough: boolean): Promise<StoredTree | string | undefined> {
    const path = this.#entryOf(digest)
    const release = await takeEntry(path)
    if (!release) return undefined
    try {
      const found = await this.#seals.verify(path, digest, isThorough)
      if (typeof found !== 'string') {
        await touch(path)
        return { path, record: found, release }
      }
      await release()
      return found
    } catch (error) {
      await release()
      throw error
    }
  }

  /** The tree; a damaged one is removed. The caller has the install lock. */
  async #acquireOrRemove(
    digest: string,
    onDamaged: ((problem: string) => void) | undefined,
    isThorough: boolean,
  ): Promise<StoredTree | undefined> {
    const found = await this.#acquireVerified(digest, isThorough)
    if (typeof found !== 'string') return found
    onDamaged?.(found)
    await this.#removeDamaged(this.#entryOf(digest))
    return undefined
  }

  #tryLock(digest: string): Release | undefined {
    return tryInstallLock(join(this.#directory, 'locks'), this.#domain, digest)
  }

  async #asInstaller(
    digest: string,
    unlock: Release,
    onDamaged?: (problem: string) => void,
  ): Promise<{ tree: StoredTree } | { lock: InstallLock }> {
    try {
      // It may have been added between the two.
      const tree = await this.#named(() => this.#acquireOrRemove(digest, onDamaged, false))
      if (!tree) return { lock: this.#installLockOf(digest, unlock) }
      await unlock()
      return { tree }
    } catch (error) {
      await unlock()
      throw error
    }
  }

  #installLockOf(digest: string, unlock: Release): InstallLock {
    const path = this.#progressOf(digest)
    return {
      report: async progress => {
        makePrivateDirectories(dirname(path))
        await this.#replaceFile(path, JSON.stringify(progress)).catch(() => {})
      },
      release: async () => {
        await rm(path, { force: true }).catch(() => {})
        await unlock()
      },
    }
  }

  async #stage(staged: string, tree: NewTree): Promise<TreeRecord> {
    makePrivateDirectories(join(staged, treesName))
    const limits = { bytes: this.#maxBytes, files: maxFiles }
    const stored: StoredFiles[] = []
    for (const [index, { path, checkLink }] of tree.trees.entries()) {
      const name = `${treesName}/${index}`
      if ((await tree.files.kindOf(path)) !== 'directory') throw new UnexpectedFileError(path, 'is not a directory')
      const isMoved = tree.transfer === 'Move' && (await tree.files.move(path, new RootDirectory(staged), name))
      stored.push(
        isMoved
          ? await adoptTree(join(staged, name), name, limits, checkLink)
          : await copyForeignTree(path, join(staged, name), name, limits, checkLink),
      )
    }
    if (tree.produced.length > 0) stored.push(await this.#stageProduced(staged, tree))
    const text = manifestText(stored.flatMap(({ lines }) => lines))
    const sum = (of: 'files' | 'bytes') => stored.reduce((total, next) => total + next[of], 0)
    const record: TreeRecord = {
      formatVersion: 1,
      digest: tree.digest,
      manager: tree.manager,
      inputs: tree.inputs,
      trees: tree.trees.map(({ place }) => place),
      produced: tree.produced.map(({ name }) => name),
      files: sum('files'),
      bytes: sum('bytes') + text.length,
      manifestDigest: manifestDigestOf(text),
      installSeconds: tree.installSeconds,
      installedAt: rfc3339(Date.now()),
      installedBy: tree.runName,
    }
    await writeFile(join(staged, manifestName), text, { mode: 0o600 })
    await writeFile(join(staged, recordName), JSON.stringify(record, undefined, 2), { mode: 0o600 })
    await this.#seals.seal(staged)
    return record
  }

  async #stageProduced(staged: string, { files, produced }: NewTree): Promise<StoredFiles> {
    const root = join(staged, producedName)
    let left = maxProducedBytes
    makePrivateDirectories(root)
    for (const { name, path } of produced) {
      const copy = join(root, name)
      const content = await files.read(path, { maxBytes: left })
      if (!content) throw new UnexpectedFileError(path, 'was removed while it was read')
      left -= content.byteLength
      makePrivateDirectories(dirname(copy))
      await writeFile(copy, content, { flag: 'wx', mode: (await files.isExecutable(path)) ? 0o755 : 0o644 })
    }
    return await readTree(root, producedName)
  }

  /** The caller has the install lock. A Run that uses the tree keeps its files: they are removed when this process has ended. */
  async #removeDamaged(entry: string): Promise<void> {
    const temporary = this.#temporary()
    await rename(entry, temporary).catch(ifMissing(undefined))
    if (!(await isInUse(entry).catch(ifMissing(false)))) await removeTree(temporary)
  }

  async #replaceFile(path: string, text: string): Promise<void> {
    const temporary = this.#temporary()
    try {
      await writeFile(temporary, text, { mode: 0o600, flag: 'wx' })
      await rename(temporary, path)
    } catch (error) {
      await rm(temporary, { force: true })
      throw error
    }
  }

  async #readProgress(digest: string): Promise<InstallProgress | undefined> {
    try {
      return JSON.parse(await readFile(this.#progressOf(digest), 'utf8')) as InstallProgress
    } catch {
      return undefined
    }
  }

  /** @throws {DependencyError} with what to do, for an error of the machine. */
  async #named<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw toStoreError(error, this.#directory) ?? error
    }
  }

  #temporary(): string {
    const staging = join(this.#directory, 'staging')
    makePrivateDirectories(staging)
    return join(staging, temporaryName(globalThis.crypto.randomUUID()))
  }

  /** @throws {DependencyError} for a bug in the caller. */
  #entryOf(digest: string): string {
    if (!/^[0-9a-f]{64}$/.test(digest)) throw new RangeError(`digest must be 64 hexadecimal digits, got ${JSON.stringify(digest)}`)
    return join(this.#directory, this.#domain, digest)
  }

  #progressOf(digest: string): string {
    return `${this.#entryOf(digest)}.progress`
  }

  #noteOf(name: string): string {
    return join(this.#directory, this.#domain, `note-${sha256(name).slice(0, 40)}`)
  }
}

const waitedTooLong = (maxWaitMs: number, progress: InstallProgress | undefined) => {
  const installer = progress ? `Run ${progress.run}` : 'another Run'
  const since = progress ? ` (${progress.step}, since ${formatSeconds(Date.now() - progress.sinceMs)})` : ''
  return new DependencyError(
    'DependencyInstallFailed',
    `waited ${formatSeconds(maxWaitMs)} for ${installer}, which installs the same dependencies${since}; cancel that Run if it makes no progress`,
    { retryable: true },
  )
}

const formatSeconds = (ms: number) => `${Math.max(0, Math.round(ms / 1_000))} s`

/** Programs see the trees only where they are mounted. */
const makePrivateDirectories = (path: string) => makeDirectories(path, 0o700)
