/**
 * Disk space of a data directory. `--stacks N` (default 40) of engine opentofu with `--resources N` (default 20) of `terraform_data`, applied and then
 * changed `--changes N` (default 6) times; measured after a stop, which writes the logs of both databases into their files.
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { stackResource } from '../src/api/index.ts'
import type { Client } from '../src/kubernetes/client/index.ts'
import { isConditionTrue } from '../src/kubernetes/object/index.ts'
import { up } from './oarlock-up.ts'
import type { Bench } from './run.ts'

const namespace = 'default'
const parts = ['oarlock.db', 'state', 'logs'] as const

export async function bench(args: string[]): Promise<Bench> {
  const text = (value: string) => ({ type: 'string', default: value }) as const
  const options = { stacks: text('40'), resources: text('20'), changes: text('6') } as const
  const { values } = parseArgs({ args, strict: false, allowPositionals: true, options })
  const [stacks, resources, changes] = [Number(values.stacks), Number(values.resources), Number(values.changes)]
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-bench-'))
  try {
    let process = await up(dataDir)
    await process.stop()
    const empty = sizes(dataDir)
    process = await up(dataDir)
    const names = Array.from({ length: stacks }, (_, index) => `disk-${index}`)
    for (let change = 0; change <= changes; change++) {
      for (const name of names) await applyChange(process.client, name, resources, change)
      for (const name of names) await untilReady(process.client, name)
    }
    await process.stop()
    const filled = sizes(dataDir)
    return {
      title: `Disk space of ${stacks} Stacks with ${resources} resources, after ${changes} changes that each created ${resources} resources again`,
      about: 'KB = 1,024 bytes, after a stop. Runs beyond historyLimit (5) were deleted with their logs.',
      rows: parts.map(part => ({
        part,
        'empty KB': empty[part] / 1_024,
        'filled KB': filled[part] / 1_024,
        'KB per Stack': (filled[part] - empty[part]) / 1_024 / stacks,
      })),
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
  }
}

async function applyChange(client: Client, name: string, resources: number, change: number): Promise<void> {
  const files = {
    'main.tf': `resource "terraform_data" "item" {
  count            = ${resources}
  input            = "value-\${count.index}"
  triggers_replace = ${change}
}
output "count" {
  value = length(terraform_data.item)
}
`,
  }
  const body = { metadata: { name, namespace }, spec: { engine: 'opentofu', source: { inline: { files } } } } as const
  await client.resource(stackResource).apply(body, { force: true })
}

async function untilReady(client: Client, name: string): Promise<void> {
  for (;;) {
    const { metadata, status } = await client.resource(stackResource).get(name, { namespace })
    if (status?.observedGeneration === metadata.generation && isConditionTrue(status?.conditions, 'Ready')) return
    await sleep(100)
  }
}

const sizes = (dataDir: string) =>
  Object.fromEntries(parts.map(part => [part, sizeOf(join(dataDir, part))])) as Record<(typeof parts)[number], number>

function sizeOf(path: string): number {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat?.isDirectory()) return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0)
  return stat?.size ?? 0
}
