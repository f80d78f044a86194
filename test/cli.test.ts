import { deepEqual, doesNotMatch, equal, match, ok } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import type { Run } from '../src/api/index.ts'
import { serviceAccountResource } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { accountKubeconfig } from './support/role-process.ts'

const launcher = join(import.meta.dirname, '..', 'bin', 'oarlock.js')
const dataDir = makeDataDir()
after(() => removeDirectory(dataDir))

type Result = { code: number | null; stdout: string; stderr: string }

/** Runs one command against the server of `dataDir`, without a terminal. */
async function oarlock(args: string[], { input = '', env = {} }: { input?: string; env?: NodeJS.ProcessEnv } = {}): Promise<Result> {
  const { KUBECONFIG: _, ...inherited } = process.env
  const child = spawn(process.execPath, [launcher, ...args], { env: { ...inherited, OARLOCK_DATA: dataDir, NO_COLOR: '1', ...env } })
  const result = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', text => (result.stdout += text))
  child.stderr.setEncoding('utf8').on('data', text => (result.stderr += text))
  child.stdin.end(input)
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, ...result }
}

const stack = (name: string, spec: string) => `apiVersion: oarlock.dev/v1alpha1
kind: Stack
metadata: { name: ${name}, namespace: default }
spec:
${spec.replace(/^/gm, '  ')}
`
const echo = (text: string) => `engine: command
source: { inline: { files: { a.txt: ${text} } } }
command: { apply: [sh, -c, 'cat a.txt; echo "{ \\"text\\": \\"${text}\\" }" > "$OARLOCK_OUTPUTS"'] }`

describe('without a server', () => {
  for (const [name, args, code, stderr] of [
    ['an unknown command, with a suggestion', ['aply'], 2, /Did you mean apply\?/],
    ['an unknown option', ['get', 'stacks', '--bogus'], 2, /unknown option '--bogus'\n.*"oarlock get --help" describes/],
    ['an unknown subcommand', ['token', 'rotate'], 2, /unknown command 'rotate'[\s\S]*"oarlock token --help" lists/],
    ['a data directory that cannot be created', ['up', '--data', '/proc/oarlock'], 7, /\/proc\/oarlock/],
    ['a missing argument', ['describe'], 2, /missing required argument 'type'/],
    ['an unknown output format', ['get', 'stacks', '-o', 'xml'], 2, /Allowed are json, yaml, wide, name and jsonpath=TEMPLATE/],
    ['an invalid duration', ['run', 'a', '--timeout', 'soon'], 2, /A duration is expected, such as 90s/],
    ['an invalid address', ['up', '--listen', 'nowhere'], 2, /address "nowhere" must be HOST:PORT/],
    ['a missing kubeconfig', ['get', 'stacks', '--kubeconfig', '/nowhere/kubeconfig'], 5, /cannot read kubeconfig \/nowhere\/kubeconfig/],
    ['a descending range of workers', ['simulate', '--workers', '20..10'], 2, /A range such as 20\.\.200, the smaller number first/],
    ['more tenants than Stacks', ['simulate', '--stacks', '5', '--tenants', '6'], 2, /--tenants 6 must not exceed --stacks 5/],
    ['a missing profile', ['simulate', '--profile', '/nowhere.json'], 2, /cannot read --profile \/nowhere\.json/],
    ['a worker without settings', ['worker', '--once'], 2, /OARLOCK_SERVER is not set/],
  ] as const) {
    test(`${name} exits with ${code}`, async () => {
      const result = await oarlock([...args])
      match(result.stderr, stderr)
      equal(result.code, code)
      equal(result.stdout, '')
    })
  }

  test('simulate prints a table or JSON, and writes a chart', async () => {
    const profile = join(dataDir, 'profile.json')
    const svg = join(dataDir, 'simulate.svg')
    mkdirSync(dataDir, { recursive: true })
    writeFileSync(profile, JSON.stringify({ workerStart: '1s', price: { currency: 'EUR' } }))
    const args = ['simulate', '--stacks', '100', '--hours', '2', '--workers', '2..8', '--profile', profile]
    const table = await oarlock([...args, '--svg', svg])
    equal(table.code, 0, table.stderr)
    match(
      table.stdout,
      /^100 Stacks: \d+ Runs in 2h, .*EUR\/day.*\nRecommendation: set max: \d .*\nCost: [\d.]+ EUR per day with at most \d workers\. For comparison, one Pod per Stack: 100 × 24h × 0\.05 = 120 EUR per day\n$/s,
    )
    match(readFileSync(svg, 'utf8'), /^<svg /)
    const json = await oarlock([...args, '-o', 'json'])
    const { sizes, recommendation } = JSON.parse(json.stdout)
    deepEqual(
      sizes.map(({ max }: { max: number }) => max),
      [2, 3, 4, 5, 6, 7, 8],
    )
    ok(table.stdout.includes(recommendation.text))
    writeFileSync(profile, JSON.stringify({ phases: { applying: { p50: '1' } } }))
    const wrong = await oarlock(args)
    match(wrong.stderr, /--profile .*profile\.phases\.applying\.p50/)
    equal(wrong.code, 2)
  })

  test('--help shows the exit codes', async () => {
    const { code, stdout } = await oarlock(['--help'])
    equal(code, 0)
    match(stdout, /Exit codes:\n {4}0 {2}success/)
  })

  for (const shell of ['bash', 'zsh', 'fish']) {
    test(`completion ${shell} names the commands`, async () => {
      const { code, stdout } = await oarlock(['completion', shell])
      equal(code, 0)
      match(stdout, /approve/)
    })
  }

  test('manifests prints the objects of an installation as YAML, policies after the CRDs', async () => {
    const { code, stdout } = await oarlock(['manifests'])
    equal(code, 0)
    const objects = parseAllDocuments(stdout).map(document => document.toJS() as { kind: string; metadata: { name: string } })
    const kinds = objects.map(({ kind }) => kind)
    deepEqual([...new Set(kinds)].slice(0, 3), ['Namespace', 'CustomResourceDefinition', 'ValidatingAdmissionPolicy'])
    ok(objects.some(({ kind, metadata }) => kind === 'ClusterRole' && metadata.name === 'oarlock:view'))
  })

  test('version -o json prints the version as JSON', async () => {
    const { stdout } = await oarlock(['version', '-o', 'json'])
    match(JSON.parse(stdout).version, /^\d+\.\d+\.\d+$/)
  })
})

describe('oarlock up that cannot start', () => {
  const up = (directory: string, ...args: string[]) =>
    oarlock(['up', '--data', directory, '--listen', '127.0.0.1:0', '--health-address', '127.0.0.1:0', ...args])

  test('reports the flag to change when a port is in use', async () => {
    const directory = makeDataDir()
    const holder = createServer().listen(0, '127.0.0.1')
    await once(holder, 'listening')
    const { port } = holder.address() as { port: number }
    for (const flag of ['--listen', '--health-address']) {
      const { code, stderr } = await up(directory, flag, `127.0.0.1:${port}`)
      equal(code, 8)
      match(stderr, new RegExp(`127.0.0.1:${port}.* is in use by another process`))
      match(stderr, new RegExp(`${flag} HOST:PORT`))
    }
    holder.close()
    removeDirectory(directory)
  })

  test('rejects a data directory that is a file', async () => {
    const directory = makeDataDir()
    const file = join(directory, 'file')
    writeFileSync(file, '')
    const { code, stderr } = await up(file)
    equal(code, 7)
    match(stderr, /file/)
    removeDirectory(directory)
  })

  test('rejects a data directory that is not writable', { skip: process.getuid?.() === 0 && 'root may write everywhere' }, async () => {
    const directory = makeDataDir()
    const locked = join(directory, 'locked')
    mkdirSync(locked, { mode: 0o500 })
    const { code, stderr } = await up(join(locked, 'data'))
    equal(code, 7)
    match(stderr, /failed to write/)
    chmodSync(locked, 0o700)
    removeDirectory(directory)
  })
})

describe('with a server', () => {
  let server: OarlockProcess
  before(async () => {
    server = await startOarlock(dataDir)
  })
  after(async () => {
    equal(await server.stop(), 0)
  })

  test('rejects a second process on the same data directory, and the first continues', async () => {
    const { code, stderr } = await oarlock(['up', '--data', dataDir, '--listen', '127.0.0.1:0', '--health-address', '127.0.0.1:0'])
    equal(code, 7)
    match(stderr, /in use/)
    equal((await oarlock(['get', 'stacks'])).code, 0)
  })

  test('a worker whose output is on a full disk executes its Run', { skip: !existsSync('/dev/full') && 'no /dev/full' }, async t => {
    const pool = 'apiVersion: oarlock.dev/v1alpha1\nkind: WorkerPool\nmetadata: { name: full }\nspec: { mode: External }\n'
    equal((await oarlock(['apply', '-f', '-'], { input: `${pool}---\n${stack('full-disk', `${echo('x')}\npool: full`)}` })).code, 0)
    const { stdout } = await oarlock(['token', 'create', '--pool', 'full'])
    const full = openSync('/dev/full', 'w')
    t.after(() => closeSync(full))
    const home = join(dataDir, 'full')
    const worker = spawn(process.execPath, [launcher, 'worker', '--server', server.client.server, '--name', 'full-1', '--once'], {
      stdio: ['ignore', full, full],
      env: {
        ...{ PATH: process.env.PATH, OARLOCK_TOKEN: stdout.trim() },
        ...{ OARLOCK_RUNS_DIR: join(home, 'runs'), OARLOCK_CACHE_DIR: join(home, 'cache') },
      },
    })
    t.after(() => worker.kill('SIGKILL'))
    deepEqual(await once(worker, 'exit'), [0, null])
    const { items } = JSON.parse((await oarlock(['get', 'runs', '-o', 'json'])).stdout) as { items: Run[] }
    const phases = items.filter(({ spec }) => spec.stackRef.name === 'full-disk').map(({ status }) => status?.phase)
    deepEqual(phases, ['Succeeded'])
    // The following tests expect to be alone.
    equal((await oarlock(['delete', 'stack', 'full-disk', '--force'])).code, 0)
    equal((await oarlock(['delete', 'workerpool', 'full'])).code, 0)
  })

  test('queue shows queued Runs with their reasons, as a table and as JSON', async () => {
    equal((await oarlock(['apply', '-f', '-'], { input: stack('waits', `${echo('x')}\npool: nowhere`) })).code, 0)
    const shown = await eventually(
      () => oarlock(['queue']),
      ({ stdout }) => stdout.includes('waits-'),
    )
    match(shown.stdout, /pool nowhere: 1 queued, 0 running/)
    match(shown.stdout, /POSITION +NAMESPACE +RUN +CLASS +WAITED +REASON\n1 +default +waits-\S+ +Change +\S+ +PoolNotFound\n/)
    const listed = await eventually(
      () => oarlock(['get', 'stacks', 'waits']),
      ({ stdout }) => !stdout.includes('Progressing'),
    )
    match(listed.stdout, /^NAME +READY +REASON .*\nwaits +False +PoolNotFound /)
    match(shown.stdout, /TENANT +WEIGHT +QUEUED +RUNNING +USED\ndefault +1 +1 +0 /)
    const { stdout } = await oarlock(['queue', '--pool', 'nowhere', '-o', 'json'])
    equal(JSON.parse(stdout).runs[0].message, 'WorkerPool nowhere not found; existing: default')
    match((await oarlock(['queue', '--limit', '9000'])).stderr, /limit must be an integer from 0 to 5000, got "9000"/)
    equal((await oarlock(['delete', 'stack', 'waits'])).code, 0)
  })

  test('queue without a permission names the role that grants it, and the option for one namespace', async () => {
    await server.client.resource(serviceAccountResource).create({ metadata: { name: 'ann', namespace: 'oarlock-system' } })
    const [cluster] = parse(readFileSync(server.kubeconfig, 'utf8')).clusters
    const caCertificate = Buffer.from(cluster.cluster['certificate-authority-data'], 'base64').toString()
    const kubeconfig = join(dataDir, 'ann')
    writeFileSync(kubeconfig, await accountKubeconfig(server.client, 'ann', caCertificate))
    const everywhere = await oarlock(['queue', '--kubeconfig', kubeconfig])
    equal(everywhere.code, 4)
    match(
      everywhere.stderr,
      /"system:serviceaccount:oarlock-system:ann" cannot list runs in all namespaces\n +hint: list the queue of a namespace that you may read: oarlock queue -n NAMESPACE; for all namespaces, the ClusterRole oarlock:view grants it: kubectl create clusterrolebinding NAME/,
    )
    const one = await oarlock(['queue', '-n', 'default', '--kubeconfig', kubeconfig])
    equal(one.code, 4)
    match(one.stderr, /cannot list runs in namespace default\n +hint: the ClusterRole oarlock:view grants it in namespace default: /)
  })

  test('apply, get, run, logs, describe and delete report what they did', async () => {
    const applied = await oarlock(['apply', '-f', '-'], { input: stack('hello', echo('ahoy')) })
    deepEqual([applied.code, applied.stdout], [0, 'stack.oarlock.dev/hello created\n'], applied.stderr)
    equal((await oarlock(['apply', '-f', '-'], { input: stack('hello', echo('ahoy')) })).stdout, 'stack.oarlock.dev/hello unchanged\n')
    const dryRun = async (text: string) => (await oarlock(['apply', '--dry-run', '-f', '-'], { input: stack('hello', echo(text)) })).stdout
    equal(await dryRun('goodbye'), 'stack.oarlock.dev/hello configured (dry run)\n')
    equal(await dryRun('ahoy'), 'stack.oarlock.dev/hello unchanged (dry run)\n')

    const run = await oarlock(['run', 'hello', '--wait', '--timeout', '60s'])
    equal(run.code, 0, run.stderr)
    match(run.stdout, /stack\/hello (applied|is up to date)/)

    const got = await oarlock(['get', 'stacks', '-o', 'json'])
    const [hello] = JSON.parse(got.stdout).items
    deepEqual(hello.status.outputs, { text: 'ahoy' })
    match((await oarlock(['get', 'stk/hello'])).stdout, /^NAME {3,}READY.*\nhello +True/)
    match((await oarlock(['get', 'stacks', '-A'])).stdout, /^NAMESPACE/)
    match((await oarlock(['get', 'stacks', '-o', 'name'])).stdout, /^stack\.oarlock\.dev\/hello$/m)
    match((await oarlock(['get', 'oarlock', '-A'])).stdout, /run\.oarlock\.dev\/hello-/)

    match((await oarlock(['logs', 'hello'])).stdout, /ahoy/)
    match((await oarlock(['logs', '-f', 'stack/hello'])).stdout, /ahoy/)
    const described = await oarlock(['describe', 'stack/hello'])
    match(described.stdout, /Conditions:\n[\s\S]*Ready +True/)
    match(described.stdout, /Runs:\n {2}NAME +TYPE +PHASE +TRIGGER +AGE +MESSAGE\n {2}hello-\S+ +Apply +Succeeded +\S+ +\d/)

    const planned = await oarlock(['plan', 'hello', '--timeout', '60s'])
    equal(planned.code, 0, planned.stderr)
    match(planned.stdout, /stack\/hello: plan/)

    const deleted = await oarlock(['delete', 'stack', 'hello', '--timeout', '60s'])
    deepEqual([deleted.code, deleted.stdout], [0, 'stack.oarlock.dev/hello deleted\n'], deleted.stderr)
  })

  test('a missing object exits with 3, with the namespace or a similar name as hint', async () => {
    await oarlock(['apply', '-f', '-'], { input: stack('nearby', echo('x')) })
    for (const [args, hint] of [
      [['logs', 'neraby'], /did you mean nearby\?/],
      [['plan', 'nearby', '-n', 'kube-system'], /add -n default/],
      [['get', 'stcks'], /did you mean stacks\?/],
      [['get', 'stack', 'neraby'], /did you mean nearby\?/],
      [['get', 'stack/neraby', '-o', 'yaml'], /did you mean nearby\?/],
      [['get', 'stacks', 'nearby', '-n', 'kube-system'], /add -n default/],
      [['describe', 'stack/nope'], /"nope" not found in namespace default/],
      [['describe', 'run/nope'], /run "nope" not found in namespace default/],
      [['delete', 'stack', 'neraby'], /did you mean nearby\?/],
      [['logs', 'run/nope'], /oarlock get runs -A/],
      [['destroy', 'nope', '--yes'], /"nope" not found/],
    ] as const) {
      const { code, stderr } = await oarlock([...args])
      equal(code, 3, `${args.join(' ')}: ${stderr}`)
      match(stderr, hint)
    }
    for (const [args, problem] of [
      [['describe', 'stack'], /a name is missing/],
      [['delete', 'stack/nearby/x'], /expected TYPE NAME or TYPE\/NAME/],
    ] as const) {
      const { code, stderr } = await oarlock([...args])
      equal(code, 2, `${args.join(' ')}: ${stderr}`)
      match(stderr, problem)
    }
    const destroyed = await oarlock(['destroy', 'nearby', '--yes', '--timeout', '60s'])
    deepEqual([destroyed.code, destroyed.stdout], [0, 'stack/nearby destroyed\n'], destroyed.stderr)
  })

  test('plan reports why a Stack starts no Run, and how long it has waited', async () => {
    await oarlock(['apply', '-f', '-'], { input: stack('dependent', `${echo('x')}\ndependsOn: [{ name: absent }]`) })
    const { code, stderr } = await oarlock(['plan', 'dependent', '--timeout', '4s'])
    equal(code, 6, stderr)
    match(stderr, /stack\/dependent has started no Run yet: \w+: .*absent/)
    match(stderr, /timed out after 4s waiting for stack\/dependent to start a Run/)
    equal((await oarlock(['delete', 'stack/dependent'])).code, 0)
  })

  test('reports each invalid field of an object, and applies the others', async () => {
    const input = `${stack('bad', 'engine: terrafrom\nsource: { inline: { files: { a: b } } }')}---\n${stack('good', `${echo('x')}\nsuspend: true`)}`
    const { code, stdout, stderr } = await oarlock(['apply', '-f', '-'], { input })
    equal(code, 4)
    match(stderr, /stdin:1: .*bad.*is invalid\n {2}spec\.engine: /)
    equal(stdout, 'stack.oarlock.dev/good created\n')
    equal((await oarlock(['delete', 'stack/good'])).code, 0)
  })

  const awaitingApproval = `engine: command
approval: Manual
source: { inline: { files: { a.txt: x } } }
command: { plan: [sh, -c, 'echo would write; exit 2'], apply: [echo, written] }`

  test('approve shows the plan, accepts only the pending one, and requires --yes without a terminal', async () => {
    await oarlock(['apply', '-f', '-'], { input: stack('careful', awaitingApproval) })
    const status = () => oarlock(['get', 'stack/careful', '-o', 'json']).then(({ stdout }) => JSON.parse(stdout).status)
    const planned = await oarlock(['plan', 'careful', '--timeout', '60s'])
    equal(planned.code, 0, planned.stderr)
    for (let tries = 0; !(await status())?.plan; tries++) ok(tries < 50, 'no plan awaits approval')

    equal((await oarlock(['approve', 'careful'])).code, 2)
    const other = await oarlock(['approve', 'careful', '--plan', 'sha256:0000000000000000', '--yes'])
    equal(other.code, 4)
    match(other.stderr, /is not the plan that awaits approval/)

    const { digest } = (await status()).plan
    const approved = await oarlock(['approve', 'careful', '--plan', digest, '--yes', '--wait', '--timeout', '60s'])
    equal(approved.code, 0, approved.stderr)
    match(approved.stderr, /would write/)
    match(approved.stdout, /stack\/careful applied/)
    const described = await oarlock(['describe', 'stack', 'careful'])
    match(described.stdout, /^Approval: +of the plan of run\/careful-\S+ by oarlock:admin at 20/m)
    equal((await oarlock(['approve', 'careful', '--yes'])).code, 1)
  })

  test('reject ends the plan that awaits approval, until another one is requested', async () => {
    await oarlock(['apply', '-f', '-'], { input: stack('unwanted', awaitingApproval) })
    const plan = () => oarlock(['get', 'stack/unwanted', '-o', 'json']).then(({ stdout }) => JSON.parse(stdout).status?.plan)
    for (let tries = 0; !(await plan()); tries++) ok(tries < 200, 'no plan awaits approval')
    equal((await oarlock(['reject', 'unwanted'])).code, 2)
    const reason = 'not\u001b[2K\u001b]8;;https://evil.example\u001b\\on\u202ea\u001b[32m\r\nReady: True'
    const shown = String.raw`not\u001b[2K\u001b]8;;https://evil.example\u001b\on\u202ea\u001b[32m`
    const rejected = await oarlock(['reject', 'unwanted', '--reason', reason, '--yes'])
    equal(rejected.code, 0, rejected.stderr)
    match(rejected.stdout, /stack\/unwanted: plan [0-9a-f]{12} rejected/)
    const { runName } = await plan()
    for (let tries = 0; ; tries++) {
      const { stdout } = await oarlock(['describe', 'stack', 'unwanted'])
      if (/Stalled +True +PlanRejected /.test(stdout)) {
        const wide = await oarlock(['get', 'stack/unwanted', '-o', 'wide'])
        for (const text of [stdout, wide.stdout]) {
          ok(text.includes(`was rejected by user "oarlock:admin": ${shown} Ready: True. It is not applied`), text)
          doesNotMatch(text, /[^\P{Cc}\n]|\p{Bidi_Control}/u)
        }
        match(stdout, /^Rejection: +of this plan by oarlock:admin at 20/m)
        ok(stdout.includes(`: ${shown}\\r\\nReady: True\n`), stdout)
        ok(stdout.includes(`oarlock.dev/rejection-reason=${shown}\\r\\nReady: True\n`), stdout)
        break
      }
      ok(tries < 50, stdout)
    }
    const late = await oarlock(['approve', 'unwanted', '--yes'])
    equal(late.code, 1, late.stderr)
    match(late.stderr, /no plan awaiting approval/)
    const again = await oarlock(['plan', 'unwanted', '--timeout', '60s'])
    equal(again.code, 0, again.stderr)
    for (let tries = 0; (await plan())?.runName === runName; tries++) ok(tries < 50, 'no other plan awaits approval')
    equal((await oarlock(['approve', 'unwanted', '--yes', '--wait', '--timeout', '60s'])).code, 0)
  })

  test('cancel interrupts an active Run', async () => {
    const spec = `engine: command
retry: { limit: 0 }
source: { inline: { files: { a.txt: x } } }
command: { apply: [sh, -c, 'echo started; exec sleep 300'] }`
    await oarlock(['apply', '-f', '-'], { input: stack('long', spec) })
    const runs = () =>
      oarlock(['get', 'runs', '-o', 'json']).then(
        ({ stdout }) => JSON.parse(stdout).items as { metadata: { name: string }; status?: { phase: string } }[],
      )
    const isApplying = async () =>
      (await runs()).some(({ metadata, status }) => metadata.name.startsWith('long-') && status?.phase === 'Applying')
    for (let tries = 0; !(await isApplying()); tries++) ok(tries < 100, 'the run did not start')
    const canceled = await oarlock(['cancel', 'long', '--wait', '--timeout', '60s'])
    equal(canceled.code, 0, canceled.stderr)
    match(canceled.stdout, /ended as Canceled/)
    equal((await oarlock(['cancel', 'long'])).code, 1)
    equal((await oarlock(['destroy', 'long', '--yes', '--timeout', '60s'])).code, 0)
  })

  test('doctor reports what it found', async () => {
    const { code, stdout } = await oarlock(['doctor', '-o', 'json'])
    const states = Object.fromEntries(JSON.parse(stdout).map(({ what, state }: { what: string; state: string }) => [what, state]))
    deepEqual([code, states.node, states['engine manifests'], states['API server']], [0, 'ok', 'ok', 'ok'])
  })

  test('doctor --kubeconfig finds nothing to repair in oarlock up', async () => {
    const { code, stdout } = await oarlock(['doctor', '--kubeconfig', join(dataDir, 'kubeconfig'), '-o', 'json'])
    // Other tests of this file create join tokens that expire within a day.
    const findings = (JSON.parse(stdout) as { what: string; state: string }[]).filter(({ what }) => what !== 'join tokens')
    deepEqual([code, findings.filter(({ state }) => state !== 'ok')], [0, []])
  })
})
