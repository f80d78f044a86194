import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { RootDirectory, UnexpectedFileError } from '../../../kubernetes/util/index.ts'
import { createEngineHarness, engineTestEnv } from '../engine-harness.testing.ts'
import { opentofuFlavor, terraformFlavor } from './flavor.ts'
import * as cache from './plugin-cache.ts'
import { createTerraformEngine } from './terraform.ts'

const pluginDirectory = (path: string) => ({ files: new RootDirectory(dirname(path)), path: basename(path) })
const preparePluginCache = (shared: string, own: string) => cache.preparePluginCache(pluginDirectory(shared), pluginDirectory(own))
const sharePlugins = (shared: string, own: string) => cache.sharePlugins(pluginDirectory(shared), pluginDirectory(own))
const provider = 'registry.example/acme/widget/1.0.0/linux_amd64'

function directories(t: TestContext) {
  const root = mkdtempSync(join(tmpdir(), 'oarlock-plugins-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  return { shared: join(root, 'shared'), own: (run: number) => join(root, `run-${run}`) }
}
const download = (cache: string) => {
  mkdirSync(join(cache, provider), { recursive: true })
  writeFileSync(join(cache, provider, 'plugin'), 'binary')
}

test('a Run finds the providers that an earlier Run downloaded', async t => {
  const { shared, own } = directories(t)
  await preparePluginCache(shared, own(1))
  download(own(1))
  assert.deepEqual(await sharePlugins(shared, own(1)), [provider])
  assert.ok(existsSync(join(own(1), provider, 'plugin')), 'the first Run still has its provider')
  await preparePluginCache(shared, own(2))
  assert.equal(readlinkSync(join(own(2), provider)), join(shared, provider))
  assert.deepEqual(await sharePlugins(shared, own(2)), [])
})

test('a plugin directory that a Run replaced by a symlink is not followed: nothing is moved from there', async t => {
  const { shared, own } = directories(t)
  await preparePluginCache(shared, own(1))
  download(own(2))
  rmSync(own(1), { recursive: true })
  symlinkSync(own(2), own(1))
  await assert.rejects(sharePlugins(shared, own(1)), UnexpectedFileError)
  assert.ok(existsSync(join(own(2), provider, 'plugin')))
  assert.deepEqual(readdirSync(shared), [])
})

test('two Runs that download the same provider concurrently both keep a complete copy', async t => {
  const { shared, own } = directories(t)
  await Promise.all([preparePluginCache(shared, own(1)), preparePluginCache(shared, own(2))])
  download(own(1))
  download(own(2))
  const added = await Promise.all([sharePlugins(shared, own(1)), sharePlugins(shared, own(2))])
  assert.equal(added.flat().length, 1)
  for (const cache of [shared, own(1), own(2)]) assert.deepEqual(readdirSync(join(cache, provider)), ['plugin'])
})

const mirror = join(process.env.OARLOCK_BUILD_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'oarlock'), 'mirror')
const hasMirror = existsSync(join(mirror, '.time-0.14.2'))
for (const flavor of [terraformFlavor, opentofuFlavor]) {
  const detection = await createTerraformEngine(flavor, engineTestEnv()).detect(engineTestEnv())
  const skip = !hasMirror
    ? `${mirror} is missing: run scripts/build-provider-time.sh`
    : !detection.found && `${flavor.title} was not found: ${detection.reasons.join(', ')}`
  test(`${flavor.name}: two concurrent Runs with a real provider share one cache`, { skip }, async t => {
    const files = {
      'main.tf': 'terraform {\n  required_providers {\n    time = { source = "hashicorp/time" }\n  }\n}\nresource "time_static" "now" {}\n',
    }
    const harness = await createEngineHarness(t, files)
    const config = join(harness.root, 'cli.tfrc')
    writeFileSync(config, `provider_installation {\n  filesystem_mirror { path = "${mirror}" }\n}\n`)
    const engine = createTerraformEngine(flavor, { ...engineTestEnv(), TF_CLI_CONFIG_FILE: config })
    const contexts = [harness.context, await harness.nextRun()]
    const results = await Promise.all(
      contexts.map(async context => {
        await engine.prepare(context)
        return await engine.apply(context, await engine.plan(context))
      }),
    )
    assert.deepEqual(
      results.map(({ resources }) => resources),
      [1, 1],
    )
    const cached = execFileSync('find', ['-L', join(harness.root, 'cache'), '-name', 'terraform-provider-time*'])
      .toString()
      .trim()
      .split('\n')
    assert.equal(cached.length, 1, cached.join('\n'))
  })
}
