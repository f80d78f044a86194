import { closeSync, openSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { IsolationLevel, Network } from '../../../api/index.ts'
import {
  type Command,
  cgroupOfRun,
  findDescendants,
  findRunProcesses,
  isInInnerNamespace,
  markShell,
  type RunCgroup,
  readStartTime,
  readStat,
  runMark,
  SpawnError,
  stackMark,
  type WrappedCommand,
} from '../process/index.ts'
import type { RunDirectory } from '../run-directory.ts'
import { launch, launchProgram, quoteForShell } from './launcher.ts'
import { monitorUsage, type UsagePeaks } from './monitor-usage.ts'
import { canMountWithoutSandbox, checkMountPoints, inMountNamespace, mountSteps, type ReadOnlyMount } from './read-only-mounts.ts'
import type { ExceededLimit, RunLimits } from './resource-limits.ts'
import { isVisible, type Sandbox, sandboxCommand, writableDirectories, writeAccountFiles } from './sandbox.ts'
import type { SandboxAccount } from './sandbox-account.ts'
import { defaultHostname } from './sandbox-hostname.ts'
import { connectNetwork, privateNetworkProblem, writeResolverFile } from './sandbox-network.ts'
import { seccompFilter } from './seccomp.ts'

export type RunIsolationOptions = {
  level: IsolationLevel
  /** For level Sandbox. */
  sandbox?: Sandbox
  /** Host, unless the level is Sandbox. */
  network: Network
  limits: RunLimits
  runUid: string
  /** For a Run that may write: the UID of its Stack. */
  mutatedStackUid?: string | undefined
  /** Of a sandbox. Default: one that all sandboxes have. */
  hostname?: string | undefined
  directory: RunDirectory
  /** Paths that a sandbox may read in addition to the system: caches, tools. */
  readable: readonly string[]
  /** Called when a limit was exceeded that the worker, not the kernel, enforces: the Run must be stopped. */
  onExceeded(exceeded: ExceededLimit): void
}

/** Who enforces a limit: the kernel in the Run's cgroup, this worker by measuring, or no one. */
export type LimitEnforcement = 'Cgroup' | 'Watched' | 'NotEnforced'

/** By what processes that left their group are found at the end of a Run: the strongest that is in effect. */
export type ProcessTracking = 'PidNamespace' | 'Cgroup' | 'ResourceLimit' | 'Environment'

/** The isolation of a Run, with the enforcement of each limit that it has. */
export type EffectiveIsolation = {
  level: IsolationLevel
  network: Network
  processTracking: ProcessTracking
  limits: { cpu?: LimitEnforcement; memory?: LimitEnforcement; pids?: LimitEnforcement; disk?: LimitEnforcement }
}

export type RunUsage = UsagePeaks & { cpuSeconds: number }

/** As container runtimes do it. */
const maxSharedMemoryBytes = 64 * 2 ** 20

/**
 * When the machine runs out of memory, the kernel kills programs of Runs before the worker, the control plane and the stores. A step that fails
 * would end the launcher, so this one does not: in some containers the file is read-only.
 */
const preferOnOutOfMemory = '{ echo 1000 > /proc/self/oom_score_adj || :; } 2>/dev/null'

/** Ticks of /proc/<pid>/stat per second: USER_HZ, 100 on every machine Linux runs Node on. */
const ticksPerSecond = 100

/**
 * Isolates the programs of one Run: wraps their command lines so that they start in its cgroup and sandbox, enforces its limits, and
 * measures what they used. Limits that the kernel does not enforce are checked about ten times a second.
 */
export class RunIsolation {
  readonly effective: EffectiveIsolation
  readonly #options: RunIsolationOptions
  readonly #cgroup: RunCgroup | undefined
  readonly #watch: ReturnType<typeof monitorUsage>
  readonly #ticksBefore = childTicks()
  readonly #seccompFile: string | undefined
  #resolverFile: string | undefined
  #hasGivenSource = false
  readonly #markShell: string | undefined
  readonly #programs: string[] = []
  readonly #mounts: ReadOnlyMount[] = []
  /** The init process of the Run's newest sandbox. */
  #sandboxInit: { pid: number; startTime: string | undefined } | undefined

  constructor(options: RunIsolationOptions) {
    const { level, network, limits, runUid, mutatedStackUid, directory, onExceeded } = options
    this.#options = options
    this.#cgroup = openCgroup(runUid, limits)
    // In a sandbox the kernel kills every process of its PID namespace.
    if (level !== 'Sandbox')
      this.#markShell = markShell({ ...runMark(runUid), ...(mutatedStackUid !== undefined && stackMark(mutatedStackUid)) })
    const has = (controller: 'cpu' | 'memory' | 'pids') => this.#cgroup?.controllers.has(controller) === true
    this.effective = {
      level,
      network: level === 'Sandbox' ? network : 'Host',
      processTracking: level === 'Sandbox' ? 'PidNamespace' : this.#cgroup ? 'Cgroup' : this.#markShell ? 'ResourceLimit' : 'Environment',
      limits: {
        ...(limits.cpus !== undefined && { cpu: has('cpu') ? 'Cgroup' : 'NotEnforced' }),
        ...(limits.memoryBytes !== undefined && { memory: has('memory') ? 'Cgroup' : 'Watched' }),
        ...(limits.pids !== undefined && { pids: has('pids') ? 'Cgroup' : 'Watched' }),
        ...(limits.diskBytes !== undefined && { disk: 'Watched' }),
      },
    }
    const byKernel = new Set((['memory', 'pids'] as const).filter(has))
    this.#watch = monitorUsage({
      findProcesses: this.#findProcesses,
      findSandboxed: level === 'Sandbox' ? this.#findSandboxed : undefined,
      limits,
      byKernel,
      diskRoot: directory.root,
      onExceeded,
    })
    if (level === 'Sandbox') {
      const filter = seccompFilter()
      if (!filter) throw new Error(`there is no seccomp filter for ${process.arch}`)
      if (!options.sandbox) throw new Error('level Sandbox needs bubblewrap')
      const problem = network === 'Private' ? privateNetworkProblem(options.sandbox.slirp4netns) : undefined
      if (problem !== undefined) throw new Error(problem)
      // Outside of the directories that the sandbox can access, so that its programs cannot change it.
      this.#seccompFile = join(directory.root, 'seccomp.bpf')
      writeFileSync(this.#seccompFile, filter, { mode: 0o600 })
      writeAccountFiles(options.sandbox, directory)
      if (network === 'Private') this.#resolverFile = writeResolverFile(directory)
    }
  }

  /**
   * Without a cgroup, those of the sandbox are the processes of its PID namespace: their environment and their mark are what the program claims. At
   * level Process these are what there is, and a sandboxed program of another Run, which may claim the same, is not counted.
   */
  readonly #findProcesses = (): readonly number[] => {
    if (this.#cgroup) return this.#cgroup.processes()
    const { level, runUid } = this.#options
    return level === 'Sandbox' ? this.#findSandboxed() : findRunProcesses(runUid).filter(pid => !isInInnerNamespace(pid))
  }

  /** Without the processes that start the sandbox, which the cgroup has. */
  readonly #findSandboxed = (): readonly number[] => {
    const init = this.#sandboxInit
    return init?.startTime !== undefined && readStartTime(init.pid) === init.startTime ? findDescendants(init.pid) : []
  }

  /** Wraps a command so that it starts isolated; for {@link createProcessRunner}. */
  readonly wrapCommand = (command: Command): WrappedCommand => {
    const { sandbox, limits, network, directory, hostname = defaultHostname } = this.#options
    const steps = ['ulimit -c 0']
    // In blocks of 512 bytes (POSIX). A single file cannot exceed the limit between two measurements.
    if (limits.diskBytes !== undefined) steps.push(`ulimit -f ${Math.ceil(limits.diskBytes / 512)}`)
    if (process.platform === 'linux') steps.push(preferOnOutOfMemory)
    if (this.#cgroup) steps.push(`echo 0 > ${quoteForShell(this.#cgroup.procsFile)}`)
    if (this.#markShell !== undefined) steps.push(this.#markShell)
    const mounts = this.#mounts
    checkMountPoints(mounts, directory.root, command.command)
    if (!this.#seccompFile || !sandbox) {
      if (mounts.length > 0)
        return { ...inMountNamespace(launchProgram([...steps, ...mountSteps(mounts)], command)), descriptors: [], release: () => {} }
      const started = steps.length > 1 ? launchProgram(steps, command) : { ...command, args: [...command.args], env: { ...command.env } }
      return { ...started, descriptors: [], release: () => {} }
    }
    const readable = [...this.#options.readable, ...this.#programs]
    if (!isVisible(command.command, directory, readable)) {
      const where =
        'it must be in a system directory such as /usr/local/bin, in the source, or below a path in OARLOCK_SANDBOX_BINDS of the worker'
      throw new SpawnError(
        'CommandNotFound',
        command.command,
        `command ${JSON.stringify(command.command)} is not visible in the sandbox; ${where}`,
      )
    }
    const sharedMemoryBytes = Math.min(maxSharedMemoryBytes, Math.floor((limits.memoryBytes ?? Number.POSITIVE_INFINITY) / 4))
    if (sandbox.account) steps.push(this.#giveDirectories(sandbox.account))
    const seccomp = openSync(this.#seccompFile, 'r')
    // The runner opens pipes as descriptors 3 to 5, and passes further descriptors from 6 on.
    const descriptors = { info: 3, block: 4, args: 5, seccomp: 6 }
    const { argv, options } = sandboxCommand(
      { sandbox, directory, readable, network, resolverFile: this.#resolverFile, sharedMemoryBytes, mounts, hostname },
      command,
      descriptors,
    )
    const launched = launch(steps, argv, command.env)
    const { slirp4netns } = sandbox
    return {
      ...launched,
      sandboxOptions: options,
      onSandbox: pid => {
        this.#sandboxInit = { pid, startTime: readStartTime(pid) }
      },
      ...(network === 'Private' && slirp4netns && { connectNetwork: (pid: number) => connectNetwork(slirp4netns, pid, launched.env) }),
      descriptors: [seccomp],
      release: () => closeSync(seccomp),
    }
  }

  /**
   * Makes the account of the sandbox the owner of what this worker, which is root, has written for its programs. After the first program
   * this worker writes to two directories only. `chown` follows no symlinks, and no program of the Run is running.
   */
  #giveDirectories({ uid, gid }: SandboxAccount): string {
    const { directory } = this.#options
    const written = [directory.inputs, ...(this.#hasGivenSource ? [directory.scratch] : writableDirectories(directory))]
    this.#hasGivenSource = true
    return ['chown', '-hR', `${uid}:${gid}`, '--', ...written.map(quoteForShell)].join(' ')
  }

  /** Lets sandboxes read this program, which the worker, not the Stack, has chosen: the Run's engine. */
  addProgram(path: string): void {
    this.#programs.push(path, realpathSync(path))
  }

  /**
   * Whether programs can get {@link mount}s: in a sandbox always, otherwise if the worker is root and may mount, which most containers forbid.
   */
  async canMount(): Promise<boolean> {
    return this.#options.level === 'Sandbox' || (await canMountWithoutSandbox())
  }

  /**
   * Programs that are started afterwards see `source` read-only at `target`, which is a directory in one of those that they may write. A sandboxed
   * program cannot change it in any way; others run with the rights of the worker.
   */
  mount(mount: ReadOnlyMount): void {
    this.#mounts.push(mount)
  }

  /** The worker has written files for the Run's programs since the first one was started: they become theirs before the next one. */
  markSourceChanged(): void {
    this.#hasGivenSource = false
  }

  get limits(): RunLimits {
    return this.#options.limits
  }

  /** How often the kernel killed a process in the Run's cgroup because of its memory limit. 0 without a cgroup. */
  get oomKills(): number {
    return this.#cgroup?.usage().oomKills ?? 0
  }

  /** Resources used so far. Without a cgroup, CPU time is that of the child processes that have ended. */
  usage(): RunUsage {
    const peaks = this.#watch.peaks()
    const kernel = this.#cgroup?.usage()
    return {
      cpuSeconds: kernel?.cpuSeconds ?? (childTicks() - this.#ticksBefore) / ticksPerSecond,
      peakMemoryBytes: kernel?.peakMemoryBytes ?? peaks.peakMemoryBytes,
      peakPids: kernel?.peakPids ?? peaks.peakPids,
      peakDiskBytes: peaks.peakDiskBytes,
    }
  }

  /** Kills the remaining processes and removes the cgroup. */
  async close(): Promise<void> {
    this.#watch.stop()
    await this.#cgroup?.remove()
  }
}

function openCgroup(runUid: string, limits: RunLimits): RunCgroup | undefined {
  const cgroup = cgroupOfRun(runUid)
  try {
    cgroup?.create(limits)
    return cgroup
  } catch {
    // The delegation was withdrawn since it was detected, for example by a reload of the service: the worker then enforces the limits, and
    // the Run's status shows it.
    return undefined
  }
}

/** User and system time of this process's children that have ended, in ticks (proc(5): cutime and cstime). */
function childTicks(): number {
  if (process.platform !== 'linux') return 0
  const fields = readStat('self')
  return Number(fields?.[13] ?? 0) + Number(fields?.[14] ?? 0)
}

/** Number of OOM kills on this machine since it started (/proc/vmstat). */
export function machineOomKills(): number {
  try {
    return Number(/^oom_kill (\d+)$/m.exec(readFileSync('/proc/vmstat', 'latin1'))?.[1] ?? 0)
  } catch {
    return 0
  }
}
