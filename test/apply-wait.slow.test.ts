/** What commands that wait report about a Stack that does not continue: `oarlock` against one `oarlock up`. */
import { doesNotMatch, equal, match, ok } from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { StackSpec } from '../src/api/index.ts'
import { isConditionTrue } from '../src/kubernetes/object/index.ts'
import { useOarlock } from './support/oarlock-fixture.ts'
import { isUpToDate } from './support/stacks.ts'

describe('commands that wait', { concurrency: 2 }, () => {
  const up = useOarlock({ args: ['--max-workers', '2'] })
  const { dataDir, stacks, oarlock } = up

  const shell = (more: Partial<StackSpec> = {}): StackSpec => ({
    engine: 'command',
    source: { inline: { files: { note: 'files are required' } } },
    command: { plan: ['sh', '-c', 'echo change; exit 2'], apply: ['true'] },
    ...more,
  })

  /** Returns the path of a file with these Stacks. */
  const manifests = (file: string, specs: Record<string, StackSpec>): string => {
    const path = join(dataDir, `${file}.yaml`)
    const objects = Object.entries(specs).map(([name, spec]) => {
      return { apiVersion: 'oarlock.dev/v1alpha1', kind: 'Stack', metadata: { name, namespace: 'default' }, spec }
    })
    writeFileSync(path, objects.map(object => JSON.stringify(object)).join('\n---\n'))
    return path
  }

  test('apply --wait reports why a Stack is not Ready, and checks the others also after the time has passed', async () => {
    await stacks.create('ready', shell())
    await stacks.untilReady('ready')
    const path = manifests('stacks', { waits: shell({ dependsOn: [{ name: 'absent' }] }), ready: shell() })
    const applied = await oarlock('apply', '-f', path, '--wait', '--timeout', '4s')
    equal(applied.code, 6, applied.text)
    match(applied.stderr, /^ {2}stack\/waits is not Ready yet: DependencyNotFound: .*absent/m)
    match(applied.stderr, /^oarlock: timed out after 4s waiting for stack\/waits to be Ready: DependencyNotFound: /m)
    match(applied.stderr, /^stack\/ready is Ready$/m)
  })

  test('apply --wait ends when the Stacks that are not Ready only wait for an approval, with exit code 9', async () => {
    const slow = shell({ command: { apply: ['sleep', '3'] } })
    const path = manifests('manual', {
      'm-app': shell({ dependsOn: [{ name: 'm-database' }] }),
      'm-database': shell({ dependsOn: [{ name: 'm-network' }] }),
      'm-network': shell({ approval: 'Manual' }),
      'm-other': slow,
    })
    const startMs = performance.now()
    const applied = await oarlock('apply', '-f', path, '--wait', '--timeout', '2m')
    equal(applied.code, 9, applied.text)
    ok(performance.now() - startMs < 60_000)
    match(applied.stderr, /^stack\/m-other is Ready$/m)
    match(applied.stderr, /^oarlock: stack\/m-network: the plan of run\/\S+ awaits approval: /m)
    for (const name of ['m-app', 'm-database'])
      match(
        applied.stderr,
        new RegExp(
          `^oarlock: stack/${name} waits for stack/m-network, which awaits approval\\n  hint: show and approve its plan: oarlock approve m-network -n default$`,
          'm',
        ),
      )
    doesNotMatch(applied.text, /timed out/)

    // What is approved while another Stack works is waited for.
    await stacks.patch('m-other', { spec: { command: { apply: ['sleep', '20'] } } })
    const again = manifests('approved', {
      'm-app': shell({ dependsOn: [{ name: 'm-database' }] }),
      'm-other': shell({ command: { apply: ['sleep', '20'] } }),
    })
    const waiting = oarlock('apply', '-f', again, '--wait', '--timeout', '2m', '--force')
    await stacks.untilRun('m-other', 'phase Applying', ({ status }) => status?.phase === 'Applying')
    equal((await oarlock('approve', 'm-network', '--yes')).code, 0)
    const approved = await waiting
    equal(approved.code, 0, approved.text)
    match(approved.stderr, /^stack\/m-app is Ready$/m)
  })

  test('apply --wait ends when a Stack waits for one that has failed', async () => {
    const path = manifests('failed', {
      'f-app': shell({ dependsOn: [{ name: 'f-network' }] }),
      'f-network': shell({ command: { apply: ['false'] }, retry: { limit: 0 } }),
    })
    const applied = await oarlock('apply', '-f', path, '--wait', '--timeout', '2m')
    equal(applied.code, 1, applied.text)
    match(applied.stderr, /^oarlock: stack\/f-network failed: RetriesExhausted: /m)
    match(applied.stderr, /^oarlock: stack\/f-app waits for stack\/f-network, which failed: RetriesExhausted: /m)
  })

  test('approve reports that the Stack is suspended, and does not wait for it', async () => {
    await stacks.create('held', shell({ approval: 'Manual' }))
    await stacks.until('held', 'a plan', stack => isUpToDate(stack) && isConditionTrue(stack.status?.conditions, 'AwaitingApproval'))
    equal((await oarlock('suspend', 'held')).code, 0)
    await stacks.until('held', 'the suspension', isUpToDate)
    const approved = await oarlock('approve', 'held', '--yes', '--wait')
    equal(approved.code, 1, approved.text)
    match(approved.stderr, /stack\/held is suspended: the plan is applied after oarlock resume held -n default/)
    match(approved.stdout, /^stack\/held: plan \w+ approved$/m)
    match(
      approved.stderr,
      /stack\/held is suspended: the approved plan is not applied yet\n {2}hint: resume it: oarlock resume held -n default/,
    )
    doesNotMatch(approved.text, /timed out/)
    equal((await oarlock('resume', 'held')).code, 0)
    await stacks.untilReady('held')
  })
})
