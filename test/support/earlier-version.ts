import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..', '..')

/** A value for `skip` of a test that needs an earlier commit of this repository: false when the clone has it. */
export function skipWithoutCommit(commit: string): string | false {
  try {
    execFileSync('git', ['-C', root, 'cat-file', '-e', `${commit}^{commit}`], { stdio: 'ignore' })
    return false
  } catch {
    return 'the clone does not contain the commit of the recording'
  }
}

/** Writes the sources of a commit to a new directory, where they run with the packages of this one. Returns the path of `oarlock.js`. */
export function checkOutVersion(commit: string, directory: string): string {
  mkdirSync(directory, { recursive: true })
  execFileSync('sh', ['-c', 'git -C "$0" archive "$1" | tar x -C "$2"', root, commit, directory])
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  return join(directory, 'bin', 'oarlock.js')
}
