import { accessSync, constants, existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/** The controllers that hold limits of ours. */
export type CgroupController = 'cpu' | 'memory' | 'pids'
const wanted: readonly CgroupController[] = ['cpu', 'memory', 'pids']

/** Where Runs get cgroups of their own, and which limits the kernel keeps there. */
export type DelegatedCgroup = { path: string; controllers: ReadonlySet<CgroupController> }

export type CgroupLimits = {
  /** In CPUs, such as 1.5. */
  cpus?: number
  memoryBytes?: number
  pids?: number
}

/** The directory below a delegated cgroup that holds those of Runs. */
const runsName = 'oarlock-runs'

let known: { parent: DelegatedCgroup | undefined } | undefined

/**
 * A cgroup v2 directory that this process may make cgroups in, looked for once: that in OARLOCK_CGROUP, else this process's own,
 * else the one above it (a service with a subgroup for its processes). Those with the most controllers win; one without any still
 * counts CPU time and kills as a whole. Processes of others are never moved, so a cgroup that holds some gives no controllers
 * (https://docs.kernel.org/admin-guide/cgroup-v2.html, "No Internal Process Constraint").
 */
export function findDelegatedCgroup(env: Readonly<Record<string, string | undefined>> = process.env): DelegatedCgroup | undefined {
  known ??= { parent: process.platform === 'linux' ? look(env) : undefined }
  return known.parent
}

function look(env: Readonly<Record<string, string | undefined>>): DelegatedCgroup | undefined {
  if (env.OARLOCK_CGROUP) return tryParent(env.OARLOCK_CGROUP)
  const mount = cgroup2Mount(readText('/proc/self/mountinfo') ?? '')
  const own = /^0::(.*)$/m.exec(readText('/proc/self/cgroup') ?? '')?.[1]
  if (mount === undefined || own === undefined) return undefined
  const places = own === '/' ? [mount] : [join(mount, own), join(mount, dirname(own))]
  const found = places.map(tryParent).filter(parent => parent !== undefined)
  return found.toSorted((a, b) => b.controllers.size - a.controllers.size)[0]
}

/** The mount point of the cgroup v2 hierarchy: alone in /sys/fs/cgroup, or beside version 1 in /sys/fs/cgroup/unified. */
function cgroup2Mount(mountInfo: string): string | undefined {
  return /^\S+ \S+ \S+ \S+ (\S+) .* - cgroup2 /m.exec(mountInfo)?.[1]
}

function tryParent(base: string): DelegatedCgroup | undefined {
  const path = join(base, runsName)
  try {
    mkdirSync(path, { recursive: true })
    const here = new Set((readText(join(base, 'cgroup.controllers')) ?? '').split(/\s+/))
    for (const controller of wanted) {
      // One at a time: the kernel takes all of a line or nothing.
      for (const level of [base, path]) if (here.has(controller)) tryWrite(join(level, 'cgroup.subtree_control'), `+${controller}`)
    }
    const given = new Set((readText(join(path, 'cgroup.subtree_control')) ?? '').split(/\s+/))
    const parent = { path, controllers: new Set(wanted.filter(controller => given.has(controller))) }
    // Who may move processes is decided by the common ancestor's file (kernel: cgroup_attach_permissions), which is this one.
    accessSync(join(base, 'cgroup.procs'), constants.W_OK)
    return existsSync(join(path, 'cgroup.kill')) ? parent : undefined
  } catch {
    return undefined
  }
}

/** What the kernel counted for a Run. */
export type CgroupUsage = { cpuSeconds: number; peakMemoryBytes?: number; peakPids?: number; oomKills: number; pidsRefused: number }

/** The cgroup of one Run: its programs start in it, it counts them, and it kills all of them at once. */
export class RunCgroup {
  readonly path: string
  readonly controllers: ReadonlySet<CgroupController>

  constructor(parent: DelegatedCgroup, runUid: string) {
    this.path = join(parent.path, runUid)
    this.controllers = parent.controllers
  }

  /**
   * Makes it and sets the limits that the kernel keeps here. Without swap, and killed as a whole: half a Run is of no use.
   * @throws {Error} when the kernel refuses.
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

  /** Writing 0 to it moves the writer here. */
  get procsFile(): string {
    return join(this.path, 'cgroup.procs')
  }

  processes(): number[] {
    return (readText(this.procsFile) ?? '').split('\n').filter(Boolean).map(Number)
  }

  usage(): CgroupUsage {
    const field = (file: string, name: string) =>
      Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(readText(join(this.path, file)) ?? '')?.[1] ?? 0)
    const whole = (file: string) => {
      const text = readText(join(this.path, file))
      return text === undefined ? undefined : Number(text)
    }
    return {
      cpuSeconds: field('cpu.stat', 'usage_usec') / 1e6,
      peakMemoryBytes: whole('memory.peak'),
      peakPids: whole('pids.peak'),
      oomKills: field('memory.events', 'oom_kill'),
      pidsRefused: field('pids.events', 'max'),
    }
  }

  kill(): void {
    tryWrite(join(this.path, 'cgroup.kill'), '1')
  }

  /** Kills what is in it and removes it. False when something in it did not end within `timeoutMs`. */
  async remove(timeoutMs = 5_000): Promise<boolean> {
    const deadline = performance.now() + timeoutMs
    for (let waitMs = 1; existsSync(this.path); waitMs = Math.min(waitMs * 2, 50)) {
      this.kill()
      if (removeTreeOf(this.path)) return true
      if (performance.now() >= deadline) return false
      await delay(waitMs)
    }
    return true
  }
}

/** The cgroup of a Run, if Runs have cgroups on this machine; it may not exist (any more). */
export function cgroupOfRun(runUid: string): RunCgroup | undefined {
  const parent = findDelegatedCgroup()
  return parent && new RunCgroup(parent, runUid)
}

/** A program may have made cgroups in its own. */
function removeTreeOf(path: string): boolean {
  try {
    for (const entry of readdirSync(path, { withFileTypes: true })) if (entry.isDirectory()) removeTreeOf(join(path, entry.name))
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
