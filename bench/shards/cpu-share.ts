import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const controller = '/sys/fs/cgroup/cpu'
const periodUs = 50_000

/** A cgroup (v1) that holds one process to a share of a core. */
export class CpuShare {
  readonly #directory: string

  /** @param share of one core, from 0 to 1. @throws {Error} where there is no writable cgroup v1 `cpu`. */
  constructor(name: string, share: number) {
    if (!existsSync(join(controller, 'cpu.cfs_quota_us'))) {
      throw new Error(`${controller} has no cpu.cfs_quota_us: this bench needs root and the controller cpu of cgroup v1`)
    }
    this.#directory = join(controller, `oarlock-bench-${process.pid}-${name}`)
    mkdirSync(this.#directory)
    writeFileSync(join(this.#directory, 'cpu.cfs_period_us'), String(periodUs))
    writeFileSync(join(this.#directory, 'cpu.cfs_quota_us'), String(Math.round(periodUs * share)))
  }

  add(pid: number): void {
    writeFileSync(join(this.#directory, 'cgroup.procs'), String(pid))
  }

  /** Of the periods in which its process was ready to run, the fraction in which the cgroup held it back. */
  throttled(): number {
    const text = readFileSync(join(this.#directory, 'cpu.stat'), 'utf8')
    const value = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? Number.NaN)
    return value('nr_throttled') / value('nr_periods')
  }

  /** After its process has ended. */
  remove(): void {
    rmdirSync(this.#directory)
  }
}
