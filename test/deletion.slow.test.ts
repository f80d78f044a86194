/** Deletion of Stacks as users do it, with real engines: what it waits for, and what it destroys. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Stack, StackSpec } from '../src/api/index.ts'
import { isConditionTrue } from '../src/kubernetes/object/index.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { type ProgramResult, runOarlock, skipWithoutTerraformEngine, terraformEngine } from './support/run-program.ts'
import { condition, StackFixture } from './support/stacks.ts'

const awaitsApproval = (stack: Stack) =>
  stack.metadata.deletionTimestamp !== undefined && isConditionTrue(stack.status?.conditions, 'AwaitingApproval')

describe('deletion of Stacks', { concurrency: 4 }, () => {
  const dataDir = makeDataDir()
  const work = join(dataDir, 'work')
  const at = (name: string) => join(work, name)
  let oarlock: OarlockProcess
  let stacks: StackFixture
  let cli: (...args: string[]) => Promise<ProgramResult>

  before(async () => {
    mkdirSync(work)
    oarlock = await startOarlock(dataDir, ['--max-workers', '4'])
    stacks = new StackFixture(oarlock.client)
    cli = async (...args) => await runOarlock([...args, '--kubeconfig', oarlock.kubeconfig])
  })
  after(async () => {
    equal(await oarlock.stop(), 0)
    removeDirectory(dataDir)
  })

  /** Two resources, whose destruction is written to a file. */
  const recorded = (file: string, more: Partial<StackSpec> = {}): StackSpec => ({
    engine: terraformEngine,
    source: {
      inline: {
        files: {
          'main.tf': `resource "terraform_data" "part" {
            count = 2
            input = "${file}"
            provisioner "local-exec" {
              when    = destroy
              command = "echo destroyed >> \${self.output}"
            }
          }`,
        },
      },
    },
    ...more,
  })
  const destroyedIn = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean).length : 0)

  test('a Stack with approval Manual is destroyed only by a plan that was shown and approved', {
    skip: skipWithoutTerraformEngine,
  }, async () => {
    const file = at('manual')
    await stacks.create('manual', recorded(file))
    await stacks.untilReady('manual')
    await stacks.patch('manual', { spec: { approval: 'Manual' } })
    const deleted = await cli('delete', 'stack', 'manual', '--no-wait')
    equal(deleted.code, 0, deleted.text)

    const waiting = await stacks.until('manual', 'AwaitingApproval', awaitsApproval)
    match(
      condition(waiting, 'Ready')?.message ?? '',
      /^Deletion is waiting\. Plan \S+ of Run \S+ awaits approval: 0 to add, 0 to change, 2 to destroy\. Approve it with: oarlock approve manual -n default, or set spec\.deletion to Orphan/,
    )
    deepEqual(
      (await stacks.runsOf('manual')).map(({ spec }) => spec.type),
      ['Apply', 'Plan'],
    )
    equal(destroyedIn(file), 0)

    const approved = await cli('approve', 'manual', '--yes', '--wait', '--timeout', '60s')
    equal(approved.code, 0, approved.text)
    match(approved.stderr, /terraform_data\.part\[1\] will be destroyed/)
    match(approved.stdout, /stack\/manual destroyed\n$/)
    equal(destroyedIn(file), 2)
    ok(!(await stacks.stacks.getOrUndefined('manual', { namespace: 'default' })))
  })

  const isStalled = (stack: Stack) => isConditionTrue(stack.status?.conditions, 'Stalled')
  const failsOnce = { retry: { limit: 0 } }

  test('a Stack whose configuration is broken from the start is removed without a Destroy', {
    skip: skipWithoutTerraformEngine,
  }, async () => {
    const source = { inline: { files: { 'main.tf': 'resource "terraform_data" "a" { input = ' } } }
    await stacks.create('broken', { engine: terraformEngine, source, ...failsOnce })
    await stacks.until('broken', 'Stalled', isStalled)
    const deleted = await cli('delete', 'stack', 'broken', '--timeout', '30s')
    equal(deleted.code, 0, deleted.text)
  })

  test('a Stack whose first Apply failed half-way is destroyed', { skip: skipWithoutTerraformEngine }, async () => {
    const file = at('half')
    const spec = recorded(file, failsOnce)
    const failing = `resource "terraform_data" "last" {
      depends_on = [terraform_data.part]
      provisioner "local-exec" { command = "exit 1" }
    }`
    const files = { ...spec.source.inline?.files, 'last.tf': failing }
    await stacks.create('half', { ...spec, source: { inline: { files } } })
    await stacks.until('half', 'Stalled', isStalled)
    const deleted = await cli('delete', 'stack', 'half', '--timeout', '60s')
    equal(deleted.code, 0, deleted.text)
    equal(destroyedIn(file), 2)
  })
})
