/** examples/command-engine, and the contract that docs/command-engine.md describes, through the command line. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { StackSpec } from '../src/api/index.ts'
import { useOarlock } from './support/oarlock-fixture.ts'
import { condition, isReady } from './support/stacks.ts'

const root = join(import.meta.dirname, '..')
const { dataDir, stacks, oarlock, succeeds } = useOarlock()
const zone = join(dataDir, 'zone')
mkdirSync(zone)

const read = (name: string) => readFileSync(join(zone, name), 'utf8').trim()
const awaitingApproval = (name: string) =>
  stacks.until(
    name,
    'approval',
    stack => condition(stack, 'AwaitingApproval')?.status === 'True' && stack.status?.observedGeneration === stack.metadata.generation,
  )

test('the zone is planned, approved, applied, corrected after drift, changed and destroyed', async () => {
  const file = join(dataDir, 'stack.yaml')
  const example = readFileSync(join(root, 'examples', 'command-engine', 'stack.yaml'), 'utf8')
  writeFileSync(file, example.replace('value: /tmp/zone', `value: ${zone}`))
  await succeeds('apply', '-f', file)
  await awaitingApproval('zone')
  deepEqual(readdirSync(zone), [])
  const approved = await succeeds('approve', 'zone', '--yes', '--wait')
  match(approved.text, /^\+ www 192\.0\.2\.1$/m)
  match(approved.text, /^\+ mail 192\.0\.2\.2$/m)
  const ready = await stacks.untilReady('zone')
  deepEqual([read('www'), read('mail')], ['192.0.2.1', '192.0.2.2'])
  deepEqual(ready.status?.outputs, { names: ['www', 'mail'] })
  deepEqual(JSON.parse((await succeeds('state', 'pull', 'zone')).stdout), { records: ['mail', 'www'] })

  // Drift: the plan shows it, and changes nothing.
  match((await succeeds('plan', 'zone')).text, /no changes/i)
  writeFileSync(join(zone, 'www'), '192.0.2.66\n')
  match((await succeeds('plan', 'zone')).text, /^~ www 192\.0\.2\.66 -> 192\.0\.2\.1$/m)
  equal(read('www'), '192.0.2.66')

  // What the Stack has not created is not deleted.
  writeFileSync(join(zone, 'foreign'), '192.0.2.9\n')
  await stacks.patch('zone', { spec: { variables: { records: { mail: null } } } })
  await awaitingApproval('zone')
  const changed = await succeeds('approve', 'zone', '--yes', '--wait')
  match(changed.text, /^- mail$/m)
  deepEqual(readdirSync(zone).sort(), ['foreign', 'www'])
  equal(read('www'), '192.0.2.1')

  const destroyed = await succeeds('destroy', 'zone', '--yes')
  match(destroyed.text, /: 0 to add, 0 to change, 1 to destroy$/m)
  await stacks.untilDeleted('zone')
  deepEqual(readdirSync(zone), ['foreign'])
})

const shell = (apply: string, more: Partial<StackSpec> = {}): StackSpec => ({
  engine: 'command',
  source: { inline: { files: { 'apply.sh': apply } } },
  command: { apply: ['sh', 'apply.sh'] },
  retry: { limit: 0 },
  ...more,
})

test('an approved plan is not applied if the plan command prints something else in the Apply Run', async () => {
  const seen = join(dataDir, 'seen')
  const plan = ['sh', '-c', `echo run $(cat ${seen} 2>/dev/null | wc -l); echo x >> ${seen}; exit 2`]
  await stacks.create('unstable', shell('echo applied', { approval: 'Manual', command: { plan, apply: ['sh', 'apply.sh'] } }))
  await awaitingApproval('unstable')
  await oarlock('approve', 'unstable', '--yes')
  const failed = await stacks.untilRun('unstable', 'the Apply', ({ spec, status }) => spec.type === 'Apply' && status?.phase === 'Failed')
  equal(failed.status?.reason, 'PlanOutdated')
})

test('the environment has what the page lists, and the working directory is the source', async () => {
  const names = [
    'OARLOCK_VARIABLES',
    'OARLOCK_OUTPUTS',
    'OARLOCK_STATE',
    'OARLOCK_STACK',
    'OARLOCK_NAMESPACE',
    'OARLOCK_RUN',
    'OARLOCK_EPOCH',
    'OARLOCK_RUN_TYPE',
    'OARLOCK_RUN_UID',
    'OARLOCK_WRITES_STACK_UID',
  ]
  const page = readFileSync(join(root, 'docs', 'command-engine.md'), 'utf8')
  for (const name of names) ok(page.includes(`\`${name}\``), name)
  await stacks.create(
    'environment',
    shell('env | sed "s/=.*//" | sort; echo "in $(ls)"; cat "$OARLOCK_VARIABLES"', { variables: { 'a-b': 'x', size: 3 } }),
  )
  await stacks.until('environment', 'Ready', isReady)
  const log = (await succeeds('logs', 'stack/environment')).stdout
  for (const name of [...names, 'OARLOCK_VAR_a_b', 'OARLOCK_VAR_size', 'HOME', 'TMPDIR', 'PATH']) match(log, new RegExp(`^${name}$`, 'm'))
  const undocumented = log.match(/^OARLOCK_\w+$/gm)?.filter(name => !page.includes(name) && !name.startsWith('OARLOCK_VAR_'))
  deepEqual(undocumented, [])
  match(log, /^in apply\.sh$/m)
  match(log, /"size": 3/)
})

for (const { name, apply, reason, message } of [
  { name: 'fails', apply: 'echo wrong zone >&2; exit 4', reason: 'ApplyFailed', message: /failed with exit code 4: wrong zone$/ },
  { name: 'outputs', apply: 'echo "[]" > "$OARLOCK_OUTPUTS"', reason: 'InvalidOutputs', message: /contains a list/ },
  {
    name: 'nojson',
    apply: 'echo "not json" > "$OARLOCK_STATE"',
    reason: 'UnexpectedFile',
    message: /contains no complete state, which is one JSON object/,
  },
])
  test(`a command that ${name}: the Run fails with ${reason}`, async () => {
    await stacks.create(name, shell(apply))
    const { status } = await stacks.untilRun(name, 'the end', run => run.status?.phase === 'Failed')
    equal(status?.reason, reason)
    match(status?.message ?? '', message)
  })
