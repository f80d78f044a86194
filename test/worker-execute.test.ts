/** What a worker does with a Run from its inputs to its outputs, with real engines. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type StackSpec, systemNamespace } from '../src/api/index.ts'
import { mutatedStackVariable, resolveRevision } from '../src/execution/workspace/index.ts'
import { configMapResource, leaseResource, secretResource } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { skipWithoutTerraformEngine, terraformEngine } from './support/run-program.ts'
import { stackUidOf } from './support/worker-fixture.ts'
import { createWorkerHarness, shell } from './support/worker-harness.ts'

const harness = createWorkerHarness()
const { runsDir, startWorker, execute, assignRun, getRun, getWorker, readLog, readState, newPath } = harness
const createSecret = (name: string, stringData: Record<string, string>) =>
  harness.client.resource(secretResource).create({ metadata: { name, namespace: 'apps' }, stringData })

for (const type of ['Apply', 'Plan', 'Destroy'] as const) {
  test(`a Run of type ${type} is not executed without the state that its Stack requires`, async t => {
    const marker = newPath()
    const command = { apply: shell(`touch ${marker}`), plan: shell(`touch ${marker}`), destroy: shell(`touch ${marker}`) }
    const { run } = await execute(t, { type, stateVersion: 3, stack: { command } })
    deepEqual([run.status?.phase, run.status?.reason, run.status?.retryable], ['Failed', 'StateMissing', false])
    match(run.status?.message ?? '', /no state is stored: version 3 or a later one is required/)
    ok(!existsSync(marker))
  })
}

test('an Apply reads its inputs, writes outputs, log and state, and leaves nothing else behind', async t => {
  const { client } = harness
  const { states } = harness.fixture
  await createSecret('db', { password: 'hunter22', user: 'admin1' })
  await client.resource(configMapResource).create({ metadata: { name: 'region', namespace: 'apps' }, data: { region: 'eu', size: '1' } })
  const apply = `echo password is $OARLOCK_VAR_password and $TOKEN; echo region $OARLOCK_VAR_region size $OARLOCK_VAR_size; echo '{"url":"http://x","dsn":"db://'$OARLOCK_VAR_password'@b","key":{"value":"hidden-key","sensitive":true}}' > $OARLOCK_OUTPUTS; echo '{"made":1}' > $OARLOCK_STATE`
  const { run, worker } = await execute(t, {
    stackName: 'first',
    stack: {
      command: { apply: shell(apply) },
      variables: { size: 3 },
      variablesFrom: [{ secretRef: { name: 'db' } }, { configMapRef: { name: 'region' } }],
      env: [{ name: 'TOKEN', secretKeyRef: { name: 'db', key: 'user' } }],
    },
  })
  const { status } = run
  equal(status?.phase, 'Succeeded', JSON.stringify(status))
  deepEqual(status?.outputs, { url: 'http://x' })
  match(status?.outputsDigest ?? '', /^sha256:[0-9a-f]{64}$/)
  equal(status?.changed, true)
  ok(status?.startedAt && status.finishedAt)
  ok((status?.log?.lines ?? 0) > 0)
  const outputs = await client.resource(secretResource).get('first-outputs', { namespace: 'apps' })
  equal(outputs.type, 'oarlock.dev/outputs')
  deepEqual(Object.fromEntries(Object.entries(outputs.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()])), {
    url: '"http://x"',
    dsn: '"db://hunter22@b"',
    key: '"hidden-key"',
  })
  deepEqual(
    outputs.metadata.ownerReferences?.map(({ kind, name }) => `${kind}/${name}`),
    ['Stack/first'],
  )
  const log = await readLog(run)
  match(log, /password is \*\*\* and \*\*\*/)
  match(log, /region eu size 3/)
  match(log, /outputs that contain the value of a Secret are stored as sensitive: dsn/)
  // Invariant 9: no secret value in the status, the Run's log or the worker's log.
  for (const text of [log, JSON.stringify(run.status), worker.logLines.join('\n')]) ok(!/hunter22|admin1|hidden-key/.test(text), text)
  equal(await readState(run), '{"made":1}')
  equal(status?.stateVersion, await states.newestVersion(stackUidOf(run)))
  equal(await states.currentLock(stackUidOf(run)), undefined)
  deepEqual(existsSync(runsDir) ? readdirSync(runsDir).filter(name => name === run.metadata.uid) : [], [])
  equal(await getWorker(worker.name), undefined)
  equal(await client.resource(leaseResource).getOrUndefined(worker.name, { namespace: systemNamespace }), undefined)

  const dependent = await execute(t, {
    stack: {
      command: { apply: shell('echo url $OARLOCK_VAR_address key $OARLOCK_VAR_key') },
      variablesFrom: [{ stackRef: { name: 'first', outputs: { url: 'address', key: 'key' } } }],
    },
  })
  equal(dependent.run.status?.phase, 'Succeeded')
  // Of the outputs of another Stack, only sensitive ones are masked.
  match(await readLog(dependent.run), /url http:\/\/x key \*\*\*/)
})

for (const [name, stack, reason, message] of [
  [
    'a missing Secret',
    { variablesFrom: [{ secretRef: { name: 'nope' } }] },
    'SecretNotFound',
    /^spec\.variablesFrom\[0\]\.secretRef: Secret apps\/nope does not exist; create it/,
  ],
  [
    'a missing ConfigMap',
    { variablesFrom: [{ configMapRef: { name: 'nope' } }] },
    'ConfigMapNotFound',
    /^spec\.variablesFrom\[0\]\.configMapRef: ConfigMap apps\/nope does not exist/,
  ],
  [
    'a Stack without outputs',
    { variablesFrom: [{ stackRef: { name: 'nope' } }] },
    'OutputsNotFound',
    /^spec\.variablesFrom\[0\]\.stackRef: Stack apps\/nope has no outputs yet/,
  ],
  [
    'two sources in one entry of variablesFrom',
    { variablesFrom: [{ secretRef: { name: 'a' }, configMapRef: { name: 'b' } }] },
    'InvalidSpec',
    /exactly one of stackRef, secretRef, configMapRef must be set, got secretRef and configMapRef/,
  ],
  [
    'a missing key',
    { env: [{ name: 'A', secretKeyRef: { name: 'keys', key: 'b' } }] },
    'KeyNotFound',
    /^spec\.env\[0\]\.secretKeyRef\.key: Secret apps\/keys has no key "b"; it has: a$/,
  ],
  [
    'a file name outside the source',
    { source: { inline: { files: { '../x': '' } } } },
    'InvalidSource',
    /^spec\.source\.inline\.files\[\.\.\/x\]: Invalid value: "\.\.\/x": must not contain "\.\."/,
  ],
  ['a path that is not allowed', { source: { path: { path: '/etc' } } }, 'SourceNotAllowed', /"\/etc" is not below an allowed directory/],
  ['a git URL that runs a program', { source: { git: { url: 'ext::sh -c id' } } }, 'InvalidSource', /must not name a remote helper/],
] as [string, Partial<StackSpec>, string, RegExp][]) {
  test(`${name} fails the Run with ${reason}, a remedy, and no lock left`, async t => {
    if (reason === 'KeyNotFound') await createSecret('keys', { a: '1' })
    const { run } = await execute(t, { stack: { command: { apply: ['true'] }, ...stack } })
    equal(run.status?.phase, 'Failed')
    equal(run.status?.reason, reason)
    match(run.status?.message ?? '', message)
    equal(run.status?.retryable, reason.endsWith('NotFound'))
    equal(await harness.fixture.states.currentLock(stackUidOf(run)), undefined)
  })
}

test('the state of an engine that fails is saved', async t => {
  const { run } = await execute(t, {
    stack: { command: { apply: shell('echo \'{"half":1}\' > $OARLOCK_STATE; echo it broke >&2; exit 3') } },
  })
  equal(run.status?.phase, 'Failed')
  equal(run.status?.reason, 'ApplyFailed')
  match(run.status?.message ?? '', /exit|3|broke/)
  match(await readState(run), /half/)
})

test('invariant 1: processes of an earlier Run of the Stack are killed before the engine starts', async t => {
  const startProcess = async (stackUid: string) => {
    const child = spawn('sleep', ['100'], { env: { PATH: process.env.PATH, OARLOCK_RUN_UID: 'earlier', [mutatedStackVariable]: stackUid } })
    t.after(() => child.kill('SIGKILL'))
    await once(child, 'spawn')
    return { pid: child.pid!, isAlive: () => child.exitCode === null && child.signalCode === null }
  }
  const earlier = await startProcess(await harness.createStack('left-behind'))
  const other = await startProcess(randomUUID())
  const plan = await execute(t, { stackName: 'left-behind', type: 'Plan', stack: { command: { apply: ['true'] } } })
  equal(plan.run.status?.phase, 'Succeeded')
  ok(earlier.isAlive(), 'a Plan writes nothing, so it kills nothing')
  const report = `if kill -0 ${earlier.pid} 2>/dev/null; then echo alive; else echo killed before; fi`
  const { run } = await execute(t, { stackName: 'left-behind', epoch: 2, stack: { command: { apply: shell(report) } } })
  equal(run.status?.phase, 'Succeeded')
  match(await readLog(run), /killed 1 process of an earlier Run of the Stack[\s\S]*killed before/)
  ok(other.isAlive(), 'a process of another Stack was killed')
})

test('invariant 4: a lock that a user holds is not broken, and the message names the user', async t => {
  const { states } = harness.fixture
  const stackUid = await harness.createStack('held')
  const holder = { kind: 'User', id: 'lock-1', who: 'ada@laptop', info: { ID: 'lock-1' } } as const
  equal((await states.lock({ stackUid, holder }, async () => false)).kind, 'granted')
  const { run } = await execute(t, { stackName: 'held', stack: { command: { apply: ['true'] } } })
  equal(run.status?.reason, 'StateLocked')
  match(run.status?.message ?? '', /ada@laptop/)
  equal(run.status?.retryable, true)
  equal((await states.currentLock(stackUid))?.holder.kind, 'User')
})

test('an engine that is not installed fails the Run with EngineNotFound, the names searched for and how to install it', async t => {
  const path = process.env.PATH
  t.after(() => {
    process.env.PATH = path
  })
  const worker = startWorker(t)
  process.env.PATH = '/nowhere'
  const run = await assignRun(worker.name, { stack: { engine: 'opentofu' } })
  equal(await worker.done, 0)
  process.env.PATH = path
  const { status } = await getRun(run)
  equal(status?.reason, 'EngineNotFound')
  equal(status?.retryable, false)
  match(status?.message ?? '', /tofu/)
})

test('an engine whose version changed after the registration is not started if the Stack requires another version', async t => {
  // Like tfenv: the same program starts another version.
  const [program, version] = [newPath(), newPath()]
  const answer = `{"terraform_version":"'$(cat ${version})'","platform":"linux_amd64"}`
  writeFileSync(program, `#!/bin/sh\n[ "$1" = version ] && echo '${answer}' && exit 0\necho "$*" >> ${version}.calls\nexit 1\n`, {
    mode: 0o755,
  })
  writeFileSync(version, '1.9.2')
  process.env.OARLOCK_TOFU = program
  t.after(() => {
    delete process.env.OARLOCK_TOFU
  })
  const capabilities = { labels: {}, engines: { opentofu: '1.9.2' }, capacity: undefined, isolation: undefined }
  const worker = startWorker(t, { once: false, capabilities })
  const execute = async (engineVersion?: string) => {
    const run = await assignRun(worker.name, { stack: { engine: 'opentofu', ...(engineVersion && { placement: { engineVersion } }) } })
    return await eventually(async () => {
      const { status } = await getRun(run)
      return status?.finishedAt !== undefined && status
    }, 'the Run to end')
  }
  equal((await execute('~> 1.9')).reason, 'InitFailed', 'the program was not started')
  rmSync(`${version}.calls`)
  writeFileSync(version, '1.8.0')
  const { reason, message, retryable } = await execute('~> 1.9')
  equal(reason, 'EngineVersionMismatch')
  match(message ?? '', /^\S+ on worker \S+ is opentofu 1\.8\.0, spec\.placement\.engineVersion requires ~> 1\.9$/)
  equal(retryable, true, 'another worker may have the version')
  equal(existsSync(`${version}.calls`), false, 'the program was started')
  await eventually(
    async () => (await getWorker(worker.name))?.status?.engines?.opentofu === '1.8.0',
    'the worker to report the new version',
  )
  equal((await execute()).reason, 'InitFailed', 'a Stack without a version constraint was not started')
  worker.drain.abort()
  equal(await worker.done, 0)
})

test('terraform or opentofu: applies exactly the approved plan, rejects outdated ones, refreshes and destroys', {
  skip: skipWithoutTerraformEngine,
}, async t => {
  const main = 'variable "size" {}\nresource "terraform_data" "a" { input = var.size }\noutput "size" { value = terraform_data.a.output }\n'
  const base = {
    stackName: 'approved',
    stack: { engine: terraformEngine, approval: 'Manual', source: { inline: { files: { 'main.tf': main } } }, variables: { size: 3 } },
  } as const
  const planned = (await execute(t, { ...base, type: 'Plan', epoch: 1 })).run
  equal(planned.status?.phase, 'Succeeded', JSON.stringify(planned.status))
  equal(planned.status?.changed, true)
  const digest = planned.status?.plan?.digest ?? ''
  deepEqual(planned.status?.plan, { digest, add: 1, change: 0, destroy: 0 })

  const unknown = (await execute(t, { ...base, epoch: 2, approvedPlan: { digest: 'sha256:other', runName: 'x' } })).run
  equal(unknown.status?.reason, 'PlanOutdated')

  const expired = { digest, runName: planned.metadata.name, expiresAt: '2026-01-01T00:00:00Z' }
  const late = (await execute(t, { ...base, epoch: 3, approvedPlan: expired })).run
  deepEqual([late.status?.phase, late.status?.reason], ['Failed', 'PlanOutdated'])
  match(late.status?.message ?? '', /its approval expired at 2026-01-01T00:00:00Z; approve a new plan$/)

  const applied = (await execute(t, { ...base, epoch: 4, approvedPlan: { digest, runName: planned.metadata.name } })).run
  equal(applied.status?.phase, 'Succeeded', JSON.stringify(applied.status))
  deepEqual(applied.status?.outputs, { size: 3 })
  equal(applied.status?.resources, 1)
  equal(JSON.parse(await readState(applied)).resources.length, 1)

  const repeated = (await execute(t, { ...base, epoch: 5, approvedPlan: { digest, runName: planned.metadata.name } })).run
  equal(repeated.status?.reason, 'PlanOutdated', JSON.stringify(repeated.status))

  const refreshed = (await execute(t, { ...base, type: 'Refresh', epoch: 6 })).run
  equal(refreshed.status?.phase, 'Succeeded', JSON.stringify(refreshed.status))
  equal(refreshed.status?.resources, 1)

  const destroyed = (await execute(t, { ...base, type: 'Destroy', epoch: 7 })).run
  equal(destroyed.status?.phase, 'Succeeded', JSON.stringify(destroyed.status))
  equal(destroyed.status?.resources, 0)
  equal(await harness.client.resource(secretResource).getOrUndefined('approved-outputs', { namespace: 'apps' }), undefined)
})

test('terraform or opentofu: an approval is of the bytes of the source, also of a script that the plan does not show', {
  skip: skipWithoutTerraformEngine,
}, async t => {
  const path = newPath()
  const ran = newPath()
  mkdirSync(path)
  writeFileSync(join(path, 'main.tf'), 'resource "terraform_data" "a" {\n  provisioner "local-exec" {\n    command = "sh run.sh"\n  }\n}\n')
  const script = (name: string) => {
    writeFileSync(join(path, 'run.sh'), `touch ${ran}-${name}`)
    utimesSync(join(path, 'run.sh'), 1, 1)
  }
  script('shown')
  const revision = await resolveRevision({ path: { path } }, { allowPaths: [path], cacheDir: path, signal: new AbortController().signal })
  const stack = { engine: terraformEngine, approval: 'Manual', source: { path: { path } } } as const
  const options = { allowPaths: [path] }
  const base = { stackName: 'script', revision, stack }
  const planned = (await execute(t, { ...base, type: 'Plan', epoch: 1 }, options)).run
  const approvedPlan = { digest: planned.status?.plan?.digest ?? '', runName: planned.metadata.name }
  script('other')
  const applied = (await execute(t, { ...base, epoch: 2, approvedPlan }, options)).run
  deepEqual([applied.status?.phase, applied.status?.reason], ['Failed', 'PlanOutdated'], JSON.stringify(applied.status))
  script('shown')
  const approved = (await execute(t, { ...base, epoch: 3, approvedPlan }, options)).run
  equal(approved.status?.phase, 'Succeeded', JSON.stringify(approved.status))
  deepEqual([existsSync(`${ran}-shown`), existsSync(`${ran}-other`)], [true, false])
})

test('a Secret of 60 KB is masked, and Secrets of more than 4 MiB together fail the Run', async t => {
  const value = (chars: number, start: string) => start + 'abcdefghij'.repeat(chars / 10)
  await createSecret('long', { value: value(60_000, 'long-secret-') })
  const { run } = await execute(t, {
    stackName: 'long',
    stack: {
      command: { apply: shell('printf "%s" "<$VALUE>"; printf "%.500s" "$VALUE" >&2') },
      env: [{ name: 'VALUE', secretKeyRef: { name: 'long', key: 'value' } }],
    },
  })
  equal(run.status?.phase, 'Succeeded', JSON.stringify(run.status))
  const log = await readLog(run)
  match(log, /<\*\*\*>/)
  ok(!log.includes('long-secret'), log)

  const names = ['a', 'b', 'c', 'd', 'e']
  for (const name of names) await createSecret(`large-${name}`, { value: value(900_000, `large-secret-${name}`) })
  const large = await execute(t, {
    stackName: 'large',
    stack: { command: { apply: shell('true') }, env: names.map(name => ({ name, secretKeyRef: { name: `large-${name}`, key: 'value' } })) },
  })
  deepEqual([large.run.status?.phase, large.run.status?.reason], ['Failed', 'InvalidSpec'], JSON.stringify(large.run.status))
  for (const text of [JSON.stringify(large.run.status), large.worker.logLines.join('\n')])
    ok(!text.includes('large-secret'), text.slice(0, 500))
})

test('secrets are masked where a line of output is divided, and short ones as words', async t => {
  await createSecret('divided', { token: 'divided-secret-token', pin: '471' })
  const fill = (count: number) => `head -c ${count} /dev/zero | tr '\\0' x`
  const apply = [65_526, 65_536, 131_060].map(count => `${fill(count)}; printf '%s' "$TOKEN"; ${fill(10)}; echo`)
  const { run } = await execute(t, {
    stack: {
      command: { apply: shell(`${apply.join('; ')}; echo "pin $PIN of 4711"; ${apply[0]} >&2`) },
      env: ['token', 'pin'].map(key => ({ name: key.toUpperCase(), secretKeyRef: { name: 'divided', key } })),
    },
  })
  equal(run.status?.phase, 'Succeeded', JSON.stringify(run.status))
  const log = await readLog(run)
  for (let length = 5; length <= 20; length += 5) {
    ok(!log.includes('divided-secret-token'.slice(0, length)), `the first ${length} characters`)
    ok(!log.includes('divided-secret-token'.slice(-length)), `the last ${length} characters`)
  }
  equal(log.split('***').length, 6)
  match(log, /pin \*\*\* of 4711/)
})
