/** Oarlock through the real kubectl, as somebody uses it who has never heard of ours: what works, and how it looks. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { eventually } from './support/eventually.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { type ProgramResult, runProgram, skipWithout } from './support/run-program.ts'

const manifest = (name: string, text: string, namespace = 'default') => `apiVersion: oarlock.dev/v1alpha1
kind: Stack
metadata:
  name: ${name}
  namespace: ${namespace}
spec:
  engine: command
  source:
    inline:
      files:
        text.json: '{"text": "${text}"}'
  command:
    apply: [sh, -c, 'cp text.json "$OARLOCK_OUTPUTS"']
`

describe('kubectl', { skip: skipWithout('kubectl'), concurrency: 3 }, () => {
  const dataDir = makeDataDir()
  let oarlock: OarlockProcess
  const environment = () => ({ KUBECONFIG: oarlock.kubeconfig, KUBECACHEDIR: join(dataDir, 'kubectl-cache') })
  const kubectl = (args: string, input = ''): Promise<ProgramResult> =>
    runProgram('kubectl', args.split(' '), { input, env: environment() })
  /** What it prints when all is well: nothing on stderr, no warning. */
  const says = async (args: string, input = ''): Promise<string> => {
    const { code, stdout, stderr } = await kubectl(args, input)
    deepEqual([code, stderr], [0, ''], `kubectl ${args}`)
    return stdout
  }
  const ready = (name: string) => says(`wait --for=condition=Ready stack/${name} --timeout=40s`)

  before(async () => {
    oarlock = await startOarlock(dataDir, ['--max-workers', '4'])
    await says('apply -f -', manifest('hello', 'ahoy'))
    await ready('hello')
  })
  after(async () => {
    equal(await oarlock.stop(), 0)
    removeDirectory(dataDir)
  })

  test('apply creates, leaves alone and configures; diff says what would change', async () => {
    equal(await says('apply -f -', manifest('applied', 'one')), 'stack.oarlock.dev/applied created\n')
    equal(await says('apply -f -', manifest('applied', 'one')), 'stack.oarlock.dev/applied unchanged\n')
    equal(await says('diff -f -', manifest('applied', 'one')), '')
    const different = await kubectl('diff -f -', manifest('applied', 'two'))
    equal(different.code, 1, different.stderr)
    match(different.stdout, /^-\s+text\.json: '\{"text": "one"\}'\n\+\s+text\.json: '\{"text": "two"\}'$/m)
    equal(await says('apply -f -', manifest('applied', 'two')), 'stack.oarlock.dev/applied configured\n')
    equal(
      await says('wait --for=jsonpath={.status.outputs.text}=two stk/applied --timeout=40s'),
      'stack.oarlock.dev/applied condition met\n',
    )
    equal(await says('delete stack applied --timeout=40s'), 'stack.oarlock.dev "applied" deleted\n')
    const gone = await kubectl('get stack applied')
    deepEqual([gone.code, gone.stderr], [1, 'Error from server (NotFound): stacks.oarlock.dev "applied" not found\n'])
  })

  test('apply --server-side, and who owns what', async () => {
    const input = manifest('served', 'one')
    equal(await says('apply --server-side -f -', input), 'stack.oarlock.dev/served serverside-applied\n')
    equal(await says('apply --server-side -f -', input), 'stack.oarlock.dev/served serverside-applied\n')
    const conflict = await kubectl('apply --server-side --field-manager=other -f -', manifest('served', 'two'))
    equal(conflict.code, 1)
    match(conflict.stderr, /conflict with "kubectl": \.spec\.source\.inline\.files\.text\.json/)
    await says('apply --server-side --field-manager=other --force-conflicts -f -', manifest('served', 'two'))
    match(await says('get stack served -o yaml --show-managed-fields'), /manager: other\n\s+operation: Apply/)
    await says('delete stack served --timeout=40s')
  })

  test('create, replace, and a namespace of its own', async () => {
    equal(await says('create namespace crew'), 'namespace/crew created\n')
    equal(await says('create -f -', manifest('made', 'one', 'crew')), 'stack.oarlock.dev/made created\n')
    equal(await says('wait --for=condition=Ready stack/made -n crew --timeout=40s'), 'stack.oarlock.dev/made condition met\n')
    equal(await says('replace -f -', manifest('made', 'two', 'crew')), 'stack.oarlock.dev/made replaced\n')
    match(await says('get secret made-outputs -n crew -o jsonpath={.data}'), /"text":/)
    await says('wait --for=jsonpath={.status.outputs.text}=two stack/made -n crew --timeout=40s')
    equal(await says('delete stack made -n crew --timeout=40s'), 'stack.oarlock.dev "made" deleted\n')
    equal(await says('delete namespace crew --timeout=40s'), 'namespace "crew" deleted\n')
    equal(await says('get stacks,runs,secrets -n crew --ignore-not-found'), '')
  })

  test('a namespace deleted under its Stacks: they say what to do, and then let it go', async () => {
    await says('create namespace sunk')
    await says('create -f -', manifest('made', 'one', 'sunk'))
    await says('wait --for=condition=Ready stack/made -n sunk --timeout=40s')
    await says('delete namespace sunk --wait=false')
    await says('wait --for=condition=Stalled stack/made -n sunk --timeout=20s')
    match(
      await says('get stack made -n sunk -o jsonpath={.status.conditions[?(@.type=="Ready")].message}'),
      /^Namespace sunk is being deleted .* Set spec\.deletion to Orphan/,
    )
    await says('patch stack made -n sunk --type=merge -p {"spec":{"deletion":"Orphan"}}')
    await says('wait --for=delete namespace/sunk --timeout=20s')
  })

  test('get in every shape, in 80 columns', async () => {
    const lines = (await says('get stacks')).split('\n')
    match(lines[0] ?? '', /^NAME +ENGINE +READY +REASON +AGE$/)
    ok(
      lines.some(line => /^hello +command +True +Applied +\d+s$/.test(line)),
      lines.join('\n'),
    )
    match(
      await says('get stk hello -o wide'),
      /^NAME +ENGINE +READY +REASON +AGE +RESOURCES +RUN +MESSAGE\nhello .* hello-\w{5}-1 +Applied: 1 added/,
    )
    match(
      await says('get runs -l oarlock.dev/stack=hello'),
      /^NAME +STACK +TYPE +PHASE +REASON +AGE\nhello-\w{5}-1 +hello +Apply +Succeeded +\d+s\n$/,
    )
    match(await says('get runs --field-selector=metadata.namespace=default -A'), /^NAMESPACE/)
    match(
      await says('get workerpools'),
      /^NAME +MODE +QUEUED +BUSY +WORKERS +DESIRED +MAX +READY +AGE\ndefault +Process +\d+ +\d+ +\d+ +\d+ +4 +True +\d+s\n$/,
    )
    const all = await says('get stacks,runs,workers -A')
    match(all, /^NAMESPACE +NAME +ENGINE/)
    match(all, /stack\.oarlock\.dev\/hello +command/)
    match(all, /run\.oarlock\.dev\/hello-\w{5}-1 +hello +Apply/)
    match(await says('get oarlock -A'), /workerpool\.oarlock\.dev\/default/)
    for (const what of ['stacks -A', 'runs -A', 'workerpools', 'workers', 'events']) {
      const output = (await kubectl(`get ${what}`)).stdout
      const wide = output.split('\n').filter(line => line.length > 80 && !/message|Run |Created/i.test(line))
      deepEqual(wide, [], `kubectl get ${what} is wider than 80 columns`)
    }
    equal(await says('get stack hello -o jsonpath={.status.outputs.text}'), 'ahoy')
    equal(await says('get stack hello -o name'), 'stack.oarlock.dev/hello\n')
    equal(JSON.parse(await says('get stacks -o json')).kind, 'List')
    equal(await says('get stacks hello --no-headers -o custom-columns=A:.spec.engine,B:.status.resources'), 'command   1\n')
  })

  test('-o yaml shows what was written and what became of it', async () => {
    const yaml = await says('get stack hello -o yaml')
    match(yaml, /^apiVersion: oarlock\.dev\/v1alpha1\nkind: Stack\nmetadata:\n/)
    match(yaml, /^spec:\n {2}approval: Auto\n/m)
    match(yaml, /^ {2}observedGeneration: 1$/m)
    ok(!yaml.includes('managedFields'), 'managedFields are shown only when asked for')
  })

  test('describe shows conditions and events', async () => {
    const text = await says('describe stack hello')
    match(text, /^Name: +hello\nNamespace: +default\n/)
    match(text, /Reason: +Applied\n +Status: +True\n +Type: +Ready\n/)
    match(
      text,
      /Events:\n +Type +Reason +Age +From +Message\n.*\n +Normal +RunCreated .* oarlock-stack +Created Run hello-\w{5}-1 \(Apply\): NewGeneration\n/,
    )
    match(await says('describe runs -l oarlock.dev/stack=hello'), /Phase: +Succeeded/)
    match(await says('describe workerpool default'), /Mode: +Process/)
    match(await says('events --for stack/hello'), /RunCreated/)
  })

  test('explain knows every field', async () => {
    const spec = await says('explain stack.spec')
    match(spec, /GROUP: +oarlock\.dev\nKIND: +Stack\nVERSION: +v1alpha1\n/)
    match(spec, /engine\t<string> -required-\n {2}enum: terraform, opentofu, manifests, command\n/)
    match(await says('explain stack.spec.source.git.secretRef.name'), /FIELD: name <string>/)
    match(await says('explain stk.spec --recursive'), /source\t<Object> -required-\n {4}git\t<Object>\n/)
    for (const part of ['run', 'run.spec', 'stack.status', 'workerpool.spec', 'worker.status']) {
      ok(!/DESCRIPTION:\n +<empty>/.test(await says(`explain ${part}`)), `${part} has no description`)
    }
  })

  test('api-resources and api-versions name our kinds', async () => {
    const table = await says('api-resources --api-group=oarlock.dev')
    deepEqual(
      table
        .trim()
        .split('\n')
        .slice(1)
        .map(line => line.split(/\s+/)),
      [
        ['runs', 'run', 'oarlock.dev/v1alpha1', 'true', 'Run'],
        ['stacks', 'stk', 'oarlock.dev/v1alpha1', 'true', 'Stack'],
        ['tenants', 'tnt', 'oarlock.dev/v1alpha1', 'false', 'Tenant'],
        ['workerpools', 'pool', 'oarlock.dev/v1alpha1', 'false', 'WorkerPool'],
        ['workers', 'oarlock.dev/v1alpha1', 'false', 'Worker'],
      ],
    )
    match(await says('api-versions'), /^oarlock\.dev\/v1alpha1$/m)
  })

  test('label, annotate, patch, edit', async () => {
    await says('apply -f -', manifest('tagged', 'one'))
    equal(await says('label stack tagged team=crew'), 'stack.oarlock.dev/tagged labeled\n')
    equal((await kubectl('label stack tagged team=other')).code, 1, 'kubectl does not overwrite unasked')
    equal(await says('get stacks -l team=crew -o name'), 'stack.oarlock.dev/tagged\n')
    equal(await says('label stack tagged team-'), 'stack.oarlock.dev/tagged unlabeled\n')
    equal(
      await says('patch stack tagged --type=json -p [{"op":"replace","path":"/spec/priority","value":7}]'),
      'stack.oarlock.dev/tagged patched\n',
    )
    equal(await says('patch stack tagged --type=merge -p {"spec":{"priority":8}}'), 'stack.oarlock.dev/tagged patched\n')
    // kubectl compares what it read with what came back: a status written by the controller in between is a change to it.
    let again = ''
    for (let tries = 0; tries < 10 && !again.includes('(no change)'); tries++) {
      again = await says('patch stack tagged --type=merge -p {"spec":{"priority":8}}')
    }
    equal(again, 'stack.oarlock.dev/tagged patched (no change)\n')
    const refused = await kubectl('patch stack tagged --type=merge -p {"spec":{"priority":8000}}')
    match(refused.stderr, /^The Stack "tagged" is invalid: spec\.priority: Invalid value: 8000: .*less than or equal to 1000\n$/)
    const edit = await runProgram('kubectl', ['edit', 'stack', 'tagged'], {
      env: { ...environment(), KUBE_EDITOR: "sed -i 's/priority: 8/priority: 9/'" },
    })
    deepEqual([edit.code, edit.stdout], [0, 'stack.oarlock.dev/tagged edited\n'], edit.stderr)
    equal(await says('get stack tagged -o jsonpath={.spec.priority}'), '9')
    // How a request for a Run looks without our own command.
    equal(await says('annotate stack tagged oarlock.dev/requested-run=apply:1'), 'stack.oarlock.dev/tagged annotated\n')
    equal(
      await says('wait --for=jsonpath={.status.handledRequest}=apply:1 stack/tagged --timeout=40s'),
      'stack.oarlock.dev/tagged condition met\n',
    )
    await says('delete stack tagged --timeout=40s')
  })

  test('get -w shows a Stack becoming Ready', async () => {
    const watch = spawn('kubectl', ['get', 'stacks', '-w', '--field-selector=metadata.name=watched'], {
      env: { ...process.env, ...environment() },
    })
    let seen = ''
    watch.stdout.setEncoding('utf8').on('data', text => (seen += text))
    try {
      await says('apply -f -', manifest('watched', 'one'))
      await eventually(() => /^watched +command +True +Applied/m.test(seen), 'the watch to show it Ready', 40_000)
      match(seen, /^NAME +ENGINE +READY +REASON +AGE$/m)
      match(seen, /^watched +command +False +Progressing/m)
    } finally {
      const ended = once(watch, 'exit')
      watch.kill()
      await ended
    }
    await says('delete stack watched --timeout=40s')
  })

  test('wait gives up in time, and delete --wait=false returns at once', async () => {
    const broken = manifest('broken', 'one').replace('[sh, -c', '[sh, -ec').replace('cp text.json', 'exit 1; cp')
    await says('apply -f -', broken)
    const waited = await kubectl('wait --for=condition=Ready stack/broken --timeout=1s')
    equal(waited.code, 1)
    match(waited.stderr, /timed out waiting for the condition on stacks\/broken/)
    equal(await says('wait --for=condition=Reconciling stack/broken --timeout=20s'), 'stack.oarlock.dev/broken condition met\n')
    equal(await says('delete stack broken --wait=false'), 'stack.oarlock.dev "broken" deleted\n')
    equal(await says('wait --for=delete stack/broken --timeout=40s').then(text => text.replace(/.*condition met\n/, '')), '')
  })

  test('what is wrong is told once, in a line', async () => {
    for (const [args, input, want] of [
      ['get stack nope', '', /^Error from server \(NotFound\): stacks\.oarlock\.dev "nope" not found\n$/],
      ['get stcks', '', /^error: the server doesn't have a resource type "stcks"\n$/],
      [
        'apply -f -',
        manifest('Bad_Name', 'x'),
        /^The Stack "Bad_Name" is invalid: metadata\.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain/,
      ],
      ['apply -f -', manifest('x', 'x', 'nowhere'), /namespaces "nowhere" not found/],
      ['apply -f -', manifest('x', 'x').replace('v1alpha1', 'v9'), /no matches for kind "Stack" in version "oarlock.dev\/v9"/],
    ] as const) {
      const { code, stderr } = await kubectl(args, input)
      equal(code, 1)
      match(stderr, want)
    }
  })
})
