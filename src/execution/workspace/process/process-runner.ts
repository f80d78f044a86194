import { type ChildProcessByStdio, type StdioOptions, spawn } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { createLineSplitter } from './line-splitter.ts'
import { killGroup, signalGroup } from './process-group.ts'
import { killRunProcesses, mutatedStackVariable, runUidVariable } from './processes-of-run.ts'

/** How long an interrupted program has: SIGINT, after `graceMs` SIGTERM, after `killMs` more SIGKILL. */
export type SignalEscalation = {
  /** Default: 60,000. */
  graceMs: number
  /** Default: 10,000. */
  killMs: number
}

export type SpawnOptions = {
  /** A program, looked up in PATH of `env` unless it has a slash. No shell. */
  command: string
  args: string[]
  cwd: string
  /** The whole environment; only what the runner must set itself is added. */
  env: Record<string, string>
  /** Aborting it starts the interrupt ladder; the promise still resolves only when everything is gone. */
  signal: AbortSignal
  /** One line without its end. Bytes that are no UTF-8 become U+FFFD. */
  onStdoutLine?(line: string): void
  onStderrLine?(line: string): void
  /** Longer lines come in pieces. Default: 64 KiB. Raise it for a program that prints one long JSON line. */
  maxLineBytes?: number
  escalation?: Partial<SignalEscalation>
}

/** `signal` is the one that ended it. Both are null when the signal was aborted before anything was started. */
export type ExitResult = { exitCode: number | null; signal: NodeJS.Signals | null }

/**
 * Runs a program to its end. Resolves whatever its exit code, when the whole process group is gone.
 * @throws {SpawnError} when it could not be started.
 */
export type ProcessRunner = (options: SpawnOptions) => Promise<ExitResult>

/** A program as it was asked for: `command` is the file itself. */
export type Command = { command: string; args: readonly string[]; cwd: string }

/** How to start it. */
export type WrappedCommand = {
  command: string
  args: string[]
  /**
   * True: the command is bubblewrap, which says on descriptor 3 who leads the group inside, and waits on 4 until that is noted.
   * Signals go to the group inside: bubblewrap itself would die of them and take the program along.
   */
  isSandbox: boolean
  /** Passed on as descriptors 5 and up. */
  descriptors: readonly number[]
  /** Called when it has started, or has not. */
  release(): void
}

export type ProcessRunnerOptions = {
  /** Carried by every process as OARLOCK_RUN_UID, so that those that leave the group are found. */
  runUid: string
  /** Of a Run that may write: the UID of its Stack, carried as OARLOCK_WRITES_STACK_UID. */
  writesStackUid?: string
  /** HOME of the programs, unless `env` names one. Default: their cwd. */
  home?: string
  /** TMPDIR of the programs, unless `env` names one. Default: their cwd. */
  tmp?: string
  /** PATH of the programs, unless `env` names one. Default: that of this process. */
  path?: string
  /** Puts what isolates a program before it. Default: it is started as it is. */
  wrapCommand?(program: Command): WrappedCommand
  /** Called before anything else can happen to the group. */
  onStart?(processGroupId: number): void
  /** Called when no process of the group is left. */
  onEnd?(processGroupId: number): void
}

/** A program that could not be started. */
export class SpawnError extends Error {
  override readonly name = 'SpawnError'
  readonly reason: 'CommandNotFound' | 'CommandNotExecutable' | 'DirectoryNotFound' | 'SpawnFailed'
  readonly command: string

  constructor(reason: SpawnError['reason'], command: string, message: string, cause?: unknown) {
    super(message, { cause })
    this.reason = reason
    this.command = command
  }
}

/** After the program ended, its pipes may be held open by a process that left the group: not waited for longer than this. */
const pipeWaitMs = 1_000

/** A runner whose programs each get their own process group and exactly the given environment. */
export function createProcessRunner(hooks: ProcessRunnerOptions): ProcessRunner {
  return async options => {
    const { signal, cwd, escalation } = options
    if (signal.aborted) return { exitCode: null, signal: null }
    const env = {
      PATH: hooks.path ?? process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin',
      HOME: hooks.home ?? cwd,
      TMPDIR: hooks.tmp ?? cwd,
      ...options.env,
      [runUidVariable]: hooks.runUid,
      ...(hooks.writesStackUid !== undefined && { [mutatedStackVariable]: hooks.writesStackUid }),
    }

    const launch = hooks.wrapCommand?.({ command: await findProgram(options, env), args: options.args, cwd })
    const child = startGroup(options, env, launch)
    const outerGroupId = child.pid
    if (outerGroupId === undefined) throw await spawnFailure(child, options)
    // A sandbox's own group is known a moment later; until then nothing of the program runs.
    let processGroupId = launch?.isSandbox ? undefined : outerGroupId
    if (processGroupId !== undefined) hooks.onStart?.(processGroupId)

    let timer: NodeJS.Timeout | undefined
    let ended = false
    const climb = (): void => {
      if (ended) return
      if (processGroupId === undefined) {
        signalGroup(outerGroupId, 'SIGKILL')
        return
      }
      const group = processGroupId
      signalGroup(group, 'SIGINT')
      timer = setTimeout(() => {
        signalGroup(group, 'SIGTERM')
        timer = setTimeout(() => signalGroup(group, 'SIGKILL'), escalation?.killMs ?? 10_000)
      }, escalation?.graceMs ?? 60_000)
    }
    signal.addEventListener('abort', climb, { once: true })

    const closed = new Promise<void>(resolve => child.once('close', () => resolve()))
    const stdout = createLineSplitter(line => options.onStdoutLine?.(line), options.maxLineBytes)
    let firstError: string | undefined
    const stderr = createLineSplitter(line => {
      firstError ??= line
      options.onStderrLine?.(line)
    }, options.maxLineBytes)
    child.stdout.on('data', stdout.push)
    child.stderr.on('data', stderr.push)
    try {
      const exited = new Promise<ExitResult>(resolve => child.once('exit', (exitCode, by) => resolve({ exitCode, signal: by })))
      if (launch?.isSandbox) {
        processGroupId = await Promise.race([sandboxGroup(child), exited.then(() => undefined)])
        if (processGroupId !== undefined) {
          hooks.onStart?.(processGroupId)
          if (signal.aborted) signalGroup(outerGroupId, 'SIGKILL')
          else letGo(child)
        }
      }
      const result = await exited
      ended = true
      clearTimeout(timer)
      // Invariant 1: whoever is told that the program ended may start the next one, so nothing of it may be left.
      // Provisioners and plugins outlive a killed engine (measured with terraform: `sleep` went on).
      if (processGroupId !== undefined) await killGroup(processGroupId)
      if (processGroupId !== outerGroupId) await killGroup(outerGroupId)
      if (signal.aborted) await killRunProcesses(hooks.runUid)
      await Promise.race([closed, new Promise<void>(resolve => setTimeout(resolve, pipeWaitMs).unref())])
      if (processGroupId === undefined && !signal.aborted) {
        const why = `the sandbox for ${JSON.stringify(options.command)} could not be made: ${firstError ?? 'bubblewrap ended without a word'}`
        throw new SpawnError('SpawnFailed', options.command, why)
      }
      return result
    } finally {
      ended = true
      clearTimeout(timer)
      signal.removeEventListener('abort', climb)
      child.stdout.destroy()
      child.stderr.destroy()
      stdout.end()
      stderr.end()
      if (processGroupId !== undefined) hooks.onEnd?.(processGroupId)
    }
  }
}

/** The file behind `command`, as the kernel would find it: what is put before it would only say that something was not found. */
async function findProgram(options: SpawnOptions, env: Record<string, string>): Promise<string> {
  const { command, cwd } = options
  const candidates = command.includes('/')
    ? [resolve(cwd, command)]
    : (env.PATH ?? '').split(delimiter).map(directory => resolve(cwd, directory, command))
  let code: string | undefined
  for (const path of candidates) {
    try {
      if (!statSync(path).isFile()) throw Object.assign(new Error('not a file'), { code: 'EACCES' })
      accessSync(path, constants.X_OK)
      return path
    } catch (error) {
      if (code !== 'EACCES') code = (error as NodeJS.ErrnoException).code
    }
  }
  throw spawnError(Object.assign(new Error('not found'), { code: code === 'EACCES' ? 'EACCES' : 'ENOENT' }), options, env)
}

/** What bubblewrap says on its `--info-fd`: the leader of the group inside. */
function sandboxGroup(child: ReturnType<typeof startGroup>): Promise<number> {
  const info = child.stdio[3]
  return new Promise(resolveGroup => {
    let text = ''
    info?.on('error', () => {})
    info?.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      const found = /"child-pid": (\d+)/.exec(text)
      if (found) resolveGroup(Number(found[1]))
    })
  })
}

function letGo(child: ReturnType<typeof startGroup>): void {
  const block = child.stdio[4]
  if (!block || !('end' in block)) return
  block.on('error', () => {})
  block.end('x')
}

function startGroup({ command, args, cwd }: SpawnOptions, env: Record<string, string>, launch: WrappedCommand | undefined) {
  const pipes: StdioOptions = launch?.isSandbox ? ['pipe', 'pipe', ...launch.descriptors] : []
  // `detached` makes the child the leader of a new session and group: its pid is the group's id.
  try {
    return spawn(launch?.command ?? command, launch?.args ?? args, {
      cwd,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', ...pipes],
    }) as ChildProcessByStdio<null, Readable, Readable>
  } catch (error) {
    // Node throws for what the kernel refuses outright, such as arguments that are too long or hold a NUL.
    throw new SpawnError(
      'SpawnFailed',
      command,
      `command ${JSON.stringify(command)} could not be started: ${(error as Error).message}`,
      error,
    )
  } finally {
    launch?.release()
  }
}

async function spawnFailure(child: ReturnType<typeof startGroup>, options: SpawnOptions): Promise<SpawnError> {
  const error = await new Promise<NodeJS.ErrnoException>(resolveError => child.once('error', resolveError))
  return spawnError(error, options, options.env)
}

function spawnError(error: NodeJS.ErrnoException, { command, cwd }: SpawnOptions, env: Record<string, string>): SpawnError {
  // The kernel says ENOENT for a missing cwd, too.
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) {
    return new SpawnError(
      'DirectoryNotFound',
      command,
      `directory ${JSON.stringify(cwd)} to run ${JSON.stringify(command)} in does not exist`,
      error,
    )
  }
  if (error.code === 'ENOENT') {
    const where = command.includes('/') ? '' : ` in PATH ${JSON.stringify(env.PATH ?? process.env.PATH ?? '')}`
    return new SpawnError('CommandNotFound', command, `command ${JSON.stringify(command)} was not found${where}`, error)
  }
  if (error.code === 'EACCES') {
    return new SpawnError(
      'CommandNotExecutable',
      command,
      `command ${JSON.stringify(command)} is not executable; make it so with chmod +x`,
      error,
    )
  }
  return new SpawnError('SpawnFailed', command, `command ${JSON.stringify(command)} could not be started: ${error.message}`, error)
}
