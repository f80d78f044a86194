import { readFileSync } from 'node:fs'

/** Identifies the time since the machine started; undefined where the kernel reports none. */
export function bootId(): string | undefined {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return undefined
  }
}
