// `npm test [-- FILES]`: format, lint, types and import rules first (they are fast), then every test with node:test.
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
process.chdir(root)

const files = process.argv.slice(2)
// Most of these tests wait for processes and leases: node:test's default, one file fewer than cores, leaves them idle.
const concurrency = Math.max(2, availableParallelism())
if (files.length === 0) {
  run('biome', ['check', '--error-on-warnings', '.'])
  run('tsc', ['--noEmit'])
  files.push(...globSync(['src/**/*.test.ts', 'test/**/*.test.ts']).sort())
}
run(process.execPath, ['--test', `--test-concurrency=${concurrency}`, '--test-timeout=240000', ...files])

function run(command, args) {
  const { status, error } = spawnSync(command, args, {
    stdio: 'inherit',
    env: { ...process.env, NODE_COMPILE_CACHE: 'node_modules/.cache/node' },
  })
  if (error) console.error(`${command}: ${error.message}`)
  if (status !== 0) process.exit(status ?? 1)
}
