/** Commands of everyday work, as a user types them: `oarlock` against one `oarlock up`. */
import { deepEqual, doesNotMatch, equal, match, ok } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { type StackSpec, workerPoolResource, workerResource } from '../src/api/index.ts'
import { eventually } from './support/eventually.ts'
import { useOarlock } from './support/oarlock-fixture.ts'
import { StackFixture } from './support/stacks.ts'

const command = (script: string, more: Partial<StackSpec> = {}): StackSpec => ({
  engine: 'command',
  command: { apply: ['sh', '-c', script] },
  source: { inline: { files: { f: '' } } },
  ...more,
})

describe('everyday work', { concurrency: 3 }, () => {
  const up = useOarlock({ args: ['--max-workers', '3'] })
  const { dataDir, stacks, oarlock, succeeds } = up

  before(async () => {
    for (const name of ['suspended', 'empty', 'other'])
      await up.client.request({ method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name } } })
  })

  test('suspend and resume: by name, by selector, and all of a namespace', async () => {
    const own = new StackFixture(up.client, 'suspended')
    for (const name of ['a', 'b', 'c'])
      await own.stacks.create({
        metadata: { name, namespace: 'suspended', labels: { tier: name === 'a' ? 'web' : 'db' } },
        spec: command('true'),
      })
    for (const name of ['a', 'b', 'c']) await own.untilReady(name)

    equal((await succeeds('suspend', 'a', 'stack/b', '-n', 'suspended')).text, 'stack/a suspended\nstack/b suspended\n')
    equal(
      (await succeeds('suspend', '--all', '-n', 'suspended')).text,
      'stack/a is already suspended\nstack/b is already suspended\nstack/c suspended\n',
    )
    await own.patch('a', { spec: { variables: { x: 1 } } })
    await own.until('a', 'the change to be observed', ({ metadata, status }) => status?.observedGeneration === metadata.generation)
    equal((await own.runsOf('a')).length, 1, 'a suspended Stack starts no Run')
    const refused = await oarlock('run', 'a', '-n', 'suspended')
    equal(refused.code, 1, refused.text)
    match(
      refused.stderr,
      /no Run of stack\/a was requested: the Stack is suspended\n.*hint: resume it first: oarlock resume a -n suspended/,
    )

    equal((await succeeds('resume', '-l', 'tier=web', '-n', 'suspended')).text, 'stack/a resumed\n')
    await own.untilReady('a')
    equal((await own.runsOf('a')).length, 2)
    match((await succeeds('resume', '--all', '-A')).text, /^stack\/b -n suspended resumed$/m)
    equal((await succeeds('resume', 'b', '-n', 'suspended')).text, 'stack/b is not suspended\n')
    match((await succeeds('suspend', '--all', '-n', 'empty')).text, /^no Stacks found in namespace empty; use -A for all namespaces$/m)

    for (const { args, code, message } of [
      { args: ['suspend'], code: 2, message: /specify Stacks by name, or with --all, or with --selector/ },
      { args: ['suspend', 'a', '--all'], code: 2, message: /specify Stacks by name/ },
      { args: ['resume', 'a', '-A'], code: 2, message: /cannot be combined with --all-namespaces/ },
      {
        args: ['suspend', 'a', 'bb', '-n', 'suspended'],
        code: 3,
        message: /stack "bb" not found in namespace suspended\n.*did you mean b\?/,
      },
    ]) {
      const wrong = await oarlock(...args)
      equal(wrong.code, code, wrong.text)
      match(wrong.stderr, message)
    }
    equal((await own.get('a')).spec.suspend, false, 'all names are checked before the first change')
  })

  test('suspend: the active Run continues', async () => {
    await stacks.create('busy', command('sleep 4'))
    await stacks.until('busy', 'a reported Run', ({ status }) => status?.lastRun?.phase === 'Applying')
    match(
      (await succeeds('suspend', 'busy')).text,
      /^stack\/busy suspended\n {2}run\/busy-\w+-1 is active and continues; to stop it: oarlock cancel busy -n default\n$/,
    )
    await stacks.untilRun('busy', 'success', ({ status }) => status?.phase === 'Succeeded')
  })

  test('get -w prints the objects, then each change, until it is interrupted', async t => {
    const watch = (...args: string[]) => {
      const child = spawn(process.execPath, [join(import.meta.dirname, '..', 'bin', 'oarlock.js'), 'get', ...args, '-n', 'other'], {
        env: { ...process.env, KUBECONFIG: up.kubeconfig, NO_COLOR: '1' },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      let output = ''
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
      const until = async (pattern: RegExp) => await eventually(() => Promise.resolve(pattern.test(output)), `${pattern}`, 20_000)
      const stop = async () => {
        const closed = once(child, 'close')
        child.kill('SIGINT')
        await closed
        return output
      }
      t.after(() => child.kill('SIGKILL'))
      return { until, stop, has: (pattern: RegExp) => pattern.test(output) }
    }
    const own = new StackFixture(up.client, 'other')
    await own.create('first', command('true'))
    await own.untilReady('first')
    const table = watch('stacks', '-w')
    const names = watch(
      'stacks',
      '--watch-only',
      '-o',
      'jsonpath={.metadata.name}={.spec.suspend}{"\\n"}',
      '--field-selector',
      'metadata.name=second',
    )
    await table.until(/^NAME .*\nfirst .*\n/)
    await own.create('second', command('true', { suspend: true }))
    await table.until(/^second +\S+ +Suspended/m)
    // It prints nothing until it has listed the objects, so the change is repeated.
    let changes = 0
    await eventually(
      async () => {
        await own.patch('second', { metadata: { labels: { change: String(++changes) } } })
        return names.has(/^second=true$/m)
      },
      'a change of "second"',
      20_000,
    )
    await own.stacks.delete('first', { namespace: 'other' })
    const rows = await table.stop()
    equal(rows.match(/^NAME/gm)?.length, 1, rows)
    doesNotMatch(await names.stop(), /first/)

    for (const { args, code, message } of [
      { args: ['stacks,runs', '-w'], code: 2, message: /only one type can be watched/ },
      { args: ['stacks', '-w', '--sort-by', '.metadata.name'], code: 2, message: /--watch cannot be combined with --sort-by/ },
      { args: ['stacks', '-o', 'jsonpath={.a'], code: 2, message: /The template is not valid: \{ at position 1 is not closed/ },
      { args: ['stacks', '-o', 'xml'], code: 2, message: /Allowed are json, yaml, wide, name and jsonpath=TEMPLATE/ },
      { args: ['stacks', '--sort-by', '.spec.none'], code: 2, message: /no object has the field \.spec\.none/ },
      { args: ['stack', 'secnd', '-w'], code: 3, message: /not found/ },
      { args: ['stakcs'], code: 3, message: /did you mean stacks\?/ },
    ]) {
      const wrong = await oarlock('get', ...args, '-n', 'other')
      equal(wrong.code, code, `${args.join(' ')}: ${wrong.text}`)
      match(wrong.stderr, message)
    }
    match((await succeeds('get', 'stacks', '-n', 'other', '--no-headers', '--show-labels')).stdout, /^second +.* change=\d+\n$/)
  })

  test('logs: --timestamps, --since, --since-time and --previous', async () => {
    await stacks.create('logged', command('echo first; sleep 3; echo second'))
    await eventually(async () => (await stacks.runsOf('logged')).length > 0, 'the Run', 20_000)
    const follow = succeeds('logs', '-f', 'logged', '--timestamps')
    await stacks.untilReady('logged')
    const { stdout } = await succeeds('logs', 'logged', '--timestamps')
    for (const line of stdout.trimEnd().split('\n')) match(line, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ /)
    const timeOf = (text: string) => Date.parse(new RegExp(`^(\\S+) ${text}$`, 'm').exec(stdout)?.[1] ?? '')
    ok(timeOf('second') - timeOf('first') >= 2_000, stdout)
    equal((await follow).stdout, stdout, 'the same with -f')

    const since = new Date(timeOf('second')).toISOString()
    const later = await succeeds('logs', 'logged', '--since-time', since)
    match(later.stdout, /^second$/m)
    doesNotMatch(later.stdout, /^first$/m)
    equal((await succeeds('logs', 'logged', '--since', '1s', '--tail', '5')).stdout.includes('first'), false)
    match((await succeeds('logs', 'logged', '--since', '1h')).stdout, /^first$/m)

    match((await oarlock('logs', 'logged', '--previous')).stderr, /has only one Run/)
    await succeeds('run', 'logged', '--wait')
    const previous = await succeeds('logs', 'logged', '--previous')
    match(previous.stderr, /run\/logged-\w+-1$/m)
    for (const [args, message] of [
      [['--since', '1h', '--since-time', since], /cannot be combined/],
      [['--since-time', 'today'], /A time such as 2026-01-31T12:00:00Z is expected/],
    ] as const) {
      const wrong = await oarlock('logs', 'logged', ...args)
      equal(wrong.code, 2, wrong.text)
      match(wrong.stderr, message)
    }
    // A log that an earlier version has stored.
    const { metadata } = (await stacks.runsOf('logged')).at(-1)!
    rmSync(join(dataDir, 'logs', 'default', `${metadata.name}.times`))
    const old = await succeeds('logs', 'logged', '--timestamps', '--since', '1s')
    match(old.stderr, /this log has no times: an earlier version of Oarlock stored it/)
    match(old.stdout, /^-{20} first$/m)
  })

  test('cordon: a worker gets no other Run until it is uncordoned', async () => {
    await up.client.resource(workerPoolResource).create({
      metadata: { name: 'fixed' },
      spec: { mode: 'Process', lifecycle: 'Warm', min: 1, max: 1 },
    })
    const worker = await eventually(
      async () => {
        const { items } = await up.client.resource(workerResource).listAll()
        return items.find(({ spec, status }) => spec.pool === 'fixed' && status?.phase === 'Ready')
      },
      'a worker of the pool',
      20_000,
    )
    const { name } = worker.metadata
    equal((await succeeds('cordon', name)).text, `worker/${name} cordoned\n`)
    equal((await succeeds('cordon', '--pool', 'fixed')).text, `worker/${name} is already cordoned\n`)
    match((await succeeds('get', 'workers', name)).stdout, /^NAME +PHASE +REASON +CORDON .*\n\S+ +Ready +<none> +true /)
    await stacks.create('waits', command('true', { pool: 'fixed' }))
    const waiting = await stacks.untilRun('waits', 'the reason', ({ status }) => status?.message?.includes('cordoned') === true)
    match(waiting.status?.message ?? '', new RegExp(`; worker ${name} is cordoned$`))

    equal((await succeeds('uncordon', name)).text, `worker/${name} uncordoned\n`)
    await stacks.untilReady('waits')
    deepEqual(
      (await stacks.runsOf('waits')).map(({ spec }) => spec.workerName),
      [name],
      'the same worker executes it',
    )
    equal((await succeeds('uncordon', name)).text, `worker/${name} is neither cordoned nor draining\n`)

    equal((await oarlock('cordon')).code, 2)
    const unknown = await oarlock('cordon', `${name}x`)
    equal(unknown.code, 3)
    match(unknown.stderr, new RegExp(`did you mean ${name}\\?`))
  })
})
