/** OpenTofu with a registry, which unlike a mirror reports checksums of archives. Only its own registry may serve packages without a signature. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createEngineHarness, engineTestEnv } from '../engine-harness.testing.ts'
import { readDependencyLock } from './dependency-lock.ts'
import { opentofuFlavor } from './flavor.ts'
import {
  checksumOf,
  lockFile,
  skipWithoutTimeProvider,
  timeConfiguration,
  timeProvider,
  timeVersion,
  zipChecksumOf,
} from './provider-mirror.testing.ts'
import { testRegistryHost as host, startRegistry } from './provider-registry.testing.ts'
import { createTerraformEngine } from './terraform.ts'

const engine = createTerraformEngine(opentofuFlavor, engineTestEnv())
const detection = await engine.detect(engineTestEnv())
const skip = skipWithoutTimeProvider || (!detection.found && `OpenTofu was not found: ${detection.reasons.join(', ')}`)
const otherPlatform = `zh:${'0'.repeat(64)}`

async function createHarness(t: TestContext, files: Record<string, string> = {}) {
  const { configuration, downloads, close } = await startRegistry()
  t.after(close)
  const all = { 'main.tf': timeConfiguration, 'cli.tfrc': configuration, ...files }
  return {
    harness: await createEngineHarness(t, all, { env: { TF_CLI_CONFIG_FILE: 'cli.tfrc' } }),
    downloads: () => downloads()[`time ${timeVersion}`],
  }
}
const otherStack = (uid: string) => ({ stack: { namespace: 'default', name: uid, uid } })

for (const { name, lock, hashes } of [
  { name: 'without a lock file', lock: {}, hashes: [checksumOf(timeProvider())] },
  {
    name: 'with a lock file that has not all checksums of the registry',
    lock: { '.terraform.lock.hcl': lockFile([checksumOf(timeProvider())], [host]) },
    hashes: [checksumOf(timeProvider())],
  },
])
  test(`${name}, a plan of the Run that downloaded a provider is applied by one that did not`, { skip }, async t => {
    const { harness, downloads } = await createHarness(t, lock)
    const { context } = harness
    await engine.prepare(context)
    const written = readFileSync(join(context.directory, '.terraform.lock.hcl'), 'utf8')
    assert.deepEqual(readDependencyLock(written).get(`${host}/hashicorp/time`)?.hashes, hashes)
    const bytes = readFileSync((await engine.plan(context)).file ?? '')

    const later = await harness.nextRun()
    await engine.prepare(later)
    const file = join(later.inputs, 'approved.tfplan')
    await later.files.write(file, bytes)
    assert.equal((await engine.apply(later, await engine.readPlan(later, file))).resources, 1)
    assert.equal(downloads(), 1)
  })

for (const { name, hashes, expected } of [
  {
    name: 'with the checksum of the package is downloaded once for many Stacks',
    hashes: [checksumOf(timeProvider()), otherPlatform],
    expected: 1,
  },
  {
    name: 'with checksums of archives only is downloaded by each Run',
    hashes: [zipChecksumOf(timeProvider()), otherPlatform],
    expected: 3,
  },
])
  test(`a provider that is in the lock file ${name}`, { skip }, async t => {
    const { harness, downloads } = await createHarness(t, { '.terraform.lock.hcl': lockFile(hashes, [host]) })
    for (const context of [harness.context, await harness.nextRun(otherStack('b')), await harness.nextRun(otherStack('c'))]) {
      await engine.prepare(context)
      assert.equal((await engine.apply(context, await engine.plan(context))).resources, 1)
    }
    assert.equal(downloads(), expected)
  })
