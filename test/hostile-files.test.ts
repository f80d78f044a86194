/** Programs of a Run leave symlinks, pipes and endless files where their worker reads and writes. Real workers, shells and engines. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, type TestContext, test } from 'node:test'
import type { IsolationLevel, Run } from '../src/api/index.ts'
import { detectEngines } from '../src/execution/engine/index.ts'
import { probeIsolation } from '../src/execution/workspace/index.ts'
import { secretResource } from '../src/kubernetes/client/index.ts'
import { tmpfsUnavailable } from './support/mount-tmpfs.ts'
import { type AssignedRun, createWorkerHarness, shell } from './support/worker-harness.ts'

const harness = createWorkerHarness()
const { runsDir, execute, newPath, readState } = harness
const sandbox = await probeIsolation('Sandbox')
const engines = await detectEngines()
const engine = (['terraform', 'opentofu'] as const).find(name => engines[name]?.found)
const secret = 'of-the-worker'
const levels: IsolationLevel[] = sandbox.available ? ['Process', 'Sandbox'] : ['Process']

/** A file of the worker that a symlink of the Run names. */
function createVictim(): string {
  const path = newPath()
  writeFileSync(path, secret)
  return path
}

async function executeAt(t: TestContext, level: IsolationLevel, { stack, ...run }: AssignedRun): Promise<Run> {
  return (await execute(t, { ...run, stack: { timeout: '60s', isolation: { level }, ...stack } })).run
}

for (const level of levels) {
  test(`${level}: a symlink at the path of the command engine's plan is not written through`, async t => {
    const victim = createVictim()
    const attack = `for name in apply.plan.json variables.json terraform.tfstate; do ln -sf ${victim} "$(dirname $OARLOCK_OUTPUTS)/$name"; done`
    const plan = shell(`${attack}; echo change; exit 2`)
    const run = await executeAt(t, level, { stack: { state: 'External', command: { plan, apply: ['true'] } } })
    equal(run.status?.phase, 'Succeeded', JSON.stringify(run.status))
    equal(readFileSync(victim, 'utf8'), secret)
  })

  test(`${level}: pipes in place of plan, outputs and state do not block the worker`, { timeout: 60_000 }, async t => {
    const pipes = (...names: string[]) =>
      `cd "$(dirname $OARLOCK_OUTPUTS)"; for name in ${names.join(' ')}; do rm -f $name; mkfifo $name; done`
    const plan = shell(`${pipes('apply.plan.json', 'outputs.json')}; exit 2`)
    const planned = await executeAt(t, level, { stack: { state: 'External', command: { plan, apply: ['true'] } } })
    equal(planned.status?.phase, 'Succeeded', JSON.stringify(planned.status))
    const apply = shell(pipes('outputs.json'))
    const run = await executeAt(t, level, { stack: { command: { apply } } })
    deepEqual([run.status?.phase, run.status?.reason], ['Failed', 'InvalidOutputs'], JSON.stringify(run.status))
    match(run.status?.message ?? '', /OARLOCK_OUTPUTS is not a regular file/)
  })

  test(`${level}: pipes in place of both outputs and state fail the Run with the reason of the first failure`, {
    timeout: 60_000,
  }, async t => {
    const apply = shell('rm -f $OARLOCK_OUTPUTS $OARLOCK_STATE; mkfifo $OARLOCK_OUTPUTS $OARLOCK_STATE')
    const run = await executeAt(t, level, { stack: { command: { apply } } })
    deepEqual([run.status?.phase, run.status?.reason], ['Failed', 'InvalidOutputs'], JSON.stringify(run.status))
    match(run.status?.message ?? '', /OARLOCK_OUTPUTS is not a regular file; saving its state failed too: .* is not a regular file/)
  })

  test(`${level}: a symlink to a file of the worker is no output`, async t => {
    const victim = createVictim()
    writeFileSync(victim, `{"stolen":"${secret}"}`)
    const run = await executeAt(t, level, { stack: { command: { apply: shell(`ln -s ${victim} $OARLOCK_OUTPUTS`) } } })
    deepEqual([run.status?.reason, run.status?.outputs], ['InvalidOutputs', undefined], JSON.stringify(run.status))
  })

  test(`${level}: a huge sparse state is rejected without reading it`, async t => {
    const run = await executeAt(t, level, { stack: { command: { apply: shell('truncate -s 1T $OARLOCK_STATE') } } })
    equal(run.status?.phase, 'Failed', JSON.stringify(run.status))
    match(run.status?.message ?? '', /terraform.tfstate has 1099511627776 bytes; at most \d+ are allowed/)
  })

  test(`${level}: a directory tree deeper than a path can be is removed with the Run`, async t => {
    const deep = 'd=$(printf %0200d 0); i=0; while [ $i -lt 100 ]; do mkdir $d; cd $d; i=$((i+1)); done; echo x > file'
    const run = await executeAt(t, level, { stack: { command: { apply: shell(deep) } } })
    equal(run.status?.phase, 'Succeeded', JSON.stringify(run.status))
    ok(!existsSync(join(runsDir, run.metadata.uid)))
  })

  const skip = engine ? false : 'neither terraform nor opentofu is installed'
  test(`${level}: errored.tfstate is not written through a symlink at the path of the state`, { skip }, async t => {
    const victim = createVictim()
    const state = '{\\"version\\":4,\\"serial\\":9,\\"lineage\\":\\"x\\",\\"resources\\":[],\\"outputs\\":{}}'
    const attack = `printf '${state}' > errored.tfstate; rm -f ../scratch/terraform.tfstate; ln -s ${victim} ../scratch/terraform.tfstate`
    const main = `resource "terraform_data" "a" {\n  provisioner "local-exec" {\n    command = "${attack}"\n  }\n}\n`
    const run = await executeAt(t, level, { stack: { engine: engine!, source: { inline: { files: { 'main.tf': main } } } } })
    equal(readFileSync(victim, 'utf8'), secret)
    ok(!(await readState(run)).includes(secret))
  })
}

describe('a directory of a Run that cannot be removed', { skip: tmpfsUnavailable() ?? false }, () => {
  const password = 'value-of-a-secret'
  before(async () => {
    await harness.client.resource(secretResource).create({ metadata: { name: 'left', namespace: 'apps' }, stringData: { password } })
  })
  const executeAndClean = async (t: TestContext, script: string, clean: (root: string) => void) => {
    let root = ''
    t.after(() => root !== '' && clean(root))
    const { run } = await execute(t, {
      stack: {
        isolation: { level: 'Process' },
        variablesFrom: [{ secretRef: { name: 'left' } }],
        command: { apply: shell(`echo {} > $OARLOCK_STATE; ${script}`) },
      },
    })
    root = join(runsDir, run.metadata.uid)
    equal(run.status?.phase, 'Succeeded', JSON.stringify(run.status))
    return { run, root }
  }

  test('because something is mounted in it ends neither the Run nor the worker, and what is mounted is not deleted', async t => {
    const mounted = newPath()
    mkdirSync(mounted)
    writeFileSync(join(mounted, 'kept'), 'kept')
    const unmount = (root: string) => execFileSync('umount', [join(root, 'work', password)])
    const script = `mkdir $OARLOCK_VAR_password && mount --bind ${mounted} $OARLOCK_VAR_password`
    const { run, root } = await executeAndClean(t, script, unmount)
    match(
      run.status?.message ?? '',
      /^1 added.*; its directory on the worker could not be removed: something is mounted on .*\/work\/\*\*\*; unmount it$/,
    )
    equal(readFileSync(join(mounted, 'kept'), 'utf8'), 'kept')
    deepEqual(readdirSync(root, { recursive: true }).sort(), ['work', `work/${password}`, `work/${password}/kept`], 'nothing else is left')
  })

  test('because of an immutable file ends neither the Run nor the worker', async t => {
    const file = 'immutable'
    const clean = (root: string) => execFileSync('chattr', ['-i', join(root, 'work', file)])
    const { run, root } = await executeAndClean(t, `touch ${file} && chattr +i ${file}`, clean)
    match(run.status?.message ?? '', /^1 added.*; its directory on the worker could not be removed: .*EPERM/)
    deepEqual(readdirSync(root, { recursive: true }).sort(), ['work', `work/${file}`])
  })
})
