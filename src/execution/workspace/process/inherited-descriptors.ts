import { readdirSync, readFileSync } from 'node:fs'

/** O_CLOEXEC on x86-64 and arm64, as /proc/<pid>/fdinfo shows it. */
const closeOnExec = 0o2000000

/**
 * Descriptors above 2 that a child of this process inherits. Node's own close on exec; these were open when this process was started, such as
 * a lock or a log file of a service manager.
 */
export function inheritedDescriptors(): number[] {
  if (process.platform !== 'linux') return []
  return readdirSync('/proc/self/fd')
    .map(Number)
    .filter(descriptor => descriptor > 2 && isInherited(descriptor))
}

function isInherited(descriptor: number): boolean {
  try {
    const flags = /^flags:\s+([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'latin1'))?.[1]
    return flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0
  } catch {
    // The descriptor of the directory that was read.
    return false
  }
}
