import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A git repository on disk; `commit` writes files and returns the hash. Ignores the user's own git configuration. */
export class GitRepository {
  readonly path: string

  constructor(path: string) {
    this.path = path
    mkdirSync(path, { recursive: true })
    this.#git('init', '--quiet', '--initial-branch=main')
  }

  get url(): string {
    return `file://${this.path}`
  }

  commit(files: Record<string, string>): string {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(this.path, name), text)
    this.#git('add', '--all')
    this.#git(
      '-c',
      'user.name=t',
      '-c',
      'user.email=t@example.invalid',
      '-c',
      'commit.gpgsign=false',
      'commit',
      '--quiet',
      '--allow-empty',
      '-m',
      'change',
    )
    return this.#git('rev-parse', 'HEAD').trim()
  }

  #git(...args: string[]): string {
    const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_SYSTEM: '/dev/null' }
    return execFileSync('git', ['-C', this.path, ...args], { encoding: 'utf8', env })
  }
}
