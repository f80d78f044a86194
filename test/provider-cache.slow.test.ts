/** Sandboxed Stacks share the provider cache of their worker within their trust domain. Real workers, engines and providers. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { RunSpec, StackSpec } from '../src/api/index.ts'
import { detectEngines } from '../src/execution/engine/index.ts'
import {
  maliciousOutput,
  maliciousProvider,
  platform,
  skipWithoutTimeProvider,
  timeProvider,
  timeVersion,
  writeMirror,
} from '../src/execution/engine/terraform/provider-mirror.testing.ts'
import { probeIsolation, resolveRevision } from '../src/execution/workspace/index.ts'
import { changesBy, lockedProvider, overwritingFiles, providerStack } from './support/provider-stack.ts'
import { createWorkerHarness } from './support/worker-harness.ts'

const harness = createWorkerHarness()
const { directory, execute, readLog } = harness
const sandbox = await probeIsolation('Sandbox')
const engines = await detectEngines()

for (const engine of ['terraform', 'opentofu'] as const) {
  const skip =
    skipWithoutTimeProvider ||
    (!sandbox.available && sandbox.reason) ||
    (!engines[engine]?.found && `${engine === 'terraform' ? 'Terraform' : 'OpenTofu'} was not found`) ||
    false
  const locked = lockedProvider(engine)
  const registry = engine === 'terraform' ? 'registry.terraform.io' : 'registry.opentofu.org'
  const cacheDir = join(directory, `cache-${engine}`)
  const sources = join(directory, 'sources')

  type Options = Partial<RunSpec> & { cacheDir?: string; sandboxBinds?: string[] }

  /** Executes a Run of a new Stack of the same namespace. With `mirror` its own configuration selects one. */
  async function run(t: TestContext, mirror: Buffer | undefined, files: Record<string, string> = {}, options: Options = {}) {
    const { cacheDir: cache = cacheDir, sandboxBinds = [], ...spec } = options
    mkdirSync(sources, { recursive: true })
    const stack: Partial<StackSpec> = {
      ...providerStack(join(sources, `${engine}-${Math.random().toString(36).slice(2)}`), engine, mirror, files),
      isolation: { level: 'Sandbox', network: 'None' },
      timeout: '120s',
    }
    const access = { allowPaths: [sources], cacheDir: cache, signal: AbortSignal.timeout(10_000) }
    const revision = await resolveRevision(stack.source as StackSpec['source'], access)
    const result = await execute(t, { stack, revision, ...spec }, { sandboxBinds, allowPaths: [sources], cacheDir: cache })
    return { ...result.run, log: await readLog(result.run) }
  }

  test(`${engine}: a Stack executes no provider that another Stack of its namespace placed in the cache`, { skip }, async t => {
    const attacker = await run(t, maliciousProvider())
    match(attacker.status?.message ?? '', new RegExp(maliciousOutput), 'the attacker itself executes it')
    match(attacker.log, /cached provider registry/)
    for (const files of [{}, locked]) {
      const victim = await run(t, timeProvider(), files)
      equal(victim.status?.phase, 'Succeeded', victim.log)
      ok(!victim.log.includes(maliciousOutput), victim.log)
    }
  })

  test(`${engine}: a Stack cannot change the providers in the cache`, { skip }, async t => {
    const first = await run(t, timeProvider(), locked)
    equal(first.status?.phase, 'Succeeded', `the first one downloads the provider: ${first.log}`)
    const overwriter = await run(t, timeProvider(), { ...locked, ...overwritingFiles(cacheDir) })
    equal(overwriter.status?.phase, 'Succeeded', overwriter.log)
    match(overwriter.log, /wrote own/)
    match(overwriter.log, /found .*\/content\/namespace-apps\/registry/)
    deepEqual(changesBy(overwriter.log, cacheDir), [])
    const next = await run(t, timeProvider(), locked)
    equal(next.status?.phase, 'Succeeded', next.log)
    ok(!next.log.includes('cached provider'), next.log)
  })

  test(`${engine}: sandboxed Stacks of one Tenant use what the worker downloaded for one of them, those of another do not`, {
    skip,
  }, async t => {
    const mirror = join(directory, `mirror-${engine}`)
    const cli = join(mirror, 'cli.tfrc')
    mkdirSync(mirror)
    writeFileSync(cli, writeMirror(mirror, timeProvider()))
    // The worker runs in this process.
    const before = process.env.TF_CLI_CONFIG_FILE
    process.env.TF_CLI_CONFIG_FILE = cli
    t.after(() => {
      if (before === undefined) delete process.env.TF_CLI_CONFIG_FILE
      else process.env.TF_CLI_CONFIG_FILE = before
    })
    const options = { cacheDir: join(directory, `cache-shared-${engine}`), sandboxBinds: [mirror] }
    const tenant = { name: 'a', uid: 'uid-a' }
    // The Run that downloads is the attacker's: its files select other providers wherever engines look for that.
    const program = maliciousProvider().toString()
    const evil = {
      '.terraformrc': 'provider_installation {\n  filesystem_mirror { path = "evil" }\n}\n',
      'x_override.tf.json': JSON.stringify({ terraform: { required_providers: { wanted: { source: 'evil/evil' } } } }),
      [`.terraform.d/plugins/${registry}/hashicorp/time/${timeVersion}/${platform}/terraform-provider-time_v${timeVersion}_x5`]: program,
      [`.terraform/providers/${registry}/hashicorp/time/${timeVersion}/${platform}/terraform-provider-time_v${timeVersion}_x5`]: program,
    }
    const first = await run(t, undefined, evil, { ...options, tenant })
    match(first.log, new RegExp(`cached provider ${registry}/hashicorp/time/.* for the Runs of its trust domain`))
    for (const files of [{}, locked]) {
      const second = await run(t, undefined, files, { ...options, tenant })
      equal(second.status?.phase, 'Succeeded', second.log)
      ok(!second.log.includes('cached provider'), second.log)
      const { seconds, downloadSeconds, ...counts } = second.status?.providers ?? {}
      deepEqual(counts, { cached: 1, waited: 0, downloaded: 0, downloadedBytes: 0 })
      ok(seconds! > 0 && downloadSeconds! > 0, `${seconds} ${downloadSeconds}`)
    }
    const other = await run(t, undefined, {}, { ...options, tenant: { name: 'a', uid: 'uid-b' } })
    equal(other.status?.phase, 'Succeeded', other.log)
    match(other.log, /cached provider/)
  })
}
