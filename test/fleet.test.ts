import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { annotations, runResource, type Stack, stackResource, workerResource } from '../src/api/index.ts'
import { configMapResource } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { skipWithoutTerraformEngine } from './support/run-program.ts'
import { sampleLauncher } from './support/sample-launcher.ts'

type Result = { code: number | null; stdout: string; stderr: string; seconds: number }

/** What `npm start -- --exit-when-ready` runs, on free ports. */
async function npmStart(dataDir: string, args: string[] = [], env: NodeJS.ProcessEnv = {}): Promise<Result> {
  const startedMs = Date.now()
  const fixed = ['up', '--sample', '--exit-when-ready', '--data', dataDir, '--listen', '127.0.0.1:0', '--health-address', '127.0.0.1:0']
  const child = spawn(process.execPath, [sampleLauncher(), ...fixed, ...args], { env: { ...process.env, NO_COLOR: '1', ...env } })
  const result = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', text => (result.stdout += text))
  child.stderr.setEncoding('utf8').on('data', text => (result.stderr += text))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, ...result, seconds: (Date.now() - startedMs) / 1_000 }
}

describe('the sample fleet', () => {
  const dataDir = makeDataDir()
  after(() => removeDirectory(dataDir))

  test('every Stack reaches the state in its annotation', { skip: skipWithoutTerraformEngine }, async () => {
    const { code, stdout, stderr, seconds } = await npmStart(dataDir)
    equal(code, 0, `${stdout}\n${stderr}`)
    match(stdout, /13 of 13 Stacks as expected/)
    match(stdout, /API +https:\/\/127\.0\.0\.1:\d+/)
    match(stdout, /health +http:\/\/127\.0\.0\.1:\d+/)
    ok(!stdout.includes('\u001b'), 'no escape codes where the output is not a terminal')
    ok(!`${stdout}${stderr}`.includes('correct-horse-battery-staple'), 'no secret is printed')
    console.log(`# the whole fleet took ${seconds.toFixed(1)} s`)
    deepEqual(findLeftovers(dataDir), [])
  })

  test('a second start resumes from the data of the first and repeats no Run', {
    skip: skipWithoutTerraformEngine,
  }, async () => {
    const before = await inspect(dataDir)
    const { code, stdout, stderr } = await npmStart(dataDir)
    equal(code, 0, `${stdout}\n${stderr}`)
    const after = await inspect(dataDir)
    // Only policy has a drift interval, so only it may have new Runs.
    const without = (numbers: Record<string, number | undefined>) =>
      Object.fromEntries(Object.entries(numbers).filter(([name]) => name !== 'policy'))
    deepEqual(without(after.runNumbers), without(before.runNumbers))
    deepEqual(after.outputs, before.outputs)
  })

  test('a start after a user has approved the plan of database succeeds too', { skip: skipWithoutTerraformEngine }, async () => {
    const server = await startOarlock(dataDir)
    try {
      const stacks = server.client.resource(stackResource)
      const { status } = await stacks.get('database', { namespace: 'shop' })
      const metadata = { annotations: { [annotations.approvedPlan]: status?.plan?.digest } }
      await stacks.patch('database', { metadata }, { type: 'merge', namespace: 'shop' })
      await eventually(async () => await stacks.get('database', { namespace: 'shop' }), isReady, 30_000)
    } finally {
      equal(await server.stop(), 0)
    }
    const { code, stdout, stderr } = await npmStart(dataDir, ['--timeout', '60s'])
    equal(code, 0, `${stdout}\n${stderr}`)
    match(stdout, /13 of 13 Stacks as expected/)
  })

  test('passes outputs along the chain, hides secrets, and prunes removed objects', {
    skip: skipWithoutTerraformEngine,
  }, async () => {
    const server = await startOarlock(dataDir)
    try {
      const stacks = server.client.resource(stackResource)
      const status = async (name: string, namespace: string) => (await stacks.get(name, { namespace })).status
      const cluster = await status('cluster', 'shop')
      const app = await status('app', 'shop')
      equal(app?.outputs?.url, `${cluster?.outputs?.endpoint}/app`)
      equal(cluster?.outputs?.token, undefined)
      const flaky = (await server.client.resource(runResource).listAll({ namespace: 'lab' })).items.filter(
        ({ spec }) => spec.stackRef.name === 'flaky',
      )
      deepEqual(flaky.map(({ status }) => status?.phase).sort(), ['Failed', 'Failed', 'Succeeded'])
      const misspelled = await status('misspelled', 'lab')
      match(misspelled?.conditions?.find(({ type }) => type === 'Stalled')?.message ?? '', /replicas.*number/s)

      const configMaps = server.client.resource(configMapResource)
      const names = async () => (await configMaps.listAll({ namespace: 'platform' })).items.map(({ metadata }) => metadata.name)
      ok((await names()).includes('flag-old-checkout'))
      const features = await stacks.get('features', { namespace: 'platform' })
      const [file = ''] = Object.values(features.spec.source.inline?.files ?? {})
      const kept = file.slice(0, file.indexOf('---'))
      await stacks.patch(
        'features',
        { spec: { source: { inline: { files: { 'flags.yaml': kept } } } } },
        { type: 'merge', namespace: 'platform' },
      )
      await eventually(
        async () => await stacks.get('features', { namespace: 'platform' }),
        now => now.status?.observedGeneration === now.metadata.generation && isReady(now),
        30_000,
      )
      ok(!(await names()).includes('flag-old-checkout'))
      ok((await names()).includes('flag-new-checkout'))
    } finally {
      equal(await server.stop(), 0)
    }
  })
})

test('without terraform and tofu, Stacks of other engines become Ready, the rest are skipped with a reason, and the exit code is 0', async () => {
  const dataDir = makeDataDir()
  const bin = mkdtempSync(join(tmpdir(), 'oarlock-path-'))
  // A PATH with the programs that the sample uses, and neither terraform nor tofu.
  for (const program of ['sh', 'cat', 'git', 'grep', 'sleep', 'cksum', 'cut', 'echo']) {
    const path = execFileSync('sh', ['-c', `command -v ${program} || true`], { encoding: 'utf8' }).trim()
    if (path.startsWith('/')) symlinkSync(path, join(bin, program))
  }
  try {
    const { code, stdout, stderr } = await npmStart(dataDir, [], { PATH: bin })
    equal(code, 0, `${stdout}\n${stderr}`)
    match(stdout, /Skipped on this machine:/)
    match(stdout, /shop\/network: EngineNotFound: .*(terraform|tofu)/)
    match(stdout, /8 of 13 Stacks as expected, 5 skipped/)
  } finally {
    removeDirectory(dataDir)
    rmSync(bin, { recursive: true, force: true })
  }
})

test('exits with 1 after --timeout and lists each Stack with its expected and actual state', async () => {
  const dataDir = makeDataDir()
  try {
    const { code, stderr } = await npmStart(dataDir, ['--timeout', '1ms'])
    equal(code, 1)
    match(stderr, /13 of 13 Stacks are not as expected after/)
    match(stderr, /shop\/network: (expected Ready, got \w+ \(|applied, not reconciled yet)/)
  } finally {
    removeDirectory(dataDir)
  }
})

const isReady = (stack: Pick<Stack, 'status'>) =>
  stack.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true

async function inspect(dataDir: string): Promise<{ runNumbers: Record<string, number | undefined>; outputs: Record<string, unknown> }> {
  const server = await startOarlock(dataDir)
  try {
    const { items } = await server.client.resource(stackResource).listAll()
    const { items: workers } = await server.client.resource(workerResource).listAll()
    deepEqual(
      workers.filter(({ status }) => (status?.runs ?? []).length > 0),
      [],
    )
    return {
      runNumbers: Object.fromEntries(items.map(({ metadata, status }) => [metadata.name, status?.lastRunNumber])),
      outputs: Object.fromEntries(items.map(({ metadata, status }) => [metadata.name, status?.outputs])),
    }
  } finally {
    equal(await server.stop(), 0)
  }
}

/** Private directories of Runs that were not removed, and log files that contain a secret. */
function findLeftovers(dataDir: string): string[] {
  const runs = join(dataDir, 'runs')
  const directories = existsSync(runs) ? readdirSync(runs) : []
  const logs = readdirSync(join(dataDir, 'logs'), { recursive: true, encoding: 'utf8' }).filter(path => /\.log$/.test(path))
  const leaks = logs.filter(path => readFileSync(join(dataDir, 'logs', path), 'utf8').includes('correct-horse-battery-staple'))
  return [...directories, ...leaks]
}
