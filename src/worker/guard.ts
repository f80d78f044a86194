import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { FenceTimes } from './decide-fence.ts'
import { type GuardedRun, type GuardMessage, monotonicMs } from './guard-protocol.ts'

/** Guards that ended one after the other, each within `quickMs` of its start, before the worker gives up on having one. */
const maxQuickEnds = 3
const quickMs = 5_000
/**
 * Measured from a checkout: 81 MB RSS (38 of them its own) without the compile cache, since stripping types loads a WebAssembly
 * module; 53 MB (19) with it, the same as plain JavaScript. The cache also takes the start from 240 to 100 ms on two busy cores.
 */
const guardFlags = ['--max-semi-space-size=1']

/**
 * The worker's side of its guard. Remembers what a new guard has to know, because a guard can be killed, too: then it is
 * started again at once, and when that does not help, `onLost` is called: without a guard no engine may run (invariant 2).
 */
export class Guard {
  readonly #times: FenceTimes
  readonly #onLost: () => void
  readonly #compileCache: string
  #child: ChildProcess | undefined
  #ready: Promise<void>
  #renewedAtMs: number
  #run: GuardedRun | undefined
  #savedDigest: string | undefined
  #isInterrupted = false
  readonly #groups = new Set<number>()
  #isOver = false
  #quickEnds = 0

  constructor(options: { times: FenceTimes; renewedAtMs: number; cacheDir: string; onLost(): void }) {
    this.#times = options.times
    this.#onLost = options.onLost
    this.#renewedAtMs = options.renewedAtMs
    this.#compileCache = join(options.cacheDir, 'compile')
    this.#ready = this.#start()
  }

  /** Resolves when a guard runs. */
  get ready(): Promise<void> {
    return this.#ready
  }

  /** For tests: the process that is the guard now. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  renewed(atMs: number): void {
    this.#renewedAtMs = atMs
    this.#send({ kind: 'renewed', atMs })
  }

  watch(run: GuardedRun): void {
    this.#run = run
    this.#savedDigest = undefined
    this.#isInterrupted = false
    this.#send({ kind: 'run', run })
  }

  started(processGroupId: number): void {
    this.#groups.add(processGroupId)
    this.#send({ kind: 'started', processGroupId })
  }

  ended(processGroupId: number): void {
    this.#groups.delete(processGroupId)
    this.#send({ kind: 'ended', processGroupId })
  }

  /** The engine was told to stop by the worker: its guard does not send SIGINT again. */
  interrupted(): void {
    this.#isInterrupted = true
    this.#send({ kind: 'interrupted' })
  }

  saved(digest: string): void {
    this.#savedDigest = digest
    this.#send({ kind: 'saved', digest })
  }

  done(): void {
    this.#run = undefined
    this.#send({ kind: 'done' })
  }

  /** Sends the guard home: what is left, if anything, is nobody's any more. */
  goodbye(): void {
    this.#isOver = true
    this.#send({ kind: 'goodbye' })
    this.#child?.stdin?.end()
  }

  /**
   * Leaves the rest to the guard: it stops what runs, saves the state and removes the directory, as if the worker had died.
   * Resolves when it is through, or after `timeoutMs`; it goes on by itself then.
   */
  async abandon(timeoutMs: number): Promise<void> {
    this.#isOver = true
    const child = this.#child
    if (!child || child.exitCode !== null) return
    const ended = new Promise<void>(resolve => child.once('exit', () => resolve()))
    child.stdin?.end()
    await Promise.race([ended, delay(timeoutMs, undefined, { ref: true })])
  }

  #start(): Promise<void> {
    const startedMs = monotonicMs()
    // The same file as this one, in the checkout (.ts) and in the package (.js).
    const file = fileURLToPath(new URL(`./guard-main${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url))
    // `detached`: in a session of its own, so that whatever ends the worker's group or terminal leaves the guard.
    const child = spawn(process.execPath, [...guardFlags, file], {
      detached: true,
      stdio: ['pipe', 'pipe', 'ignore'],
      cwd: '/',
      env: { NODE_COMPILE_CACHE: this.#compileCache, OARLOCK_CGROUP: process.env.OARLOCK_CGROUP },
    })
    this.#child = child
    child.stdin.on('error', () => {})
    this.#sendAll()
    let isReady = false
    return new Promise((resolve, reject) => {
      child.stdout.once('data', () => {
        isReady = true
        // From here on it does not keep its worker alive.
        child.unref()
        for (const stream of [child.stdin, child.stdout]) (stream as unknown as Socket).unref()
        resolve()
      })
      const onEnd = (error?: Error): void => {
        if (!isReady) reject(new Error('the guard process could not be started', { cause: error }))
        if (this.#child === child) this.#onEnd(startedMs)
      }
      child.once('error', onEnd)
      child.once('exit', () => onEnd())
    })
  }

  #onEnd(startedMs: number): void {
    this.#child = undefined
    if (this.#isOver) return
    this.#quickEnds = monotonicMs() - startedMs < quickMs ? this.#quickEnds + 1 : 1
    if (this.#quickEnds > maxQuickEnds) {
      this.#onLost()
      return
    }
    this.#ready = this.#start()
    this.#ready.catch(() => {})
  }

  #sendAll(): void {
    this.#send({ kind: 'hello', workerPid: process.pid, times: this.#times })
    this.#send({ kind: 'renewed', atMs: this.#renewedAtMs })
    if (!this.#run) return
    this.#send({ kind: 'run', run: this.#run })
    for (const processGroupId of this.#groups) this.#send({ kind: 'started', processGroupId })
    if (this.#isInterrupted) this.#send({ kind: 'interrupted' })
    if (this.#savedDigest) this.#send({ kind: 'saved', digest: this.#savedDigest })
  }

  // A write to a pipe that has room is in the kernel before this returns, so what was said survives the worker.
  #send(message: GuardMessage): void {
    this.#child?.stdin?.write(`${JSON.stringify(message)}\n`)
  }
}
