/** Runs that start together on a machine whose cache has no provider: how often each is downloaded, and how long they take. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { runResource, type StackSpec, stackResource, workerPoolResource } from '../src/api/index.ts'
import { engineTestEnv } from '../src/execution/engine/engine-harness.testing.ts'
import { builtProvider, lockFileOf, packageOf, skipWithoutTimeProvider } from '../src/execution/engine/terraform/provider-mirror.testing.ts'
import { startRegistry, type TestRegistry, testRegistryHost } from '../src/execution/engine/terraform/provider-registry.testing.ts'
import { probeIsolation } from '../src/execution/workspace/index.ts'
import { isConditionTrue } from '../src/kubernetes/object/index.ts'
import { up } from './oarlock-up.ts'
import type { Bench } from './run.ts'

const count = 20
/** Of all connections to the registry together, as the uplink of a host: 200 Mbit/s. */
const bytesPerSecond = 25_000_000
const timeoutMs = 300_000
const providers = [builtProvider('time'), builtProvider('local')]

const configuration = `terraform {
  required_providers {
    time  = { source = "hashicorp/time", version = "~> 0.9" }
    local = { source = "hashicorp/local", version = "~> 1.4" }
  }
}
resource "time_static" "now" {}
resource "local_file" "now" {
  filename = "\${path.module}/now"
  content  = time_static.now.rfc3339
}
`

type Variant = { name: string; files: (registry: TestRegistry) => Record<string, string>; spec?: Partial<StackSpec> }

const sandboxed = { isolation: { level: 'Sandbox', network: 'Host' } } as const
const locked = { '.terraform.lock.hcl': lockFileOf(providers, testRegistryHost) }
const variants: Variant[] = [
  { name: 'shared, no lock file', files: () => ({}) },
  { name: 'shared, lock file', files: () => locked },
  { name: 'shared, no lock file, sandboxes', files: () => ({}), spec: sandboxed },
  {
    name: 'separate: each Stack has its own CLI configuration',
    files: ({ configuration }) => ({ 'cli.tfrc': configuration }),
    spec: { env: [{ name: 'TF_CLI_CONFIG_FILE', value: 'cli.tfrc' }] },
  },
]

export async function bench(): Promise<Bench> {
  if (skipWithoutTimeProvider) throw new Error(skipWithoutTimeProvider)
  const hasSandbox = (await probeIsolation('Sandbox')).available
  const rows: Bench['rows'] = []
  for (const variant of variants) if (hasSandbox || variant.spec !== sandboxed) rows.push(await measure(variant))
  const shared = rows.filter(row => String(row.Runs).startsWith('shared'))
  return {
    title: `${count} concurrent OpenTofu Runs on a cold cache, 2 real providers (18 MB each)`,
    about: `Each Run is a worker process. Registry on the loopback interface with ${bytesPerSecond / 1e6} MB/s for all connections together. Seconds from the creation of the first Stack until all are Ready.`,
    rows,
    failed: rows.some(row => row.failures !== 0) || shared.some(row => row['downloads per provider'] !== 1),
  }
}

async function measure({ name, files, spec }: Variant): Promise<Bench['rows'][number]> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-bench-'))
  const registry = await startRegistry({ providers, bytesPerSecond })
  const cli = join(directory, 'cli.tfrc')
  writeFileSync(cli, registry.configuration)
  Object.assign(process.env, { ...engineTestEnv(), TF_CLI_CONFIG_FILE: cli })
  const oarlock = await up(join(directory, 'data'))
  try {
    const { client } = oarlock
    const pool = {
      max: count,
      ...(spec?.isolation && { allowedNetworks: ['Private', 'None', 'Host'] as const, minimumIsolation: 'Sandbox' as const }),
    }
    while (!(await client.resource(workerPoolResource).getOrUndefined('default'))) await sleep(50)
    await client.resource(workerPoolResource).patch('default', { spec: pool } as object, { type: 'merge' })
    const startedMs = performance.now()
    const inline = { files: { 'main.tf': configuration, ...files(registry) } }
    await Promise.all(
      Array.from({ length: count }, (_, index) =>
        client.resource(stackResource).create({
          metadata: { name: `s${index}`, namespace: 'default' },
          spec: { engine: 'opentofu', source: { inline }, ...spec } as StackSpec,
        }),
      ),
    )
    let ready = 0
    let most = 0
    while (ready < count && performance.now() - startedMs < timeoutMs) {
      await sleep(200)
      const [stacks, runs] = await Promise.all([
        client.resource(stackResource).list({ namespace: 'default' }),
        client.resource(runResource).list({ namespace: 'default' }),
      ])
      ready = stacks.items.filter(({ status }) => isConditionTrue(status?.conditions, 'Ready')).length
      const active = runs.items.filter(({ status }) => ['Preparing', 'Planning', 'Applying'].includes(status?.phase ?? ''))
      most = Math.max(most, active.length)
    }
    const seconds = (performance.now() - startedMs) / 1_000
    const runs = (await client.resource(runResource).list({ namespace: 'default' })).items
    const failed = runs.filter(({ status }) => status?.phase !== 'Succeeded')
    for (const { metadata, status } of failed) console.error(`${metadata.name}: ${status?.phase} ${status?.reason} ${status?.message}`)
    const downloads = Object.values(registry.downloads())
    const bytes = providers.reduce(
      (sum, each) => sum + packageOf(each).byteLength * (registry.downloads()[`${each.type} ${each.version}`] ?? 0),
      0,
    )
    return {
      Runs: name,
      'most concurrent': most,
      'downloads per provider':
        downloads.length === providers.length && new Set(downloads).size === 1 ? downloads[0]! : downloads.join(' and '),
      'downloaded MB': Math.round(bytes / 1e6),
      failures: failed.length + (count - ready),
      seconds,
    }
  } finally {
    await oarlock.stop()
    await registry.close()
    rmSync(directory, { recursive: true, force: true })
  }
}
