import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  globSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { EngineContext } from '../engine.ts'
import { createEngineHarness, type EngineHarness, engineTestEnv } from '../engine-harness.testing.ts'
import { opentofuFlavor, terraformFlavor } from './flavor.ts'
import { keepProviders, linkProviders } from './plugin-cache.ts'
import {
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
import { createTerraformEngine } from './terraform.ts'

const widget = 'registry.example/acme/widget/1.0.0/linux_amd64'
const pluginsOf = ({ scratch }: EngineContext) => join(scratch, 'plugins')
const stack = (uid: string): Pick<EngineContext, 'stack'> => ({ stack: { namespace: 'default', name: uid, uid } })

function download(context: EngineContext, content = 'binary'): void {
  const directory = join(pluginsOf(context), widget)
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'plugin'), content)
}
const link = (context: EngineContext) => linkProviders(context, pluginsOf(context), 'linux_amd64')
async function downloadAndKeep(context: EngineContext, content?: string): Promise<void> {
  const links = await link(context)
  download(context, content)
  await keepProviders(context, pluginsOf(context), links)
}
const linkedTo = (context: EngineContext): string => readFileSync(join(pluginsOf(context), widget, 'plugin'), 'utf8')
const hasLink = (context: EngineContext): boolean => existsSync(join(pluginsOf(context), widget))

test('counts what a Run gets from the cache, and what its engine has downloaded', async t => {
  const harness = await createEngineHarness(t, {}, stack('a'))
  const none = { cached: 0, waited: 0, downloaded: 0, downloadedBytes: 0, downloadSeconds: 0, seconds: 0 }
  await downloadAndKeep(harness.context, 'of a')
  assert.deepEqual(harness.context.providerUsage.total, { ...none, downloaded: 1, downloadedBytes: 4 })
  const next = await harness.nextRun(stack('a'))
  await keepProviders(next, pluginsOf(next), await link(next))
  assert.deepEqual(next.providerUsage.total, { ...none, cached: 1 })
})

test('without a lock file, a Run gets what an earlier Run of its Stack downloaded, and nothing of other Stacks', async t => {
  const harness = await createEngineHarness(t, {}, stack('a'))
  await downloadAndKeep(harness.context, 'of a')
  const b = await harness.nextRun(stack('b'))
  await link(b)
  assert.ok(!hasLink(b))
  download(b, 'of b')
  await keepProviders(b, pluginsOf(b), { locked: new Map(), linked: new Map() })
  for (const uid of ['a', 'b']) {
    const next = await harness.nextRun(stack(uid))
    await link(next)
    assert.equal(linkedTo(next), `of ${uid}`)
    assert.ok(lstatSync(join(pluginsOf(next), widget)).isSymbolicLink())
  }
  const elsewhere = await harness.nextRun(stack('a'))
  await linkProviders(elsewhere, pluginsOf(elsewhere), 'linux_arm64')
  assert.ok(!hasLink(elsewhere), 'a package of another platform is not linked')
})

test('a lock file selects the package by its checksum, and no other', async t => {
  const harness = await createEngineHarness(t, {}, stack('a'))
  await downloadAndKeep(harness.context, 'of a')
  await downloadAndKeep(await harness.nextRun(stack('b')), 'of b')
  const checksum = 'h1:vKPpa39oNrPu22HkO7PBRX8I3f6Xae7rb9Zk2Aw7Ymw='
  const lock = (hashes: string[]) =>
    `provider "registry.example/acme/widget" {\n  version = "1.0.0"\n  hashes = [\n${hashes.map(hash => `    "${hash}",\n`).join('')}  ]\n}\n`
  const found = globSync(join(harness.root, 'cache/content/shared', widget, 'h1-*/plugin')).find(
    path => readFileSync(path, 'utf8') === 'of b',
  )
  const ofB = `h1:${Buffer.from(dirname(found ?? '').split('/h1-')[1] ?? '', 'hex').toString('base64')}`
  for (const { hashes, expected } of [
    { hashes: [checksum, 'zh:0000', ofB], expected: 'of b' },
    { hashes: [checksum], expected: undefined },
    { hashes: ['zh:0000'], expected: undefined },
    { hashes: [], expected: 'of a' },
  ]) {
    const run = await harness.nextRun(stack('a'))
    writeFileSync(join(run.directory, '.terraform.lock.hcl'), lock(hashes))
    await link(run)
    assert.equal(hasLink(run) ? linkedTo(run) : undefined, expected, hashes.join())
  }
})

test('a plugin directory that a Run replaced by a symlink is not followed, and the Run continues', async t => {
  const harness = await createEngineHarness(t, {})
  const { context } = harness
  const links = await link(context)
  const elsewhere = join(harness.root, 'elsewhere')
  download(context)
  renameSync(pluginsOf(context), elsewhere)
  symlinkSync(elsewhere, pluginsOf(context))
  await keepProviders(context, pluginsOf(context), links)
  assert.match(harness.log.at(-1) ?? '', /^the provider cache is not updated: .*plugins is not a directory/)
  assert.deepEqual(globSync(join(harness.root, 'cache/content/shared/*')), [])
})

test('a package with a symlink is not cached', async t => {
  const harness = await createEngineHarness(t, {})
  const { context } = harness
  const links = await link(context)
  download(context)
  symlinkSync('/etc/passwd', join(pluginsOf(context), widget, 'readme'))
  await keepProviders(context, pluginsOf(context), links)
  assert.match(harness.log.at(-1) ?? '', /readme is not a regular file/)
  assert.deepEqual(globSync(join(harness.root, 'cache/content/shared/**/h1-*')), [])
})

test('packages of a Run that are larger than what its disk limit allows, such as files with holes, are not copied', async t => {
  const harness = await createEngineHarness(t, {}, { ...stack('a'), spec: { engine: 'opentofu', resources: { disk: '16Mi' } } })
  const { context } = harness
  const links = await link(context)
  for (const name of ['widget', 'wodget', 'xylophone']) {
    const directory = join(pluginsOf(context), widget.replace('widget', name))
    mkdirSync(directory, { recursive: true })
    writeFileSync(join(directory, 'plugin'), name)
    truncateSync(join(directory, 'plugin'), 15 * 2 ** 20)
  }
  await keepProviders(context, pluginsOf(context), links)
  assert.match(harness.log.join('\n'), /the provider cache is not updated: .*xylophone.* at most 2097152 are allowed/)
  assert.equal(globSync(join(harness.root, 'cache/content/shared/**/plugin')).length, 2)
})

test('a package that takes longer to copy than the limit is not cached, and the Run continues', async t => {
  const harness = await createEngineHarness(t, {})
  const { context } = harness
  const links = await link(context)
  download(context)
  // One file: reading it is not one step.
  truncateSync(join(pluginsOf(context), widget, 'plugin'), 4 * 1024 ** 3 - 1)
  const startedMs = performance.now()
  await keepProviders(context, pluginsOf(context), links, { timeoutMs: 200 })
  assert.ok(performance.now() - startedMs < 3_000, `${performance.now() - startedMs} ms`)
  assert.match(harness.log.at(-1) ?? '', /^the provider cache is not updated: it took more than 0\.2 s$/)
  assert.deepEqual(globSync(join(harness.root, 'cache/content/shared/**/h1-*')), [])
})

test('the lock file of a Run has the same checksums whether it downloaded a provider or not', async t => {
  const harness = await createEngineHarness(t, {})
  const { context } = harness
  const links = await link(context)
  download(context)
  const key = 'h1:gUX6QBDXbHTbc2IvDIxCT/0Du6nGcPuZ3Ps4QxMWS4c='
  const lock = (hashes: string[]) =>
    `# of the engine\nprovider "registry.example/acme/widget" {\n  version = "1.0.0"\n  hashes = [\n${hashes.map(hash => `    "${hash}",\n`).join('')}  ]\n}\n`
  const path = join(context.directory, '.terraform.lock.hcl')
  const checksum = await context.contentStore.add('any', context.files, join(pluginsOf(context), widget))
  writeFileSync(path, lock([key, checksum, 'zh:0000']))
  await keepProviders(context, pluginsOf(context), links)
  assert.equal(readFileSync(path, 'utf8'), lock([checksum]))
})

for (const flavor of [terraformFlavor, opentofuFlavor]) {
  const detection = await createTerraformEngine(flavor, engineTestEnv()).detect(engineTestEnv())
  const skip = skipWithoutTimeProvider || (!detection.found && `${flavor.title} was not found: ${detection.reasons.join(', ')}`)
  const engine = createTerraformEngine(flavor, engineTestEnv())
  const registry = flavor.name === 'terraform' ? 'registry.terraform.io' : 'registry.opentofu.org'
  const key = `${registry}/hashicorp/time/${timeVersion}/${platform}`
  const lock = (hashes: string[]) => ({ '.terraform.lock.hcl': lockFile(hashes, [registry]) })

  /** Stacks whose files select a mirror with the real provider. */
  async function createHarness(t: TestContext, files: Record<string, string> = {}): Promise<EngineHarness> {
    const harness = await createEngineHarness(t, { 'main.tf': timeConfiguration, ...files }, { env: { TF_CLI_CONFIG_FILE: 'cli.tfrc' } })
    await harness.write({ 'cli.tfrc': writeMirror(join(harness.root, 'mirror'), timeProvider()) })
    return harness
  }
  async function applies(context: EngineContext): Promise<void> {
    await engine.prepare(context)
    assert.equal((await engine.apply(context, await engine.plan(context))).resources, 1)
  }
  const isLinked = (context: EngineContext) => lstatSync(join(pluginsOf(context), key)).isSymbolicLink()
  const stored = ({ root }: EngineHarness) => globSync(join(root, 'cache/content/shared', key, 'h1-*/terraform-provider-time*'))

  test(`${flavor.name}: Stacks whose lock files name a provider download it once`, { skip }, async t => {
    const harness = await createHarness(t, lock([checksumOf(timeProvider())]))
    await applies(harness.context)
    assert.ok(!isLinked(harness.context))
    for (const uid of ['b', 'c']) {
      const next = await harness.nextRun(stack(uid))
      await applies(next)
      assert.ok(isLinked(next))
    }
    assert.deepEqual(
      harness.log.filter(line => line.startsWith('cached provider')),
      [`cached provider ${key}`],
    )
  })

  test(`${flavor.name}: a Stack without a lock file downloads a provider once`, { skip }, async t => {
    const harness = await createHarness(t)
    const { context } = harness
    await applies(context)
    const next = await harness.nextRun()
    await applies(next)
    assert.deepEqual([isLinked(context), isLinked(next), stored(harness).length], [false, true, 1])
  })

  test(`${flavor.name}: a provider that another Stack placed in the cache under the same name is not executed`, { skip }, async t => {
    const harness = await createHarness(t)
    const honest = readFileSync(join(harness.context.directory, 'cli.tfrc'), 'utf8')
    const attacker = await harness.nextRun(stack('attacker'))
    await harness.write({ 'cli.tfrc': writeMirror(join(harness.root, 'malicious'), maliciousProvider()) })
    await assert.rejects(applies(attacker), new RegExp(maliciousOutput), 'the attacker itself executes it')
    assert.ok(harness.log.includes(`cached provider ${key}`))
    await harness.write({ 'cli.tfrc': honest })
    await applies(await harness.nextRun(stack('b')))
    await harness.write(lock([checksumOf(timeProvider())]))
    await applies(await harness.nextRun(stack('c')))
  })

  test(`${flavor.name}: a lock file without the checksum of the package works, and the log names what to add`, { skip }, async t => {
    const harness = await createHarness(t, lock([zipChecksumOf(timeProvider())]))
    await applies(harness.context)
    await applies(await harness.nextRun(stack('b')))
    assert.deepEqual(stored(harness), [])
    assert.match(
      harness.log.join('\n'),
      /^provider \S+ is not cached: \.terraform\.lock\.hcl has no h1 checksum of it; add it with "providers lock/m,
    )
  })

  test(`${flavor.name}: two concurrent Runs with a real provider share one copy`, { skip }, async t => {
    const harness = await createHarness(t, lock([checksumOf(timeProvider())]))
    const contexts = [harness.context, await harness.nextRun(stack('b'))]
    await Promise.all(contexts.map(applies))
    assert.equal(stored(harness).length, 1)
  })

  test(`${flavor.name}: a damaged package is replaced`, { skip }, async t => {
    const harness = await createHarness(t, lock([checksumOf(timeProvider())]))
    await applies(harness.context)
    const [path = ''] = stored(harness)
    const damage = () => {
      chmodSync(path, 0o755)
      writeFileSync(path, 'damaged')
    }
    damage()
    await applies(await harness.nextRun())
    assert.equal(readFileSync(path).length, timeProvider().length)

    damage()
    const { size, ino, mtimeNs, ctimeNs } = lstatSync(path, { bigint: true })
    const seal = `${dirname(path)}.seal`
    const { bootId, files } = JSON.parse(readFileSync(seal, 'utf8'))
    writeFileSync(seal, JSON.stringify({ bootId, files: [[files[0][0], ...[size, ino, mtimeNs, ctimeNs].map(String)]] }))
    const unreadable = await harness.nextRun()
    const take: EngineContext['contentStore']['take'] = async (key, checksum, options) => {
      if (options?.isThorough) throw new Error('EIO: i/o error, read')
      return await unreadable.contentStore.take(key, checksum, options)
    }
    const contentStore = new Proxy(unreadable.contentStore, {
      get: (store, name) => {
        const value: unknown = name === 'take' ? take : Reflect.get(store, name)
        return typeof value === 'function' ? value.bind(store) : value
      },
    })
    await assert.rejects(applies({ ...unreadable, contentStore }), { reason: 'InitFailed' })
    assert.match(harness.log.join('\n'), /^the provider cache was not checked for damage: EIO: i\/o error, read$/m)
    await assert.rejects(applies(await harness.nextRun()), 'what the file system does not show is found by the engine')
    assert.match(harness.log.join('\n'), /^removed provider \S+ from the cache: its content has changed$/m)
    await applies(await harness.nextRun())
  })
}
