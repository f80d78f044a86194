/**
 * Stacks of one npm project in one `oarlock up`: packages are installed once, a Run that exceeds its memory limit fails alone and is retried, and
 * nothing is left. `test/one-project.slow.test.ts` has the same with engine pulumi and the real CLI.
 */
import { equal } from 'node:assert/strict'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { GitRepository } from './support/git-repository.ts'
import { makeDataDir, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { checkOneProject } from './support/one-project.ts'

const noNpm = existsSync('/usr/bin/npm') ? false : 'needs npm in /usr/bin'

/** With the variable `megabytes`, it allocates as much. */
const program = `
const text = require('shared')
const megabytes = Number(process.env.OARLOCK_VAR_megabytes || 0)
require('node:fs').writeFileSync(process.env.OARLOCK_STATE, JSON.stringify({ text }))
const ballast = Array.from({ length: megabytes }, () => Buffer.alloc(1e6, 1))
setTimeout(() => console.log(text, ballast.length), megabytes > 0 ? 3_000 : 0)
`
const packages = {
  '': { name: 'p', version: '1.0.0', dependencies: { shared: 'file:shared' } },
  'node_modules/shared': { resolved: 'shared', link: true },
  shared: { name: 'shared', version: '1.0.0' },
}
const files = {
  'package.json': JSON.stringify(packages['']),
  'package-lock.json': JSON.stringify({ name: 'p', version: '1.0.0', lockfileVersion: 3, requires: true, packages }),
  'shared/package.json': JSON.stringify(packages.shared),
  'shared/index.js': 'module.exports = "first"',
  'index.js': program,
}

test('Stacks of one npm project: one install, OutOfMemory fails one Run, and no lock and no worker is left', {
  skip: noNpm,
}, async t => {
  const dataDir = makeDataDir()
  t.after(() => removeDirectory(dataDir))
  const repository = new GitRepository(join(dataDir, 'project'))
  mkdirSync(join(repository.path, 'shared'))
  repository.commit(files)
  const up = await startOarlock(dataDir, ['--allow-path', repository.path, '--max-workers', '3'])
  await checkOneProject({
    ...{ up, repository, stackCount: 6, timeoutMs: 120_000 },
    spec: { engine: 'command', source: {}, command: { installDependencies: true, apply: ['node', 'index.js'] } },
    spendthrift: { megabytes: 500 },
    memory: { limit: '400Mi', raised: '800Mi' },
    change: { 'shared/index.js': 'module.exports = "second"' },
  })
  equal(await up.stop(), 0)
})
