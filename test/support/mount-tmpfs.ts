import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type Disk = { path: string; setReadOnly(readOnly: boolean): void; unmount(): void }

/** Why there can be no disk of its own here; undefined when there can. Nothing stays mounted. */
export function whyNoTmpfs(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'needs root on Linux to mount a tmpfs'
  try {
    mountTmpfs(4096).unmount()
    return undefined
  } catch (error) {
    return `cannot mount a tmpfs here: ${(error as Error).message.split('\n')[0]}`
  }
}

/** A disk of its own, `bytes` large. */
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
    unmount: () => {
      execFileSync('umount', [path])
      rmSync(path, { recursive: true })
    },
  }
}
