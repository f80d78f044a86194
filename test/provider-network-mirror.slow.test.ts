/** Runs of a worker whose CLI configuration names a network mirror: no registry is asked. Real engines and providers. */
import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { EngineContext } from '../src/execution/engine/engine.ts'
import { createEngineHarness, engineTestEnv } from '../src/execution/engine/engine-harness.testing.ts'
import { opentofuFlavor, terraformFlavor } from '../src/execution/engine/terraform/flavor.ts'
import {
  builtProvider,
  checksumOf,
  lockFile,
  packageChecksum,
  skipWithoutTimeProvider,
  timeConfiguration,
  timeProvider,
  timeVersion,
} from '../src/execution/engine/terraform/provider-mirror.testing.ts'
import { startRegistry } from '../src/execution/engine/terraform/provider-registry.testing.ts'
import { createTerraformEngine } from '../src/execution/engine/terraform/terraform.ts'
import { makeCertificate } from './support/make-certificate.ts'

for (const flavor of [terraformFlavor, opentofuFlavor]) {
  const detection = await createTerraformEngine(flavor, engineTestEnv()).detect(engineTestEnv())
  const skip = skipWithoutTimeProvider || (!detection.found && `${flavor.title} was not found: ${detection.reasons.join(', ')}`)
  const registry = flavor.name === 'terraform' ? 'registry.terraform.io' : 'registry.opentofu.org'

  for (const { name, lock, downloads } of [
    { name: 'without a lock file', lock: {}, downloads: 1 },
    { name: 'with a lock file', lock: { '.terraform.lock.hcl': lockFile([checksumOf(timeProvider())], [registry]) }, downloads: 1 },
    {
      name: 'with a lock file that has another checksum, and fail,',
      lock: { '.terraform.lock.hcl': lockFile([packageChecksum({ ...builtProvider('time'), version: '0.0.1' })], [registry]) },
      downloads: undefined,
    },
  ])
    test(`${flavor.name}: Runs of many Stacks ${name} use a network mirror`, { skip }, async t => {
      const harness = await createEngineHarness(t, { 'main.tf': timeConfiguration, ...lock })
      const { path, key, cert } = makeCertificate(harness.root)
      const mirror = await startRegistry({ certificate: { key, cert } })
      t.after(mirror.close)
      const cli = join(harness.root, 'worker.tfrc')
      writeFileSync(cli, mirror.mirrorConfiguration)
      const env = { SSL_CERT_FILE: path }
      const engine = createTerraformEngine(flavor, { ...engineTestEnv(), ...env, TF_CLI_CONFIG_FILE: cli })
      const contexts: EngineContext[] = []
      for (const uid of ['a', 'b', 'c', 'd']) contexts.push(await harness.nextRun({ env, stack: { namespace: 'default', name: uid, uid } }))
      const apply = async (context: EngineContext) => {
        await engine.prepare(context)
        return (await engine.apply(context, await engine.plan(context))).resources
      }
      if (downloads === undefined) {
        for (const context of contexts) await rejects(apply(context), /checksum/)
        ok(!harness.log.some(line => line.startsWith('cached provider')))
        return
      }
      deepEqual(await Promise.all(contexts.map(apply)), [1, 1, 1, 1])
      deepEqual(mirror.downloads(), { [`time ${timeVersion}`]: downloads })
      match(harness.log.join('\n'), /waiting for the download by Run/)
      equal(new Set(contexts.map(({ directory }) => readFileSync(join(directory, '.terraform.lock.hcl'), 'utf8'))).size, 1)
    })
}
