import { type ChildProcessByStdio, type StdioOptions, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { inheritedDescriptors } from './inherited-descriptors.ts'
import { createLineSplitter, type OutputLog, type Unsplittable } from './line-splitter.ts'
import { lowerPriority, niceValues } from './priority.ts'
import { killGroup, signalGroup } from './process-group.ts'
import { killRunProcesses, mutatedStackVariable, runUidVariable } from './processes-of-run.ts'
import { readPaced } from './read-paced.ts'
import { escalateSignals, type SignalEscalation } from './signal-escalation.ts'
import { findCommand, SpawnError, toSpawnError } from './spawn-error.ts'

/** After which bubblewrap has started the session of its program. */
const newSessionMs = 100

export type SpawnOptions = {
  /** A program, looked up in PATH of `env` unless it contains a slash. There is no shell. */
  command: string
  args: string[]
  cwd: string
  /** The complete environment; the runner adds only its own variables. */
  env: Record<string, string>
  /** Aborting it starts the signal escalation; the promise still resolves only when every process of the group has ended. */
  signal: AbortSignal
  /** Receives one line without its line end. Bytes that are not UTF-8 become U+FFFD. */
  onStdoutLine?(line: string): void
  onStderrLine?(line: string): void
  /**
   * Whether only the log needs what was printed, one line or several: while the log is full it is dropped without being decoded, except the last lines,
   * which are passed on at the end. Default: never.
   */
  isForLogOnly?: { stdout?(bytes: Buffer): boolean; stderr?(bytes: Buffer): boolean }
  /** Longer lines are split. Default: 64 KiB. Increase it for a program that prints one long JSON line. */
  maxLineBytes?: number
  escalation?: Partial<SignalEscalation>
}

/** `signal` is the signal that ended the program. Both are null when `SpawnOptions.signal` was aborted before the program was started. */
export type ExitResult = { exitCode: number | null; signal: NodeJS.Signals | null }

/**
 * Runs a program to its end. Resolves for any exit code, when the whole process group has ended.
 * @throws {SpawnError} when the program could not be started.
 */
export type ProcessRunner = (options: SpawnOptions) => Promise<ExitResult>

/** A command line before it is wrapped: `command` is the path of the program, `env` its complete environment. */
export type Command = { command: string; args: readonly string[]; cwd: string; env: Readonly<Record<string, string>> }

/** A command line that starts a program isolated. */
export type WrappedCommand = {
  command: string
  args: string[]
  /** The complete environment of `command`, which is not yet isolated: it passes that of the program on without interpreting it. */
  env: Record<string, string>
  /**
   * Set when the command starts bubblewrap: its options, which it reads from descriptor 5. It reports the leader of the group in the sandbox on
   * descriptor 3, and waits for a byte on descriptor 4 before it starts the program. Signals are sent to the group in the sandbox: they
   * would end bubblewrap itself, and the program with it.
   */
  sandboxOptions?: readonly string[]
  /** Called with the leader of the group in the sandbox, before its program starts. */
  onSandbox?(leader: number): void
  /**
   * Connects the network of the sandbox before its program starts; `pid` is the process that started the command. Resolves to what
   * disconnects it, which is called when the program has ended.
   */
  connectNetwork?(pid: number): Promise<() => Promise<void>>
  /** Inherited as descriptors 6 and up. */
  descriptors: readonly number[]
  /** Called when the command was started, or failed to start. */
  release(): void
}

export type ProcessRunnerOptions = {
  /** In the environment of every process as OARLOCK_RUN_UID, so that processes that leave the group are found. */
  runUid: string
  /** For a Run that may write: the UID of its Stack, in the environment as OARLOCK_WRITES_STACK_UID. */
  mutatedStackUid?: string
  /** HOME of the programs, unless `env` sets it. Default: their cwd. */
  home?: string
  /** TMPDIR of the programs, unless `env` sets it. Default: their cwd. */
  tmp?: string
  /** PATH of the programs, unless `env` sets it. Default: that of this process. */
  path?: string
  /** Wraps the command line of a program to isolate it. Default: it is started directly. */
  wrapCommand?(command: Command): WrappedCommand
  /** Interrupts a group whose program is stopped. Default: SIGINT. */
  interrupt?(processGroupId: number): void
  /** Where long lines of output are not split. */
  unsplittable?: Unsplittable
  /** The log to which the lines go. */
  log?: OutputLog
  /** Called before anything else can happen to the group. */
  onStart?(processGroupId: number): void
  /** Called when the group has no process left. */
  onEnd?(processGroupId: number): void
}

/** A process that left the group may hold the pipes open after the program ended: they are closed after this time. */
const pipeTimeoutMs = 1_000

/** Creates a runner whose programs each get their own process group and exactly the given environment. */
export function createProcessRunner(runner: ProcessRunnerOptions): ProcessRunner {
  return async options => {
    const { signal, cwd, escalation } = options
    if (signal.aborted) return { exitCode: null, signal: null }
    const env = {
      PATH: runner.path ?? process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin',
      HOME: runner.home ?? cwd,
      TMPDIR: runner.tmp ?? cwd,
      ...options.env,
      [runUidVariable]: runner.runUid,
      ...(runner.mutatedStackUid !== undefined && { [mutatedStackVariable]: runner.mutatedStackUid }),
    }

    const wrapped = runner.wrapCommand?.({ command: findCommand(options, env), args: options.args, cwd, env })
    const isSandbox = wrapped?.sandboxOptions !== undefined
    const child = spawnGroup(options, env, wrapped)
    const outerGroupId = child.pid
    if (outerGroupId === undefined) throw await startError(child, options)
    // The group in a sandbox is known a moment later; the program does not start before that.
    let processGroupId = isSandbox ? undefined : outerGroupId
    lowerPriority(outerGroupId, niceValues.engine)
    if (processGroupId !== undefined) runner.onStart?.(processGroupId)

    let lowersPriority: NodeJS.Timeout | undefined
    let stopEscalation = (): void => {}
    let disconnectNetwork: (() => Promise<void>) | undefined
    let ended = false
    const onAbort = (): void => {
      if (ended) return
      if (processGroupId === undefined) signalGroup(outerGroupId, 'SIGKILL')
      else stopEscalation = escalateSignals(processGroupId, escalation, runner.interrupt)
    }
    signal.addEventListener('abort', onAbort, { once: true })

    const closed = new Promise<void>(resolve => child.once('close', () => resolve()))
    const { maxLineBytes, isForLogOnly = {} } = options
    const { unsplittable, log } = runner
    const stdout = createLineSplitter(line => options.onStdoutLine?.(line), {
      ...{ maxLineBytes, unsplittable, log },
      isForLogOnly: isForLogOnly.stdout,
    })
    let firstError: string | undefined
    const stderr = createLineSplitter(
      line => {
        firstError ??= line
        options.onStderrLine?.(line)
      },
      { maxLineBytes, unsplittable, log, isForLogOnly: isForLogOnly.stderr },
    )
    const drains = [readPaced(child.stdout, stdout.push), readPaced(child.stderr, stderr.push)]
    try {
      const exited = new Promise<ExitResult>(resolve => child.once('exit', (exitCode, by) => resolve({ exitCode, signal: by })))
      if (isSandbox) {
        processGroupId = await Promise.race([readSandboxGroup(child), exited.then(() => undefined)])
        if (processGroupId !== undefined) {
          runner.onStart?.(processGroupId)
          wrapped?.onSandbox?.(processGroupId)
          disconnectNetwork = await connectNetwork(options, wrapped, outerGroupId)
          if (signal.aborted) signalGroup(outerGroupId, 'SIGKILL')
          else unblockSandbox(child)
          // bubblewrap starts a session for the program when it is no longer blocked.
          lowersPriority = setTimeout(lowerPriority, newSessionMs, processGroupId, niceValues.engine).unref()
        }
      }
      const result = await exited
      ended = true
      clearTimeout(lowersPriority)
      stopEscalation()
      // Invariant 1: after this promise resolves, the next program may start, so no process of this one may be left.
      // Provisioners and plugins outlive a killed engine (measured with terraform: `sleep` kept running).
      if (processGroupId !== undefined) await killGroup(processGroupId)
      if (processGroupId !== outerGroupId) await killGroup(outerGroupId)
      if (signal.aborted) await killRunProcesses(runner.runUid)
      for (const drain of drains) drain()
      await Promise.race([closed, new Promise<void>(resolve => setTimeout(resolve, pipeTimeoutMs).unref())])
      if (processGroupId === undefined && !signal.aborted) {
        const message = `the sandbox for ${JSON.stringify(options.command)} could not be created: ${firstError ?? 'bubblewrap printed no error'}`
        throw new SpawnError('SpawnFailed', options.command, message)
      }
      return result
    } finally {
      ended = true
      await disconnectNetwork?.()
      stopEscalation()
      signal.removeEventListener('abort', onAbort)
      child.stdout.destroy()
      child.stderr.destroy()
      stdout.end()
      stderr.end()
      if (processGroupId !== undefined) runner.onEnd?.(processGroupId)
    }
  }
}

/** @throws {SpawnError} after the sandbox, whose program has not started, was killed. */
async function connectNetwork({ command }: SpawnOptions, wrapped: WrappedCommand | undefined, pid: number) {
  try {
    return await wrapped?.connectNetwork?.(pid)
  } catch (error) {
    await killGroup(pid)
    const message = `the network of the sandbox for ${JSON.stringify(command)} could not be connected: ${(error as Error).message}`
    throw new SpawnError('SpawnFailed', command, message, error)
  }
}

type Child = ChildProcessByStdio<null, Readable, Readable>

/** Reads the leader of the group in the sandbox, which bubblewrap writes to its `--info-fd`. */
function readSandboxGroup(child: Child): Promise<number> {
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

/** Lets bubblewrap, which waits on its `--block-fd`, start the program. */
function unblockSandbox(child: Child): void {
  writeAndClose(child, 4, 'x')
}

function writeAndClose(child: Child, descriptor: 4 | 5, text: string): void {
  const pipe = child.stdio[descriptor as 4]
  if (!pipe || !('end' in pipe)) return
  // The child ended before it read everything: its exit is reported elsewhere.
  pipe.on('error', () => {})
  pipe.end(text)
}

function spawnGroup({ command, args, cwd }: SpawnOptions, env: Record<string, string>, wrapped: WrappedCommand | undefined): Child {
  const sandboxOptions = wrapped?.sandboxOptions
  const pipes: StdioOptions = sandboxOptions ? ['pipe', 'pipe', 'pipe', ...wrapped!.descriptors] : []
  let devNull: number | undefined
  try {
    devNull = openSync('/dev/null', 'r')
    const stdio = closeInherited(['ignore', 'pipe', 'pipe', ...pipes], devNull)
    // Without this check, a value with a NUL byte would add options to the sandbox.
    if (sandboxOptions?.some(option => option.includes('\0'))) throw new Error('an environment variable or a path contains a NUL byte')
    // `detached` makes the child the leader of a new session and group: its pid is the group's id.
    const child = spawn(wrapped?.command ?? command, wrapped?.args ?? args, {
      cwd,
      env: wrapped?.env ?? env,
      detached: true,
      stdio,
    }) as Child
    // Without a process there are no pipes, and its event 'error' follows.
    if (sandboxOptions && child.pid !== undefined) writeAndClose(child, 5, sandboxOptions.map(option => `${option}\0`).join(''))
    return child
  } catch (error) {
    // Node throws when the arguments are invalid, for example when one contains a NUL byte.
    const message = `command ${JSON.stringify(command)} could not be started: ${(error as Error).message}`
    throw new SpawnError('SpawnFailed', command, message, error)
  } finally {
    if (devNull !== undefined) closeSync(devNull)
    wrapped?.release()
  }
}

/**
 * Replaces descriptors that this process got from its parent, and that its children would inherit, by `devNull`: with 'ignore' a child
 * inherits them.
 */
function closeInherited(stdio: Exclude<StdioOptions, string>, devNull: number): StdioOptions {
  const inherited = new Set(inheritedDescriptors())
  const further = Math.max(0, Math.max(0, ...inherited) + 1 - stdio.length)
  return [...stdio, ...Array.from({ length: further }, (_, index) => (inherited.has(stdio.length + index) ? devNull : 'ignore'))]
}

async function startError(child: Child, options: SpawnOptions): Promise<SpawnError> {
  const error = await new Promise<NodeJS.ErrnoException>(resolveError => child.once('error', resolveError))
  return toSpawnError(error, options, options.env)
}
