import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export type Disk = { path: string; setReadOnly(readOnly: boolean): void; unmount(): Promise<void> }

/** Why there can be no disk of its own here; undefined when there can. Nothing stays mounted. */
export function whyNoTmpfs(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'needs root on Linux to mount a tmpfs'
  try {
    void mountTmpfs(4096).unmount()
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
    // The supervisor of workers that are gone keeps its directory for ten seconds.
    unmount: async () => {
      for (let i = 0; !isUnmounted(path); i++) {
        if (i === 300) throw new Error(`${path} stays busy`)
        await sleep(100)
      }
      rmSync(path, { recursive: true })
    },
  }
}

function isUnmounted(path: string): boolean {
  return spawnSync('umount', [path], { stdio: 'ignore' }).status === 0
}
