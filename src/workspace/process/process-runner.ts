import { spawn } from 'node:child_process'
import { statSync } from 'node:fs'
import { createLineSplitter } from './line-splitter.ts'
import { killGroup, signalGroup } from './process-group.ts'
import { killRunProcesses, runUidVariable, writesStackVariable } from './run-processes.ts'

/** How long an interrupted program has: SIGINT, after `graceMs` SIGTERM, after `killMs` more SIGKILL. */
export type InterruptTimes = {
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
  interrupt?: Partial<InterruptTimes>
}

/** `signal` is the one that ended it. Both are null when the signal was aborted before anything was started. */
export type ExitResult = { exitCode: number | null; signal: NodeJS.Signals | null }

/**
 * Runs a program to its end. Resolves whatever its exit code, when the whole process group is gone.
 * @throws {SpawnError} when it could not be started.
 */
export type ProcessRunner = (options: SpawnOptions) => Promise<ExitResult>

export type RunnerHooks = {
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
export function createProcessRunner(hooks: RunnerHooks): ProcessRunner {
  return async options => {
    const { signal, cwd, interrupt } = options
    if (signal.aborted) return { exitCode: null, signal: null }
    const env = {
      PATH: hooks.path ?? process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin',
      HOME: hooks.home ?? cwd,
      TMPDIR: hooks.tmp ?? cwd,
      ...options.env,
      [runUidVariable]: hooks.runUid,
      ...(hooks.writesStackUid !== undefined && { [writesStackVariable]: hooks.writesStackUid }),
    }

    const child = startGroup(options, env)
    const processGroupId = child.pid
    if (processGroupId === undefined) throw await spawnFailure(child, options)
    hooks.onStart?.(processGroupId)

    let timer: NodeJS.Timeout | undefined
    let ended = false
    const climb = (): void => {
      if (ended) return
      signalGroup(processGroupId, 'SIGINT')
      timer = setTimeout(() => {
        signalGroup(processGroupId, 'SIGTERM')
        timer = setTimeout(() => signalGroup(processGroupId, 'SIGKILL'), interrupt?.killMs ?? 10_000)
      }, interrupt?.graceMs ?? 60_000)
    }
    signal.addEventListener('abort', climb, { once: true })

    const closed = new Promise<void>(resolve => child.once('close', () => resolve()))
    const stdout = createLineSplitter(line => options.onStdoutLine?.(line), options.maxLineBytes)
    const stderr = createLineSplitter(line => options.onStderrLine?.(line), options.maxLineBytes)
    child.stdout.on('data', stdout.push)
    child.stderr.on('data', stderr.push)
    try {
      const result = await new Promise<ExitResult>(resolve => child.once('exit', (exitCode, by) => resolve({ exitCode, signal: by })))
      ended = true
      clearTimeout(timer)
      // Invariant 1: whoever is told that the program ended may start the next one, so nothing of it may be left.
      // Provisioners and plugins outlive a killed engine (measured with terraform: `sleep` went on).
      await killGroup(processGroupId)
      if (signal.aborted) await killRunProcesses(hooks.runUid)
      await Promise.race([closed, new Promise<void>(resolve => setTimeout(resolve, pipeWaitMs).unref())])
      return result
    } finally {
      ended = true
      clearTimeout(timer)
      signal.removeEventListener('abort', climb)
      child.stdout.destroy()
      child.stderr.destroy()
      stdout.end()
      stderr.end()
      hooks.onEnd?.(processGroupId)
    }
  }
}

function startGroup({ command, args, cwd }: SpawnOptions, env: Record<string, string>) {
  // `detached` makes the child the leader of a new session and group: its pid is the group's id.
  try {
    return spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  } catch (error) {
    // Node throws for what the kernel refuses outright, such as arguments that are too long or hold a NUL.
    throw new SpawnError(
      'SpawnFailed',
      command,
      `command ${JSON.stringify(command)} could not be started: ${(error as Error).message}`,
      error,
    )
  }
}

async function spawnFailure(child: ReturnType<typeof startGroup>, { command, cwd, env }: SpawnOptions): Promise<SpawnError> {
  const error = await new Promise<NodeJS.ErrnoException>(resolve => child.once('error', resolve))
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
