import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from './eventually.ts'

export type Disk = { path: string; setReadOnly(readOnly: boolean): void; unmount(): Promise<void> }

/** Why no tmpfs can be mounted here; undefined when it can. Leaves nothing mounted. */
export function tmpfsUnavailable(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'needs root on Linux to mount a tmpfs'
  try {
    void mountTmpfs(4096).unmount()
    return undefined
  } catch (error) {
    return `cannot mount a tmpfs here: ${(error as Error).message.split('\n')[0]}`
  }
}

/** Mounts a tmpfs of `bytes` bytes. */
export function mountTmpfs(bytes: number): Disk {
  const path = mkdtempSync(join(tmpdir(), 'oarlock-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', path], { stdio: 'pipe' })
  } catch (error) {
    rmSync(path, { recursive: true })
    throw error
  }
  return {
    path,
    setReadOnly: readOnly => {
      execFileSync('mount', ['-o', `remount,${readOnly ? 'ro' : 'rw'}`, path])
    },
    // The supervisor of ended workers uses its directory for ten more seconds.
    unmount: async () => {
      await eventually(() => isUnmounted(path), `${path} to be unmounted`, 30_000)
      rmSync(path, { recursive: true })
    },
  }
}

function isUnmounted(path: string): boolean {
  return spawnSync('umount', [path], { stdio: 'ignore' }).status === 0
}
