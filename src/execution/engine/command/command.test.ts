import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import type { EngineContext } from '../engine.ts'
import type { EngineError } from '../engine-error.ts'
import { createEngineHarness } from '../engine-harness.testing.ts'
import { createCommandEngine } from './command.ts'
import { parseOutputs } from './parse-outputs.ts'
import { parseProgressLine } from './parse-progress-line.ts'

const engine = createCommandEngine()
const spec = (command: EngineContext['spec']['command'], more: Partial<EngineContext['spec']> = {}): EngineContext['spec'] => ({
  engine: 'command',
  command,
  ...more,
})
const sh = (script: string) => ['sh', '-c', script]
const rejectsWith = (reason: string, message: RegExp, retryable: boolean) => (error: EngineError) => {
  assert.deepEqual([error.reason, error.retryable], [reason, retryable], error.message)
  assert.match(error.message, message)
  return true
}
const run = async (context: EngineContext, options = {}) => {
  await engine.prepare(context)
  return await engine.apply(context, await engine.plan(context, options))
}

test('a command reads its inputs from the environment, writes outputs and a state, and reports progress', async t => {
  const script = `
echo "::progress 1/2 building"
printf '{"greeting": "%s %s", "token": {"value": "%s", "sensitive": true}}' "$OARLOCK_VAR_greeting" "$OARLOCK_VAR_sizes" "$OARLOCK_VAR_token" > "$OARLOCK_OUTPUTS"
printf '{"runs": %s}' "$OARLOCK_EPOCH" > "$OARLOCK_STATE"
cp "$OARLOCK_VARIABLES" vars.json
echo "$OARLOCK_NAMESPACE/$OARLOCK_STACK $OARLOCK_RUN $OARLOCK_RUN_TYPE"
`
  const harness = await createEngineHarness(
    t,
    { 'apply.sh': script },
    {
      spec: spec({ apply: ['sh', 'apply.sh'] }),
      variables: { greeting: 'hello', sizes: [1, 2], token: 'hunter2secret' },
      sensitiveNames: ['token'],
    },
  )
  assert.deepEqual(await run(harness.context), {
    outputs: { greeting: { value: 'hello [1,2]', sensitive: false }, token: { value: 'hunter2secret', sensitive: true } },
    resources: 1,
    changed: true,
  })
  assert.deepEqual(harness.progress, [{ done: 1, total: 2, current: 'building' }])
  assert.deepEqual(harness.log, ['default/app app-uid-1-1 apply'])
  assert.equal(await readFile(harness.context.statePath ?? '', 'utf8'), '{"runs": 1}')
  assert.match(await readFile(`${harness.context.directory}/vars.json`, 'utf8'), /"greeting": "hello"/)
})

const noNpm = existsSync('/usr/bin/npm') ? false : 'needs npm in /usr/bin'
const npmProject = {
  'package.json': '{"name":"p","version":"1.0.0","dependencies":{"shared":"file:shared"}}',
  'shared/package.json': '{"name":"shared","version":"1.0.0","scripts":{"prepare":"echo token=$TOKEN > installed"}}',
  'shared/index.js': 'module.exports = "from shared"',
}

test('with installDependencies, commands find packages that were installed once, without credentials', { skip: noNpm }, async t => {
  const apply = sh('cat shared/installed; echo "$TOKEN $PATH"; node -p "require(\'shared\')"')
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin', TOKEN: '!', npm_config_registry: 'http://127.0.0.1:9' }
  const more = { spec: spec({ apply, installDependencies: true }), env, credentialNames: ['TOKEN'] }
  const harness = await createEngineHarness(t, npmProject, more)
  const outcomes: string[] = []
  const host = { ...harness.context.dependencies, onInstalled: ({ source }: { source: string }) => void outcomes.push(source) }
  for (let count = 0; count < 2; count++) {
    harness.log.length = 0
    await run(await harness.nextRun({ dependencies: host }))
    const path = `${harness.context.directory}/node_modules/.bin:${harness.context.directory}/.venv/bin:${env.PATH}`
    assert.deepEqual(harness.log.slice(-3), ['token=', `! ${path}`, 'from shared'])
  }
  assert.deepEqual(outcomes, ['Installed', 'Cached'])
})

test('without a project, installDependencies is rejected', async t => {
  const harness = await createEngineHarness(t, { 'a.sh': '' }, { spec: spec({ apply: ['sh', 'a.sh'], installDependencies: true }) })
  await assert.rejects(engine.prepare(harness.context), rejectsWith('InvalidSpec', /has no project: it needs a package.json/, false))
})

test('when plan exits with 0, nothing is applied and the outputs of the last apply are returned', async t => {
  const harness = await createEngineHarness(
    t,
    {},
    {
      spec: spec({
        plan: sh('test -e "$OARLOCK_STATE" || exit 2'),
        apply: sh('echo "{}" > "$OARLOCK_STATE"; echo \'{"url": "u"}\' > "$OARLOCK_OUTPUTS"'),
      }),
    },
  )
  assert.equal((await run(harness.context)).changed, true)
  assert.deepEqual(await run(harness.context), { outputs: { url: { value: 'u', sensitive: false } }, resources: 1, changed: false })
})

test('what a plan prints is in the log once', async t => {
  const harness = await createEngineHarness(t, {}, { spec: spec({ plan: sh('echo would create a; exit 2'), apply: sh('true') }) })
  const { summary } = await engine.plan(harness.context)
  // The worker appends the summary to the log.
  assert.deepEqual([...harness.log, ...summary], ['would create a'])
})

test('without a plan command a Run always applies; the digest depends on source, variables and command', async t => {
  const harness = await createEngineHarness(t, { 'a.sh': 'true' }, { spec: spec({ apply: ['sh', 'a.sh'] }) })
  const first = await engine.plan(harness.context)
  assert.deepEqual([first.hasChanges, first.add], [true, 1])
  assert.equal((await engine.readPlan(harness.context, first.file ?? '')).digest, first.digest)
  const digests = [first.digest, (await engine.plan({ ...harness.context, variables: { x: 1 } })).digest]
  digests.push((await engine.plan({ ...harness.context, spec: spec({ apply: ['sh', './a.sh'] }) })).digest)
  digests.push((await engine.plan({ ...harness.context, sourceDigest: 'sha256:other' })).digest)
  assert.equal(new Set(digests).size, digests.length)
})

test('destroy runs the destroy command, and does nothing without one', async t => {
  const harness = await createEngineHarness(t, {}, { spec: spec({ apply: sh('true'), destroy: sh('echo destroyed') }) })
  assert.equal((await run(harness.context, { destroy: true })).resources, 0)
  assert.deepEqual(harness.log, ['destroyed'])
  const none = { ...harness.context, spec: spec({ apply: sh('true') }) }
  await run(none, { destroy: true })
  assert.equal(harness.log.at(-1), 'spec.command.destroy is not set, so nothing was done')
})

for (const { name, command, variables = {}, want } of [
  { name: 'a missing apply command', command: { plan: sh('true') }, want: ['InvalidSpec', /^spec.command.apply is required/, false] },
  {
    name: 'a plan that fails',
    command: { plan: sh('echo no luck >&2; exit 3'), apply: sh('true') },
    want: ['PlanFailed', /^spec.command.plan failed with exit code 3 \(0: no changes, 2: changes\): no luck$/, true],
  },
  {
    name: 'an apply that fails',
    command: { apply: sh('echo "$OARLOCK_VAR_secret is bad" >&2; exit 1') },
    variables: { secret: 'hunter2secret' },
    want: ['ApplyFailed', /^spec.command.apply failed with exit code 1: \*\*\* is bad$/, true],
  },
  {
    name: 'a program that does not exist',
    command: { apply: ['no-such-program-at-all'] },
    want: ['EngineNotFound', /^spec.command.apply: command "no-such-program-at-all" was not found in PATH/, false],
  },
  {
    name: 'a file that is not executable',
    command: { apply: ['./plain.sh'] },
    want: ['InvalidSpec', /is not executable.*\["sh", "apply.sh"\]$/, false],
  },
  {
    name: 'outputs that are not valid JSON',
    command: { apply: sh('echo "{oops hunter" > "$OARLOCK_OUTPUTS"') },
    want: ['InvalidOutputs', /^the file OARLOCK_OUTPUTS is not valid JSON[^h]*; write one object/, true],
  },
  {
    name: 'outputs that are too large',
    command: { apply: sh('head -c 1000000 /dev/zero > "$OARLOCK_OUTPUTS"') },
    want: ['InvalidOutputs', /has 1000000 bytes; at most 900000 are allowed$/, true],
  },
] as { name: string; command: EngineContext['spec']['command']; variables?: Record<string, string>; want: [string, RegExp, boolean] }[]) {
  test(`${name} is an error that names the field`, async t => {
    const harness = await createEngineHarness(
      t,
      { 'plain.sh': 'true' },
      { spec: spec(command), variables, sensitiveNames: Object.keys(variables) },
    )
    await assert.rejects(run(harness.context), rejectsWith(...want))
  })
}

test('a plan that is interrupted claims nothing about the state', async t => {
  const steps = { plan: sh('sleep 60 & echo started; wait'), apply: sh('true') }
  const harness = await createEngineHarness(t, {}, { spec: spec(steps) })
  const context = { ...harness.context, log: () => harness.abort.abort() }
  await assert.rejects(
    run(context),
    rejectsWith('Interrupted', /^spec.command.plan was interrupted during plan; it has planned nothing$/, true),
  )
})

test('an apply that is interrupted fails with reason Interrupted', async t => {
  // The shell itself waits: dash loses a SIGINT that arrives while it starts a program (observed about once in ten).
  const harness = await createEngineHarness(t, {}, { spec: spec({ apply: sh('sleep 60 & echo started; wait') }) })
  const context = { ...harness.context, log: () => harness.abort.abort() }
  await assert.rejects(
    run(context),
    rejectsWith(
      'Interrupted',
      /^spec.command.apply was interrupted during apply; only the command itself knows what it has changed$/,
      true,
    ),
  )
})

for (const { line, want } of [
  { line: '::progress 3/12 step three', want: { done: 3, total: 12, current: 'step three' } },
  { line: '::progress 0/1', want: { done: 0, total: 1 } },
  { line: '::progress 9/3 too far', want: { done: 3, total: 3, current: 'too far' } },
  { line: '::progress x/3', want: undefined },
  { line: 'see ::progress 1/2', want: undefined },
]) {
  test(`progress: ${line}`, () => assert.deepEqual(parseProgressLine(line), want))
}

for (const { name, text, want } of [
  { name: 'a list', text: '[]', want: /contains a list;/ },
  { name: 'null', text: 'null', want: /contains null;/ },
  { name: 'a name with a space', text: '{"a b": 1}', want: /has output name "a b"/ },
  {
    name: 'a value of sensitive that is a string',
    text: '{"a": {"value": 1, "sensitive": "yes"}}',
    want: /has a string in a.sensitive; it must be true or false$/,
  },
]) {
  test(`outputs: rejects ${name}`, () => {
    assert.throws(() => parseOutputs(text), want)
  })
}
test('outputs: an object with further fields is a plain value', () => {
  const value = { value: 1, sensitive: true, unit: 'm' }
  assert.deepEqual(parseOutputs(JSON.stringify({ a: value, b: { value: 2 } })), {
    a: { value, sensitive: false },
    b: { value: { value: 2 }, sensitive: false },
  })
  assert.deepEqual(parseOutputs(' \n'), {})
})

test('a plan that prints more than 16 MiB is interrupted and fails: it could not be compared with a later one', async t => {
  const script = `yes 'would change something' | head -c 17000000; sleep 60`
  const harness = await createEngineHarness(t, {}, { spec: spec({ plan: sh(script), apply: sh('true') }) })
  await engine.prepare(harness.context)
  const message = /^spec\.command\.plan printed more than 16 MiB; print a summary of the changes$/
  await assert.rejects(engine.plan(harness.context), rejectsWith('PlanFailed', message, false))
})
