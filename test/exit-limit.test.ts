import { equal, match } from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

const preload = new URL('../scripts/exit-limit.mjs', import.meta.url)

for (const { name, rest, status, output } of [
  {
    name: 'fails a test file that does not exit',
    rest: 'setInterval(() => {}, 1_000)',
    status: 1,
    output: /did not exit 200 ms after its last test; open: .*Timeout/,
  },
  { name: 'passes a test file that exits', rest: '', status: 0, output: /pass 1\n/ },
  {
    name: 'is not in processes that a test file forks',
    rest: `test('forks', (_, done) => {
      if (process.execArgv.some(arg => arg.includes('exit-limit'))) done(new Error(process.execArgv.join()))
      else done()
    })`,
    status: 0,
    output: /pass 2\n/,
  },
]) {
  test(`the exit limit ${name}`, t => {
    const directory = mkdtempSync(join(tmpdir(), 'oarlock-exit-limit-'))
    t.after(() => rmSync(directory, { recursive: true, force: true }))
    const file = join(directory, 'a.test.mjs')
    writeFileSync(file, `import { test } from 'node:test'\ntest('passes', () => {})\n${rest}\n`)
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const result = spawnSync(process.execPath, [`--import=${preload}`, '--test', file], {
      env: { ...env, OARLOCK_TEST_EXIT_LIMIT_MS: String(status === 0 ? 60_000 : 200) },
      encoding: 'utf8',
    })
    const text = result.stdout + result.stderr
    match(text, output)
    equal(result.status, status, text)
  })
}
