/** Runs of several Stacks with the CLI configuration of their worker, which selects a registry or a mirror. Real engines and providers. */
import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, globSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { EngineContext } from '../engine.ts'
import { createEngineHarness, engineTestEnv } from '../engine-harness.testing.ts'
import { type Flavor, opentofuFlavor, terraformFlavor } from './flavor.ts'
import {
  builtProvider,
  checksumOf,
  lockFile,
  maliciousOutput,
  maliciousProvider,
  platform,
  skipWithoutTimeProvider,
  timeConfiguration,
  timeProvider,
  timeVersion,
  writeMirror,
  zipChecksumOf,
} from './provider-mirror.testing.ts'
import { startRegistry, type TestRegistryOptions, testRegistryHost } from './provider-registry.testing.ts'
import { createTerraformEngine } from './terraform.ts'

const skipOf = async (flavor: Flavor) => {
  const detection = await createTerraformEngine(flavor, engineTestEnv()).detect(engineTestEnv())
  return skipWithoutTimeProvider || (!detection.found && `${flavor.title} was not found: ${detection.reasons.join(', ')}`)
}
const skip = await skipOf(opentofuFlavor)

const key = (version = timeVersion) => `${testRegistryHost}/hashicorp/time/${version}/${platform}`
const requiring = (constraint: string) => timeConfiguration.replace('"hashicorp/time"', `"hashicorp/time", version = "${constraint}"`)
const twoProviders = `
  terraform {
    required_providers {
      time  = { source = "hashicorp/time" }
      local = { source = "hashicorp/local" }
    }
  }
  resource "time_static" "now" {}`

/** Runs of different Stacks, and a worker whose CLI configuration selects a registry. */
async function setUp(t: TestContext, files: Record<string, string> = {}, options: TestRegistryOptions = {}) {
  const registry = await startRegistry(options)
  t.after(registry.close)
  const harness = await createEngineHarness(t, { 'main.tf': timeConfiguration, ...files })
  const path = join(harness.root, 'worker.tfrc')
  writeFileSync(path, registry.configuration)
  const engine = createTerraformEngine(opentofuFlavor, { ...engineTestEnv(), TF_CLI_CONFIG_FILE: path })
  let stacks = 0
  const nextStack = async (overrides: Partial<EngineContext> = {}) => {
    const uid = `stack-${++stacks}`
    return await harness.nextRun({ stack: { namespace: 'default', name: uid, uid }, ...overrides })
  }
  const apply = async (context: EngineContext) => {
    await engine.prepare(context)
    return (await engine.apply(context, await engine.plan(context))).resources
  }
  const isLinked = ({ scratch }: EngineContext, version?: string) =>
    lstatSync(join(scratch, 'plugins', key(version)), { throwIfNoEntry: false })?.isSymbolicLink() === true
  return { registry, harness, engine, nextStack, apply, isLinked }
}

for (const { name, files } of [
  { name: 'without lock files', files: { 'main.tf': twoProviders } },
  {
    name: 'with lock files',
    files: { 'main.tf': timeConfiguration, '.terraform.lock.hcl': lockFile([checksumOf(timeProvider())], [testRegistryHost]) },
  },
  {
    name: 'with lock files that have checksums of archives only',
    files: { 'main.tf': timeConfiguration, '.terraform.lock.hcl': lockFile([zipChecksumOf(timeProvider())], [testRegistryHost]) },
  },
])
  test(`Runs of many Stacks ${name} that start on a cold cache download each provider once`, { skip }, async t => {
    const { registry, harness, nextStack, apply, isLinked } = await setUp(t, files, {
      providers: [builtProvider('time'), builtProvider('local')],
    })
    const contexts = []
    for (let index = 0; index < 6; index++) contexts.push(await nextStack())
    const resources = await Promise.all(contexts.map(apply))
    deepEqual(resources, [1, 1, 1, 1, 1, 1])
    deepEqual(registry.downloads(), { [`time ${timeVersion}`]: 1, ...(files['main.tf'] === twoProviders && { 'local 1.4.0': 1 }) })
    ok(contexts.every(context => isLinked(context)))
    match(harness.log.join('\n'), /^provider \S+\/time( \S+)?: waiting for the download by Run default\/app-uid-1-\d+$/m)
    const totals = contexts.map(({ providerUsage }) => providerUsage.total!)
    const providers = files['main.tf'] === twoProviders ? 2 : 1
    deepEqual(
      totals.map(({ cached, waited, downloaded }) => cached + waited + downloaded),
      totals.map(() => providers),
      JSON.stringify(totals),
    )
    equal(
      totals.reduce((sum, { downloaded }) => sum + downloaded, 0),
      providers,
      JSON.stringify(totals),
    )
    ok(
      totals.every(({ downloaded, downloadedBytes }) => downloaded > 0 === downloadedBytes > 100_000),
      JSON.stringify(totals),
    )
    ok(totals.every(({ seconds, downloaded, downloadSeconds }) => seconds > 0 && (downloaded === 0 || downloadSeconds > 0)))
    const locks = contexts.map(({ directory }) => readFileSync(join(directory, '.terraform.lock.hcl'), 'utf8'))
    equal(new Set(locks).size, 1, 'a plan of one is applied by each')
  })

test('a Stack with its own CLI configuration gives others nothing, whatever it downloads', { skip }, async t => {
  const { registry, harness, nextStack, apply, engine } = await setUp(t)
  const attacker = await nextStack({ env: { TF_CLI_CONFIG_FILE: 'cli.tfrc' } })
  await harness.write({ 'cli.tfrc': writeMirror(join(harness.root, 'malicious'), maliciousProvider()) })
  await rejects(apply(attacker), new RegExp(maliciousOutput), 'the attacker itself executes it')
  ok(harness.log.includes(`cached provider ${key()}`))
  equal(await apply(await nextStack()), 1)
  deepEqual(registry.downloads(), { [`time ${timeVersion}`]: 1 })
  await rejects(async () => await engine.plan(attacker), 'its own plugin directory is not changed')
})

test('the files and the variables of a Stack do not change what is downloaded for others', { skip }, async t => {
  const { registry, harness, nextStack, apply } = await setUp(t)
  const mirror = join(harness.root, 'evil')
  writeMirror(mirror, maliciousProvider())
  // Where engines look for packages and settings by default.
  const rc = `provider_installation {\n  filesystem_mirror { path = "${mirror}" }\n}\n`
  const attacker = await nextStack({ env: { TF_CLI_ARGS_plan: '-refresh=false' } })
  const home = join(attacker.directory, '..')
  cpSync(mirror, join(home, '.terraform.d/plugins'), { recursive: true })
  for (const directory of [home, attacker.directory])
    for (const name of ['.terraformrc', '.tofurc']) writeFileSync(join(directory, name), rc)
  writeFileSync(join(attacker.directory, 'evil_override.tf.json'), '{"terraform": {"required_providers": {"wanted": "0.0.1"}}}')
  await apply(attacker).catch(() => {})
  const stored = globSync(join(harness.root, 'cache/content/shared/**/terraform-provider-*'))
  deepEqual([...new Set(stored.map(path => readFileSync(path).equals(timeProvider())))], [true])
  equal(await apply(await nextStack()), 1)
  deepEqual(registry.downloads(), { [`time ${timeVersion}`]: 1 })
})

test('a Stack that vendors its providers, or has a token for the registry, downloads for itself', { skip }, async t => {
  const { registry, harness, nextStack, apply } = await setUp(t)
  const withToken = await nextStack({ env: { TF_TOKEN_registry_opentofu_org: 'secret' } })
  equal(await apply(withToken), 1)
  const vendoring = await nextStack()
  mkdirSync(join(vendoring.directory, 'terraform.d'))
  equal(await apply(vendoring), 1)
  deepEqual(registry.downloads(), { [`time ${timeVersion}`]: 2 })
  equal(harness.log.filter(line => line.includes('for the Runs of its trust domain')).length, 0)
})

test('when the download of a Run fails, one that waits takes over; when it fails again, each continues on its own', { skip }, async t => {
  let failures = 1
  const { registry, harness, nextStack, apply } = await setUp(
    t,
    {},
    {
      beforeDownload: async () => {
        await delay(300)
        return failures-- > 0 ? 'failed' : undefined
      },
    },
  )
  deepEqual(await Promise.all([apply(await nextStack()), apply(await nextStack()), apply(await nextStack())]), [1, 1, 1])
  match(harness.log.join('\n'), /^provider \S+ is not shared: .*404/m)
  // The one that failed has tried again with its own init, or was too late for that.
  ok((registry.downloads()[`time ${timeVersion}`] ?? 0) <= 3)
  equal(harness.log.filter(line => line.includes('for the Runs of its trust domain')).length, 1)
})

test('a Run that is canceled while it downloads is followed by one that waits, and one that is canceled while it waits stops immediately', {
  skip,
}, async t => {
  const started = Promise.withResolvers<void>()
  let isBlocked = true
  const { registry, nextStack, apply, engine, harness } = await setUp(
    t,
    {},
    {
      beforeDownload: async () => {
        started.resolve()
        while (isBlocked) await delay(20)
      },
    },
  )
  const [downloading, waiting] = [new AbortController(), new AbortController()]
  const first = engine.prepare(await nextStack({ signal: downloading.signal }))
  first.catch(() => {})
  await started.promise
  const second = engine.prepare(await nextStack({ signal: waiting.signal }))
  second.catch(() => {})
  const third = apply(await nextStack())
  while (harness.log.filter(line => line.includes('waiting for')).length < 2) await delay(20)
  const beforeMs = performance.now()
  waiting.abort()
  await rejects(second, { name: 'AbortError' })
  ok(performance.now() - beforeMs < 300)
  downloading.abort()
  await rejects(first)
  isBlocked = false
  equal(await third, 1)
  equal(registry.downloads()[`time ${timeVersion}`], 2)
})

test('a registry that takes long to fail is tried once by a Run', { skip }, async t => {
  const options = { providers: [builtProvider('time'), builtProvider('local')], beforeDownload: () => delay(6_000, 'failed') }
  const { harness, nextStack, engine } = await setUp(t, { 'main.tf': twoProviders }, options)
  await rejects(engine.prepare(await nextStack()))
  equal(harness.log.filter(line => line.includes('is not shared')).length, 1, harness.log.join('\n'))
})

test('when the worker of a Run that downloads is killed, a Run of another worker takes over', { skip }, async t => {
  const started = Promise.withResolvers<void>()
  let isBlocked = true
  const beforeDownload = async () => {
    started.resolve()
    while (isBlocked) await delay(20)
  }
  const { registry, nextStack, apply, harness } = await setUp(t, {}, { beforeDownload })
  const here = (file: string) => JSON.stringify(new URL(file, import.meta.url).href)
  const script = `
    import { createEngineHarness, engineTestEnv } from ${here('../engine-harness.testing.ts')}
    import { ContentStore } from ${here('../../workspace/index.ts')}
    import { opentofuFlavor } from ${here('./flavor.ts')}
    import { createTerraformEngine } from ${here('./terraform.ts')}
    const contentStore = new ContentStore({ directory: ${JSON.stringify(join(harness.root, 'cache', 'content'))}, domain: 'shared' })
    const { context } = await createEngineHarness({ after: () => {} }, { 'main.tf': ${JSON.stringify(timeConfiguration)} }, { contentStore })
    const env = { ...engineTestEnv(), TF_CLI_CONFIG_FILE: ${JSON.stringify(join(harness.root, 'worker.tfrc'))} }
    console.log(context.scratch)
    await createTerraformEngine(opentofuFlavor, env).prepare(context)`
  const worker = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => worker.kill('SIGKILL'))
  const [scratch] = await once(worker.stdout, 'data')
  await started.promise
  const waiting = apply(await nextStack())
  while (!harness.log.some(line => line.includes('waiting for the download by Run'))) await delay(20)
  worker.kill('SIGKILL')
  await once(worker, 'exit')
  isBlocked = false
  equal(await waiting, 1)
  equal(registry.downloads()[`time ${timeVersion}`], 2)
  rmSync(join(String(scratch).trim(), '../..'), { recursive: true, force: true, maxRetries: 10 })
})

test('a version that the registry has later is used a minute later, and packages of earlier ones remain for others', { skip }, async t => {
  const { registry, nextStack, engine, isLinked, harness } = await setUp(t)
  await engine.prepare(await nextStack())
  const { program } = builtProvider('time')
  registry.add({ type: 'time', version: '0.15.0', program })
  // As if the minute had passed.
  for (const path of globSync(join(harness.root, 'cache/content/records/*'))) {
    const record = JSON.parse(readFileSync(path, 'utf8'))
    for (const selection of Object.values(record.selections ?? {}) as { atMs: number }[]) selection.atMs -= 61_000
    writeFileSync(path, JSON.stringify(record))
  }
  const later = await Promise.all(
    [nextStack(), nextStack()].map(async each => {
      const context = await each
      await engine.prepare(context)
      return context
    }),
  )
  ok(later.every(context => isLinked(context, '0.15.0')))
  const older = await nextStack()
  writeFileSync(join(older.directory, 'main.tf'), requiring('~> 0.14.0'))
  await engine.prepare(older)
  ok(isLinked(older))
  deepEqual(registry.downloads(), { [`time ${timeVersion}`]: 1, 'time 0.15.0': 1 })
})

test('constraints of local modules are part of the selection', { skip }, async t => {
  const files = {
    'main.tf': 'module "a" { source = "./a" }\nterraform {\n  required_providers {\n    time = { source = "hashicorp/time" }\n  }\n}',
    'a/main.tf': requiring('< 0.15'),
  }
  const { program } = builtProvider('time')
  const { registry, nextStack, engine, isLinked } = await setUp(t, files, {
    providers: [builtProvider('time'), { type: 'time', version: '0.15.0', program }],
  })
  const context = await nextStack()
  await engine.prepare(context)
  ok(isLinked(context))
  deepEqual(registry.downloads(), { [`time ${timeVersion}`]: 1 })
})

for (const flavor of [terraformFlavor, opentofuFlavor])
  for (const { name, isPacked } of [
    { name: 'archives', isPacked: true },
    { name: 'unpacked packages', isPacked: false },
  ])
    test(`${flavor.name}: without a network, Runs use a mirror with ${name} of the worker`, { skip: await skipOf(flavor) }, async t => {
      const directory = mkdtempSync(join(tmpdir(), 'oarlock-test-'))
      t.after(() => rmSync(directory, { recursive: true }))
      const harness = await createEngineHarness(t, { 'main.tf': timeConfiguration })
      const built = join(process.env.OARLOCK_BUILD_CACHE ?? join(process.env.HOME ?? '', '.cache/oarlock'), 'mirror')
      const cli = join(directory, 'cli.tfrc')
      const configuration = isPacked
        ? writeMirror(join(directory, 'mirror'), timeProvider())
        : `provider_installation {\n  filesystem_mirror { path = "${built}" }\n}\n`
      writeFileSync(cli, configuration)
      const engine = createTerraformEngine(flavor, { ...engineTestEnv(), TF_CLI_CONFIG_FILE: cli, HTTPS_PROXY: 'http://127.0.0.1:1' })
      const contexts = [harness.context]
      for (const uid of ['b', 'c', 'd']) contexts.push(await harness.nextRun({ stack: { namespace: 'default', name: uid, uid } }))
      await Promise.all(contexts.map(context => engine.prepare(context)))
      const cached = harness.log.filter(line => line.startsWith('cached provider'))
      equal(cached.length, isPacked ? 1 : 0, harness.log.join('\n'))
      const stored = globSync(join(harness.root, 'cache/content/shared/**/terraform-provider-*'))
      equal(stored.length, isPacked ? 1 : 0)
      ok(contexts.every(({ directory }) => existsSync(join(directory, '.terraform/providers'))))
    })
