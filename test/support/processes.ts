import { readdirSync, readFileSync } from 'node:fs'

/** Ids of the running processes whose environment names the Run: its engine and its descendants. */
export function processesOfRun(runUid: string): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => hasVariable(pid, `OARLOCK_RUN_UID=${runUid}`) && !isZombie(pid))
}

function hasVariable(pid: number, variable: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(variable)
  } catch {
    return false
  }
}

function isZombie(pid: number): boolean {
  try {
    return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return true
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !isZombie(pid)
  } catch {
    return false
  }
}

/** Ids of the running workers that use a data directory of `oarlock up`; the supervisor of their Runs is none. */
export function workerProcessesOf(dataDir: string): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => hasVariable(pid, `OARLOCK_CACHE_DIR=${dataDir}/cache`) && !isZombie(pid) && !isSupervisor(pid))
}

function isSupervisor(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('supervisor')
  } catch {
    return true
  }
}
