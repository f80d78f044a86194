import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { IsolationLevel } from '../../../api/index.ts'
import { type Command, cgroupOfRun, type RunCgroup, readStat, type WrappedCommand } from '../process/index.ts'
import type { RunDirectory } from '../run-directory.ts'
import { monitorUsage, type UsagePeaks } from './monitor-usage.ts'
import type { ExceededLimit, RunLimits } from './resource-limits.ts'
import { sandboxArguments } from './sandbox.ts'
import { seccompFilter } from './seccomp.ts'

export type RunIsolationOptions = {
  level: IsolationLevel
  /** bubblewrap, for level Sandbox. */
  bwrap?: string
  /** False: the sandbox has no network. */
  network: boolean
  limits: RunLimits
  runUid: string
  directory: RunDirectory
  /** What a sandbox may read besides the system: caches, tools. */
  readable: readonly string[]
  /** A limit that is watched, not kept by the kernel, was exceeded: the Run has to end. */
  onExceeded(exceeded: ExceededLimit): void
}

/** Who keeps a limit: the kernel, in the Run's cgroup; this worker, by looking; nobody. */
export type LimitEnforcement = 'Cgroup' | 'Watched' | 'NotEnforced'

/** What is in force for a Run; its limits only as far as it has some. */
export type EffectiveIsolation = {
  level: IsolationLevel
  network: 'Host' | 'None'
  limits: { cpu?: LimitEnforcement; memory?: LimitEnforcement; pids?: LimitEnforcement; disk?: LimitEnforcement }
}

export type RunUsage = UsagePeaks & { cpuSeconds: number }

/** Ticks of /proc/<pid>/stat per second: USER_HZ, 100 on every machine Linux runs Node on. */
const ticksPerSecond = 100

/**
 * How the programs of one Run start, what they may use, and what they used. With a cgroup they start in it; in a sandbox they start
 * in bubblewrap. What exceeds a limit that the kernel does not keep is found by looking, some ten times a second.
 */
export class RunIsolation {
  readonly effective: EffectiveIsolation
  readonly #options: RunIsolationOptions
  readonly #cgroup: RunCgroup | undefined
  readonly #watch: ReturnType<typeof monitorUsage>
  readonly #ticksBefore = childTicks()
  readonly #seccompFile: string | undefined

  constructor(options: RunIsolationOptions) {
    const { level, network, limits, runUid, directory, onExceeded } = options
    this.#options = options
    this.#cgroup = openCgroup(runUid, limits)
    const has = (controller: 'cpu' | 'memory' | 'pids') => this.#cgroup?.controllers.has(controller) === true
    this.effective = {
      level,
      network: level === 'Sandbox' && !network ? 'None' : 'Host',
      limits: {
        ...(limits.cpus !== undefined && { cpu: has('cpu') ? 'Cgroup' : 'NotEnforced' }),
        ...(limits.memoryBytes !== undefined && { memory: has('memory') ? 'Cgroup' : 'Watched' }),
        ...(limits.pids !== undefined && { pids: has('pids') ? 'Cgroup' : 'Watched' }),
        ...(limits.diskBytes !== undefined && { disk: 'Watched' }),
      },
    }
    const byKernel = new Set((['memory', 'pids'] as const).filter(has))
    this.#watch = monitorUsage({ runUid, cgroup: this.#cgroup, limits, byKernel, diskRoot: directory.root, onExceeded })
    if (level === 'Sandbox') {
      const filter = seccompFilter()
      if (!filter) throw new Error(`no seccomp filter is known for ${process.arch}`)
      // Beside the directories that the sandbox sees, so that nothing in it can change it.
      this.#seccompFile = join(directory.root, 'seccomp.bpf')
      writeFileSync(this.#seccompFile, filter, { mode: 0o600 })
    }
  }

  /** The command line that starts a program so; for {@link createProcessRunner}. */
  readonly wrapCommand = (program: Command): WrappedCommand => {
    const { level, bwrap, limits, network, directory, readable } = this.#options
    const command: string[] = []
    const steps = ['ulimit -c 0']
    // In blocks of 512 bytes (POSIX). A single file cannot outgrow the limit between two looks.
    if (limits.diskBytes !== undefined) steps.push(`ulimit -f ${Math.ceil(limits.diskBytes / 512)}`)
    if (this.#cgroup) steps.push('echo 0 > "$1"', 'shift')
    // Nothing runs outside of what was asked for: the first step that fails is the last.
    if (this.#cgroup || steps.length > 1) {
      command.push('/bin/sh', '-c', `${[...steps, 'exec "$@"'].join(' && ')}`, 'oarlock-start')
      if (this.#cgroup) command.push(this.#cgroup.procsFile)
    }
    let seccomp: number | undefined
    if (level === 'Sandbox' && bwrap !== undefined) {
      seccomp = openSync(this.#seccompFile!, 'r')
      // The runner opens pipes as 3 and 4, and what is passed on from 5 up.
      const descriptors = { info: 3, block: 4, seccomp: 5 }
      command.push(...sandboxArguments({ bwrap, directory, readable, network }, program.command, program.cwd, descriptors))
    }
    const [file, ...args] = [...command, program.command, ...program.args]
    return {
      command: file!,
      args,
      isSandbox: seccomp !== undefined,
      descriptors: seccomp === undefined ? [] : [seccomp],
      release: () => {
        if (seccomp !== undefined) closeSync(seccomp)
      },
    }
  }

  get limits(): RunLimits {
    return this.#options.limits
  }

  /** The kernel's own verdict: how often it killed for memory in this cgroup. Zero without one. */
  get oomKills(): number {
    return this.#cgroup?.usage().oomKills ?? 0
  }

  /** What was used so far. CPU time without a cgroup is that of programs which this process has seen end. */
  usage(): RunUsage {
    const peaks = this.#watch.peaks()
    const counted = this.#cgroup?.usage()
    return {
      cpuSeconds: counted?.cpuSeconds ?? (childTicks() - this.#ticksBefore) / ticksPerSecond,
      peakMemoryBytes: counted?.peakMemoryBytes ?? peaks.peakMemoryBytes,
      peakPids: counted?.peakPids ?? peaks.peakPids,
      peakDiskBytes: peaks.peakDiskBytes,
    }
  }

  /** Ends what is still there and removes the cgroup. */
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
    // Given up by the machine since it was found, such as a service that was reloaded: the limits are watched then, and the Run says so.
    return undefined
  }
}

/** User and system time of this process's children that have ended, in ticks (proc(5): cutime and cstime). */
function childTicks(): number {
  if (process.platform !== 'linux') return 0
  const fields = readStat('self')
  return Number(fields?.[13] ?? 0) + Number(fields?.[14] ?? 0)
}

/** How often the kernel killed for want of memory anywhere on this machine, since it started (/proc/vmstat). */
export function machineOomKills(): number {
  try {
    return Number(/^oom_kill (\d+)$/m.exec(readFileSync('/proc/vmstat', 'latin1'))?.[1] ?? 0)
  } catch {
    return 0
  }
}
