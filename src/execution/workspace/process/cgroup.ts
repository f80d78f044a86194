import { accessSync, constants, existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/** The controllers that enforce our limits. */
export type CgroupController = 'cpu' | 'memory' | 'pids'
const controllers: readonly CgroupController[] = ['cpu', 'memory', 'pids']

/** The parent of the cgroups of Runs, and the limits that the kernel enforces there. */
export type DelegatedCgroup = { path: string; controllers: ReadonlySet<CgroupController> }

export type CgroupLimits = {
  /** In CPUs, such as 1.5. */
  cpus?: number
  memoryBytes?: number
  pids?: number
}

/** The directory below a delegated cgroup that contains the cgroups of Runs. */
const runsName = 'oarlock-runs'

let detected: { parent: DelegatedCgroup | undefined } | undefined

/**
 * A cgroup v2 directory in which this process may create cgroups, detected once: the one in OARLOCK_CGROUP, else this process's own, else
 * its parent (a service with a subgroup for its processes). The one with the most controllers is used; even without controllers a cgroup
 * measures CPU time and kills all its processes together. Processes are never moved, so a cgroup that contains processes offers no controllers
 * (https://docs.kernel.org/admin-guide/cgroup-v2.html, "No Internal Process Constraint").
 */
export function findDelegatedCgroup(env: Readonly<Record<string, string | undefined>> = process.env): DelegatedCgroup | undefined {
  detected ??= { parent: process.platform === 'linux' ? detect(env) : undefined }
  return detected.parent
}

/**
 * How many processes of this process's own cgroup, without those of cgroups below, the kernel has killed for lack of memory, there or on the whole machine
 * (https://docs.kernel.org/admin-guide/cgroup-v2.html, memory.events.local). Undefined where it does not count them: without cgroup v2, without the memory
 * controller, and in the root of the hierarchy.
 */
export function ownCgroupOomKills(): number | undefined {
  const { mount, own } = ownCgroup()
  const events = mount === undefined || own === undefined ? undefined : readText(join(mount, own, 'memory.events.local'))
  return events === undefined ? undefined : Number(/^oom_kill (\d+)$/m.exec(events)?.[1] ?? 0)
}

/** The mount point of the hierarchy, and the path of this process's cgroup below it. */
function ownCgroup(): { mount: string | undefined; own: string | undefined } {
  const mount = cgroup2Mount(readText('/proc/self/mountinfo') ?? '')
  return { mount, own: /^0::(.*)$/m.exec(readText('/proc/self/cgroup') ?? '')?.[1] }
}

function detect(env: Readonly<Record<string, string | undefined>>): DelegatedCgroup | undefined {
  if (env.OARLOCK_CGROUP) return tryParent(env.OARLOCK_CGROUP)
  const { mount, own } = ownCgroup()
  if (mount === undefined || own === undefined) return undefined
  const candidates = own === '/' ? [mount] : [join(mount, own), join(mount, dirname(own))]
  const found = candidates.map(tryParent).filter(parent => parent !== undefined)
  return found.toSorted((a, b) => b.controllers.size - a.controllers.size)[0]
}

/** The mount point of the cgroup v2 hierarchy: /sys/fs/cgroup, or /sys/fs/cgroup/unified when version 1 is mounted, too. */
function cgroup2Mount(mountInfo: string): string | undefined {
  return /^\S+ \S+ \S+ \S+ (\S+) .* - cgroup2 /m.exec(mountInfo)?.[1]
}

function tryParent(base: string): DelegatedCgroup | undefined {
  const path = join(base, runsName)
  try {
    // Moving a process needs write permission on this file of the common ancestor (kernel: cgroup_attach_permissions). Only a cgroup has it.
    accessSync(join(base, 'cgroup.procs'), constants.W_OK)
    mkdirSync(path, { recursive: true })
    const available = new Set((readText(join(base, 'cgroup.controllers')) ?? '').split(/\s+/))
    for (const controller of controllers) {
      // One at a time: the kernel applies a line completely or not at all.
      for (const level of [base, path]) if (available.has(controller)) tryWrite(join(level, 'cgroup.subtree_control'), `+${controller}`)
    }
    const enabled = new Set((readText(join(path, 'cgroup.subtree_control')) ?? '').split(/\s+/))
    const parent = { path, controllers: new Set(controllers.filter(controller => enabled.has(controller))) }
    return existsSync(join(path, 'cgroup.kill')) ? parent : undefined
  } catch {
    return undefined
  }
}

/** What the kernel measured for a Run. */
export type CgroupUsage = { cpuSeconds: number; peakMemoryBytes?: number; peakPids?: number; oomKills: number }

/** The cgroup of one Run: its programs start in it, and it can list, measure and kill them together. */
export class RunCgroup {
  readonly path: string
  readonly controllers: ReadonlySet<CgroupController>

  constructor(parent: DelegatedCgroup, runUid: string) {
    this.path = join(parent.path, runUid)
    this.controllers = parent.controllers
  }

  /**
   * Creates the cgroup and sets the limits that the kernel enforces here. There is no swap, and an OOM kill ends all processes, because the
   * rest of a Run could not continue.
   * @throws {Error} when the kernel rejects it.
   */
  create(limits: CgroupLimits): void {
    mkdirSync(this.path, { recursive: true })
    const set = (file: string, value: string | number) => writeFileSync(join(this.path, file), String(value))
    if (limits.cpus !== undefined && this.controllers.has('cpu')) set('cpu.max', `${Math.round(limits.cpus * 100_000)} 100000`)
    if (limits.memoryBytes !== undefined && this.controllers.has('memory')) {
      set('memory.max', limits.memoryBytes)
      set('memory.oom.group', 1)
      tryWrite(join(this.path, 'memory.swap.max'), '0')
    }
    if (limits.pids !== undefined && this.controllers.has('pids')) set('pids.max', limits.pids)
  }

  /** Writing 0 to this file moves the writing process into the cgroup. */
  get procsFile(): string {
    return join(this.path, 'cgroup.procs')
  }

  processes(): number[] {
    return (readText(this.procsFile) ?? '').split('\n').filter(Boolean).map(Number)
  }

  usage(): CgroupUsage {
    const field = (file: string, name: string) =>
      Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(readText(join(this.path, file)) ?? '')?.[1] ?? 0)
    const integer = (file: string) => {
      const text = readText(join(this.path, file))
      return text === undefined ? undefined : Number(text)
    }
    return {
      cpuSeconds: field('cpu.stat', 'usage_usec') / 1e6,
      peakMemoryBytes: integer('memory.peak'),
      peakPids: integer('pids.peak'),
      oomKills: field('memory.events', 'oom_kill'),
    }
  }

  kill(): void {
    tryWrite(join(this.path, 'cgroup.kill'), '1')
  }

  /** Kills all processes and removes the cgroup. False when a process did not end within `timeoutMs`. */
  async remove(timeoutMs = 5_000): Promise<boolean> {
    const deadline = performance.now() + timeoutMs
    for (let waitMs = 1; existsSync(this.path); waitMs = Math.min(waitMs * 2, 50)) {
      this.kill()
      if (removeCgroupTree(this.path)) return true
      if (performance.now() >= deadline) return false
      await delay(waitMs)
    }
    return true
  }
}

/** The cgroup of a Run, if cgroups are available on this machine. It may not exist yet or any more. */
export function cgroupOfRun(runUid: string): RunCgroup | undefined {
  const parent = findDelegatedCgroup()
  return parent && new RunCgroup(parent, runUid)
}

/** Removes a cgroup with its children: a program may have created some. */
function removeCgroupTree(path: string): boolean {
  try {
    for (const entry of readdirSync(path, { withFileTypes: true })) if (entry.isDirectory()) removeCgroupTree(join(path, entry.name))
  } catch {
    return true
  }
  return tryRemove(path)
}

function tryRemove(path: string): boolean {
  try {
    rmdirSync(path)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}

function tryWrite(path: string, text: string): boolean {
  try {
    writeFileSync(path, text)
    return true
  } catch {
    return false
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return undefined
  }
}
