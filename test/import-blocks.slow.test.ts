/** `import` blocks in the files of a Stack, as docs/import.md describes them. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { runOarlock, skipWithoutTerraformEngine, terraformEngine } from './support/run-program.ts'
import { condition, StackFixture } from './support/stacks.ts'

const dataDir = makeDataDir()
const created = join(dataDir, 'created')
let oarlock: OarlockProcess
let stacks: StackFixture

before(async () => {
  oarlock = await startOarlock(dataDir)
  stacks = new StackFixture(oarlock.client)
})
after(async () => {
  await oarlock?.stop()
  removeDirectory(dataDir)
})

const run = async (...args: string[]) => await runOarlock(args, { env: { KUBECONFIG: oarlock.kubeconfig } })

const resource = `resource "terraform_data" "existing" {
  provisioner "local-exec" {
    command = "echo created >> ${created}"
  }
}
output "id" {
  value = terraform_data.existing.id
}
`
const importBlock = `import {
  to = terraform_data.existing
  id = "made-elsewhere"
}
`

test('a resource of an import block is shown in the plan, imported by the approved Apply, and not created', {
  skip: skipWithoutTerraformEngine,
}, async () => {
  const files = (text: string) => ({ source: { inline: { files: { 'main.tf': text } } } })
  await stacks.create('adopt', { engine: terraformEngine, approval: 'Manual', ...files(importBlock + resource) })
  await stacks.until('adopt', 'approval', stack => condition(stack, 'AwaitingApproval')?.status === 'True')
  const approved = await run('approve', 'adopt', '--yes', '--wait')
  equal(approved.code, 0, approved.text)
  match(approved.text, /terraform_data\.existing will be imported/)
  match(approved.text, /Plan: 1 to import, 0 to add, 0 to change, 0 to destroy/)
  const { status } = await stacks.untilReady('adopt')
  deepEqual(status?.outputs, { id: 'made-elsewhere' })
  equal(existsSync(created), false)

  // Afterwards the block may stay or be removed: the plan has no changes.
  for (const text of [importBlock + resource, resource]) {
    await stacks.patch('adopt', { spec: files(text) })
    const planned = await run('plan', 'adopt')
    equal(planned.code, 0, planned.text)
    match(planned.text, /no changes/i)
  }
  equal(existsSync(created), false)
})
