import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const root = '/sys/fs/cgroup'

/** The root directory of each hierarchy of version 1, or the one of version 2. */
export const cgroupHierarchies = (): string[] =>
  existsSync(join(root, 'cgroup.controllers')) ? [root] : readdirSync(root).map(name => join(root, name))

/** Creates a cgroup in each hierarchy. */
export function createCgroup(name: string): void {
  for (const hierarchy of cgroupHierarchies()) {
    const directory = join(hierarchy, name)
    mkdirSync(directory, { recursive: true })
    // A new cpuset of version 1 is empty, and then no process may enter it.
    for (const file of ['cpuset.cpus', 'cpuset.mems'])
      if (existsSync(join(hierarchy, file)) && existsSync(join(directory, file)))
        writeFileSync(join(directory, file), readFileSync(join(hierarchy, file), 'utf8'))
  }
}

/** Removes a cgroup with those below it, and kills what still runs in them. */
export async function removeCgroup(name: string): Promise<void> {
  for (const hierarchy of cgroupHierarchies()) {
    const directory = join(hierarchy, name)
    // The kernel frees a cgroup some time after its last process has ended.
    for (let attempt = 1; existsSync(directory); attempt++) {
      killAll(directory)
      try {
        remove(directory)
      } catch (error) {
        if (attempt === 300) throw error
        await sleep(50)
      }
    }
  }
}

function killAll(directory: string): void {
  for (const entry of readdirSync(directory, { withFileTypes: true, recursive: true })) {
    if (entry.name !== 'cgroup.procs') continue
    for (const pid of readFileSync(join(entry.parentPath, entry.name), 'utf8').split('\n').filter(Boolean)) {
      try {
        process.kill(Number(pid), 'SIGKILL')
      } catch {
        // It has ended.
      }
    }
  }
}

function remove(directory: string): void {
  for (const entry of readdirSync(directory, { withFileTypes: true })) if (entry.isDirectory()) remove(join(directory, entry.name))
  rmdirSync(directory)
}
