import assert from 'node:assert/strict'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { createEngineHarness } from '../engine-harness.testing.ts'
import { terraformFlavor } from './flavor.ts'
import { checkBackend, overrideBackend, recoverErroredState, rejectEnv, rejectStateInFiles } from './managed-state.ts'
import { rootModuleFiles } from './module-files.ts'

const erroredState = JSON.stringify({ version: 4, serial: 7, lineage: 'l', resources: [] })
const external = { spec: { engine: 'terraform', state: 'External' } as const, statePath: undefined }

test('errored.tfstate replaces a Managed state without a push', async t => {
  const { context, log } = await createEngineHarness(t, { 'errored.tfstate': erroredState })
  const push = async () => assert.fail('pushed')
  assert.equal(await recoverErroredState(context, terraformFlavor, push), undefined)
  assert.equal(await readFile(context.statePath!, 'utf8'), erroredState)
  assert.match(log.join(), /recovered it from errored\.tfstate \(serial 7\)/)
})

test('errored.tfstate of an External state is pushed once', async t => {
  const { context } = await createEngineHarness(t, { 'errored.tfstate': erroredState }, external)
  const pushed: string[] = []
  const push = async (file: string) => ({ exitCode: pushed.push(file) - 1 })
  assert.equal(await recoverErroredState(context, terraformFlavor, push), undefined)
  assert.deepEqual(pushed, ['errored.tfstate'])
})

test('errored.tfstate that cannot be pushed is stored on the worker, and the message names the file', async t => {
  const { context } = await createEngineHarness(t, { 'errored.tfstate': erroredState }, external)
  const message = await recoverErroredState(context, terraformFlavor, async () => ({ exitCode: 1 }))
  const path = join(context.cacheDir, 'errored-states', 'uid-1.tfstate')
  assert.match(message ?? '', /^the state could not be saved to your backend: it is stored on the worker as .*uid-1\.tfstate; push it with/)
  assert.equal(await readFile(path, 'utf8'), erroredState)
  assert.equal((await stat(path)).mode & 0o777, 0o600)
})

test('without errored.tfstate there is nothing to recover', async t => {
  const { context } = await createEngineHarness(t, {})
  assert.equal(await recoverErroredState(context, terraformFlavor, async () => assert.fail('pushed')), undefined)
})

test('a variable that moves the state is rejected, and the message names where it may be set', async t => {
  const { context } = await createEngineHarness(t, {}, { env: { TF_DATA_DIR: '/elsewhere' } })
  assert.throws(() => rejectEnv(context, ['TF_WORKSPACE', 'TF_DATA_DIR']), {
    reason: 'InvalidSpec',
    message: /^environment variable TF_DATA_DIR is not allowed.*spec\.env of the Stack or spec\.engineEnvironment of the WorkerPool$/,
  })
})

for (const [name, value, isRejected] of [
  ['TF_CLI_ARGS', '-state=elsewhere', true],
  ['TF_CLI_ARGS_apply', '-parallelism=1 -state-out=elsewhere', true],
  ['TF_CLI_ARGS_plan', '"--state" elsewhere', true],
  ['TF_CLI_ARGS_apply', '-lock-timeout=1m -var=a-state=1', false],
] as const)
  test(`arguments that ${isRejected ? 'move the state are rejected' : 'do not move the state are accepted'}: ${name}=${value}`, async t => {
    const { context } = await createEngineHarness(t, {}, { env: { [name]: value } })
    if (isRejected)
      await assert.rejects(overrideBackend(context), { reason: 'InvalidSpec', message: new RegExp(`environment variable ${name} is`) })
    else await overrideBackend(context)
  })

test('the backend is accepted only when init used our state file', async t => {
  const harness = await createEngineHarness(t, {})
  const { context } = harness
  await overrideBackend(context)
  const override = JSON.parse(await readFile(join(context.directory, 'oarlock_override.tf.json'), 'utf8'))
  const initialized = (backend: object) => harness.write({ '.terraform/terraform.tfstate': JSON.stringify({ backend }) })
  await initialized({ type: 'local', config: override.terraform.backend.local })
  await checkBackend(context)
  await initialized({ type: 's3', config: {} })
  await assert.rejects(checkBackend(context), { reason: 'InvalidConfiguration', message: /sets backend "s3"/ })
  await writeFile(join(context.directory, '.terraform', 'terraform.tfstate'), '{}')
  await assert.rejects(checkBackend(context), { message: /sets backend "none"/ })
})

const s3 = { name: 'main.tf', text: 'terraform {\n  backend "s3" {}\n}\n' }
const localState = JSON.stringify({ version: 4, serial: 1, lineage: 'l', resources: [{ mode: 'managed', instances: [{}] }] })

test('a backend in the files is rejected with both ways out, and names file and line', async t => {
  const { context } = await createEngineHarness(t, {})
  await assert.rejects(rejectStateInFiles(context, [s3]), {
    reason: 'BackendInFiles',
    retryable: false,
    message:
      /^main\.tf:2 configures backend "s3", .*"state: External".*"oarlock state import app -n default --from DIR" and then remove the block$/,
  })
})

test('a backend in a child module is accepted, because engines ignore it', async t => {
  const { context } = await createEngineHarness(t, { 'main.tf': 'module "a" {\n  source = "./a"\n}\n', 'a/main.tf': s3.text })
  const files = await rootModuleFiles(context, 'terraform')
  assert.deepEqual(
    files.map(({ name }) => name),
    ['main.tf'],
  )
  await rejectStateInFiles(context, files)
})

test('the override file of an earlier Run is not a backend of the user', async t => {
  const { context } = await createEngineHarness(t, {})
  await overrideBackend(context)
  const text = await readFile(join(context.directory, 'oarlock_override.tf.json'), 'utf8')
  await rejectStateInFiles(context, [{ name: 'oarlock_override.tf.json', text }])
})

test('a Destroy Run uses the stored state although the files have a backend, and is rejected without a stored state', async t => {
  const { context } = await createEngineHarness(t, {}, { isDestroy: true })
  await assert.rejects(rejectStateInFiles(context, [s3]), { reason: 'BackendInFiles' })
  await writeFile(context.statePath!, localState)
  await rejectStateInFiles(context, [s3])
  await assert.rejects(rejectStateInFiles({ ...context, isDestroy: false }, [s3]), { reason: 'BackendInFiles' })
})

test('a state with resources among the files is rejected while the Stack has none', async t => {
  const harness = await createEngineHarness(t, { 'terraform.tfstate': localState })
  const { context } = harness
  await assert.rejects(rejectStateInFiles(context, []), {
    reason: 'StateInFiles',
    retryable: false,
    message:
      /^the source has terraform\.tfstate with 1 resource and .*"oarlock state import app -n default --from FILE", or remove the file$/,
  })
  for (const text of [JSON.stringify({ version: 4, serial: 1, lineage: 'l', resources: [] }), '', 'not a state']) {
    await harness.write({ 'terraform.tfstate': text })
    await rejectStateInFiles(context, [])
  }
  await harness.write({ 'terraform.tfstate': localState })
  await writeFile(context.statePath!, erroredState)
  await rejectStateInFiles(context, [])
})
