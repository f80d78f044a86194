// `npm test [-- FILES]`: format, lint, types and import rules first (they are fast), then the tests with node:test.
// `npm run test:slow`: the tests named *.slow.test.ts: those that need a cluster, other people's clients, or minutes of real time.
// With CI=true a skipped test fails the run unless test/allowed-skips.mjs lists its reason, and so does a failed test marked as todo.
import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { allowedSkips } from '../test/allowed-skips.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
process.chdir(root)

const args = process.argv.slice(2)
const isSlow = args[0] === '--slow'
const files = isSlow ? args.slice(1) : args
// Most of these tests wait for processes and leases: node:test's default, one file fewer than cores, leaves them idle.
const concurrency = Math.max(2, availableParallelism())
if (files.length === 0) {
  if (!isSlow) {
    run('biome', ['check', '--error-on-warnings', '.'])
    run('tsc', ['--noEmit'])
    run('tsc', ['--noEmit', '-p', 'src/console/page'])
  }
  files.push(
    ...globSync(['src/**/*.test.ts', 'image/*.test.ts', 'bench/**/*.test.ts', 'test/**/*.test.ts'])
      .filter(file => file.endsWith('.slow.test.ts') === isSlow)
      .sort(),
  )
}
// node --test without files would search the whole checkout.
if (files.length === 0) {
  console.error(`no ${isSlow ? '*.slow.test.ts' : '*.test.ts'} files in src/, image/, bench/ and test/`)
  process.exit(1)
}

const directory = mkdtempSync(join(tmpdir(), 'oarlock-test-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
const skipped = join(directory, 'skipped.jsonl')
run(process.execPath, [
  `--import=${pathToFileURL(join(root, 'scripts/exit-limit.mjs'))}`,
  '--test',
  `--test-concurrency=${concurrency}`,
  '--test-timeout=240000',
  '--test-reporter=spec',
  '--test-reporter-destination=stdout',
  '--test-reporter=./scripts/skip-reporter.mjs',
  `--test-reporter-destination=${skipped}`,
  ...files,
])
if (process.env.CI === 'true') checkSkips(readFileSync(skipped, 'utf8'))

function checkSkips(text) {
  const records = text
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line))
  const skips = records.filter(({ kind, reason }) => kind === 'skip' && !allowedSkips.some(({ pattern }) => pattern.test(reason)))
  report(skips, 'were skipped for reasons that test/allowed-skips.mjs does not list')
  report(
    records.filter(({ kind }) => kind === 'todo'),
    'are marked as todo and failed',
  )
}

function report(tests, problem) {
  if (tests.length === 0) return
  console.error(`CI=true: ${tests.length} tests ${problem}:`)
  for (const { file, name, reason } of tests) console.error(`  ${file}: ${name}: ${reason}`)
  process.exitCode = 1
}

function run(command, argv) {
  const { status, error } = spawnSync(command, argv, {
    stdio: 'inherit',
    env: { ...process.env, NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'node') },
  })
  if (error) console.error(`${command}: ${error.message}`)
  if (status !== 0) process.exit(status ?? 1)
}
