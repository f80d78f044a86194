import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { makeDirectories } from '../kubernetes/util/index.ts'
import { packageRoot } from './package-root.ts'

export const sampleDirectory = join(packageRoot, 'examples', 'stacks')

const git = promisify(execFile)

/**
 * Creates the git repository of the sample at `<directory>/site` unless it exists, so that later commits are kept. Without git there is
 * none, and the Stack that uses it reports that.
 */
export async function makeSampleRepository(directory: string): Promise<void> {
  const path = join(directory, 'site')
  if (existsSync(join(path, '.git', 'HEAD'))) return
  makeDirectories(directory, 0o700)
  await cp(join(sampleDirectory, 'repository', 'site'), path, { recursive: true })
  // The user's git configuration (signing, hooks, templates) must not apply.
  const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' }
  const author = ['-c', 'user.name=Oarlock sample', '-c', 'user.email=sample@example.invalid', '-c', 'commit.gpgsign=false']
  try {
    await git('git', ['init', '--quiet', '--initial-branch=main', path], { env })
    await git('git', ['-C', path, 'add', '--all'], { env })
    await git('git', ['-C', path, ...author, 'commit', '--quiet', '--message', 'The first version of the site'], { env })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
