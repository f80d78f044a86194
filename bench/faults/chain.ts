/** Stacks that take a few seconds and record their steps in a ledger, for the benches of faults. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Run, runResource, type Stack, type StackSpec, stackResource } from '../../src/api/index.ts'
import type { Client } from '../../src/kubernetes/client/index.ts'
import { isConditionTrue } from '../../src/kubernetes/object/index.ts'
import { record } from '../../test/support/ledger.ts'

/** Duration of a worker's Lease, the default. */
export const leaseMs = 10_000
export const resources = 6
export const secondsPerResource = 0.7

/** A chain of resources; each records when it begins and when it is done, and is replaced when `generation` changes. */
export function chain(ledger: string, generation = 0): StackSpec {
  const note = (what: string, index: number) => record(ledger, what, `${generation}.${index}`)
  const resource = (index: number) => `
resource "terraform_data" "r${index}" {
  ${index > 0 ? `depends_on = [terraform_data.r${index - 1}]` : ''}
  triggers_replace = "${generation}"
  provisioner "local-exec" {
    command = "${note('begin', index)}; sleep ${secondsPerResource}; ${note('done', index)}"
  }
}`
  const files = { 'main.tf': Array.from({ length: resources }, (_, index) => resource(index)).join('\n') }
  return { engine: 'terraform', source: { inline: { files } }, retry: { initial: '500ms', max: '2s', limit: 1_000 } }
}

/** Runs `work` with a temporary directory that contains one for ledgers. */
export async function inDirectory<T>(work: (directory: string) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-bench-'))
  mkdirSync(join(directory, 'ledgers'))
  try {
    return await work(directory)
  } finally {
    rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
  }
}

/** Process id of the supervisor of a data directory's workers. */
export function supervisorOf(dataDir: string): number | undefined {
  return readdirSync('/proc')
    .map(Number)
    .find(
      pid =>
        pid > 1 &&
        read(`/proc/${pid}/cmdline`).includes(`supervisor-main`) &&
        read(`/proc/${pid}/environ`).includes(join(dataDir, 'cache')),
    )
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It has exited.
  }
}

export async function runsOf(client: Client, stack: string): Promise<Run[]> {
  const { items } = await client.resource(runResource).listAll({ namespace: 'default', labelSelector: `oarlock.dev/stack=${stack}` })
  return items.sort((a, b) => a.spec.epoch - b.spec.epoch)
}

export async function isReady(client: Client, name: string): Promise<Stack | undefined> {
  const stack = await client.resource(stackResource).get(name, { namespace: 'default' })
  const { conditions, observedGeneration } = stack.status ?? {}
  return observedGeneration === stack.metadata.generation && isConditionTrue(conditions, 'Ready') ? stack : undefined
}

export async function lockOf(client: Client, stack: string): Promise<object> {
  return (await (await client.request({ method: 'GET', path: `/state/default/${stack}/lock` })).json()) as object
}

export function needTerraform(): void {
  try {
    execFileSync('terraform', ['version'], { stdio: 'ignore' })
  } catch {
    throw new Error('terraform is not on PATH')
  }
}

/** `--name=value` or `--name value` of the command line. */
export function argument(args: string[], name: string, otherwise: string): string {
  const at = args.findIndex(arg => arg === `--${name}` || arg.startsWith(`--${name}=`))
  if (at < 0) return otherwise
  return args[at]?.includes('=') ? (args[at].split('=')[1] ?? otherwise) : (args[at + 1] ?? otherwise)
}

export function spread(values: number[]): { p50: number; max: number } {
  const sorted = values.toSorted((a, b) => a - b)
  return { p50: sorted[Math.floor(sorted.length / 2)] ?? Number.NaN, max: sorted.at(-1) ?? Number.NaN }
}
