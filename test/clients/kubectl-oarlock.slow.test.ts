/** kubectl with Oarlock's kinds against `oarlock up`: which commands work, and what they print. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, before, describe, test } from 'node:test'
import { eventually } from '../support/eventually.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from '../support/oarlock-process.ts'
import { runProgram } from '../support/run-program.ts'
import { skipWithoutClient } from './clients.ts'
import { type Kubectl, kubectlFor } from './kubectl.ts'

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

describe('kubectl with the kinds of Oarlock', { skip: skipWithoutClient('kubectl'), concurrency: 3 }, () => {
  const dataDir = makeDataDir()
  let oarlock: OarlockProcess
  let kubectl: Kubectl
  /** Returns stdout. Fails the test if kubectl fails or prints a warning on stderr. */
  const output = async (args: string, input = ''): Promise<string> => {
    const { code, stdout, stderr } = await kubectl.run(args, input)
    deepEqual([code, stderr], [0, ''], `kubectl ${args}`)
    return stdout
  }

  before(async () => {
    oarlock = await startOarlock(dataDir, ['--max-workers', '4'])
    kubectl = kubectlFor({ kubeconfig: oarlock.kubeconfig, directory: dataDir })
    await output('apply -f -', manifest('hello', 'ahoy'))
    await output('wait --for=condition=Ready stack/hello --timeout=40s')
  })
  after(async () => {
    equal(await oarlock.stop(), 0)
    removeDirectory(dataDir)
  })

  test('apply creates, keeps or changes a Stack; diff prints the changes', async () => {
    equal(await output('apply -f -', manifest('applied', 'one')), 'stack.oarlock.dev/applied created\n')
    equal(await output('apply -f -', manifest('applied', 'one')), 'stack.oarlock.dev/applied unchanged\n')
    equal(await output('diff -f -', manifest('applied', 'one')), '')
    const different = await kubectl.run('diff -f -', manifest('applied', 'two'))
    equal(different.code, 1, different.stderr)
    match(different.stdout, /^-\s+text\.json: '\{"text": "one"\}'\n\+\s+text\.json: '\{"text": "two"\}'$/m)
    equal(await output('apply -f -', manifest('applied', 'two')), 'stack.oarlock.dev/applied configured\n')
    equal(
      await output('wait --for=jsonpath={.status.outputs.text}=two stk/applied --timeout=40s'),
      'stack.oarlock.dev/applied condition met\n',
    )
    equal(await output('delete stack applied --timeout=40s'), 'stack.oarlock.dev "applied" deleted\n')
    const missing = await kubectl.run('get stack applied')
    deepEqual([missing.code, missing.stderr], [1, 'Error from server (NotFound): stacks.oarlock.dev "applied" not found\n'])
  })

  test('apply --server-side, conflicts and field managers', async () => {
    const input = manifest('served', 'one')
    equal(await output('apply --server-side -f -', input), 'stack.oarlock.dev/served serverside-applied\n')
    equal(await output('apply --server-side -f -', input), 'stack.oarlock.dev/served serverside-applied\n')
    const conflict = await kubectl.run('apply --server-side --field-manager=other -f -', manifest('served', 'two'))
    equal(conflict.code, 1)
    match(conflict.stderr, /conflict with "kubectl": \.spec\.source\.inline\.files\.text\.json/)
    await output('apply --server-side --field-manager=other --force-conflicts -f -', manifest('served', 'two'))
    match(await output('get stack served -o yaml --show-managed-fields'), /manager: other\n\s+operation: Apply/)
    await output('delete stack served --timeout=40s')
  })

  test('create and replace in a namespace', async () => {
    equal(await output('create namespace crew'), 'namespace/crew created\n')
    equal(await output('create -f -', manifest('made', 'one', 'crew')), 'stack.oarlock.dev/made created\n')
    equal(await output('wait --for=condition=Ready stack/made -n crew --timeout=40s'), 'stack.oarlock.dev/made condition met\n')
    equal(await output('replace -f -', manifest('made', 'two', 'crew')), 'stack.oarlock.dev/made replaced\n')
    match(await output('get secret made-outputs -n crew -o jsonpath={.data}'), /"text":/)
    await output('wait --for=jsonpath={.status.outputs.text}=two stack/made -n crew --timeout=40s')
    equal(await output('delete stack made -n crew --timeout=40s'), 'stack.oarlock.dev "made" deleted\n')
    equal(await output('delete namespace crew --timeout=40s'), 'namespace "crew" deleted\n')
    equal(await output('get stacks,runs,secrets -n crew --ignore-not-found'), '')
  })

  test('a Stack in a namespace that is being deleted reports what to do, and the namespace is deleted when the Stack is orphaned', async () => {
    await output('create namespace sunk')
    await output('create -f -', manifest('made', 'one', 'sunk'))
    await output('wait --for=condition=Ready stack/made -n sunk --timeout=40s')
    const rejected = await kubectl.run('delete namespace sunk --wait=false')
    equal(rejected.code, 1)
    match(
      rejected.stderr,
      /cannot be destroyed once it is being deleted: made\. Destroy them first with .*, or .* oarlock\.dev\/force-delete/,
    )
    await output('annotate namespace sunk oarlock.dev/force-delete=true')
    await output('delete namespace sunk --wait=false')
    await output('wait --for=condition=Stalled stack/made -n sunk --timeout=20s')
    match(
      await output('get stack made -n sunk -o jsonpath={.status.conditions[?(@.type=="Ready")].message}'),
      /^Namespace sunk is being deleted .* Set spec\.deletion to Orphan/,
    )
    await output('patch stack made -n sunk --type=merge -p {"spec":{"deletion":"Orphan"}}')
    await output('wait --for=delete namespace/sunk --timeout=20s')
  })

  test('get in all output formats; tables fit in 80 columns', async () => {
    const lines = (await output('get stacks')).split('\n')
    match(lines[0] ?? '', /^NAME +READY +REASON +DRIFTED +APPROVAL +AGE$/)
    ok(
      lines.some(line => /^hello +True +Applied +\d+s$/.test(line)),
      lines.join('\n'),
    )
    match(
      await output('get stk hello -o wide'),
      /^NAME +READY +REASON +DRIFTED +APPROVAL +AGE +ENGINE +RESOURCES +RUN +MESSAGE\nhello .* command .* hello-\w{5}-1 +Applied: 1 added/,
    )
    match(await output('get runs -l oarlock.dev/stack=hello'), /^NAME +TYPE +PHASE +REASON +AGE\nhello-\w{5}-1 +Apply +Succeeded +\d+s\n$/)
    match(
      await output('get runs -o wide'),
      /^NAME +TYPE +PHASE +REASON +AGE +STACK +TRIGGER .*\n(?:.*\n)*hello-\w{5}-1 +Apply .* hello +NewGeneration /,
    )
    match(await output('get runs --field-selector=metadata.namespace=default -A'), /^NAMESPACE/)
    match(
      await output('get workerpools'),
      /^NAME +QUEUED +BUSY +WORKERS +MAX +READY +AGE +PROBLEM\ndefault +\d+ +\d+ +\d+ +4 +True +\d+s *(<none>)?\n$/,
    )
    const all = await output('get stacks,runs,workers -A')
    match(all, /^NAMESPACE +NAME +READY/)
    match(all, /stack\.oarlock\.dev\/hello +True/)
    match(all, /run\.oarlock\.dev\/hello-\w{5}-1 +Apply/)
    match(await output('get oarlock -A'), /workerpool\.oarlock\.dev\/default/)
    for (const what of ['stacks -A', 'runs -A', 'workerpools', 'workers', 'events']) {
      const { stdout } = await kubectl.run(`get ${what}`)
      const wide = stdout.split('\n').filter(line => line.length > 80 && !/message|Run |Created/i.test(line))
      deepEqual(wide, [], `kubectl get ${what} is wider than 80 columns`)
    }
    equal(await output('get stack hello -o jsonpath={.status.outputs.text}'), 'ahoy')
    equal(await output('get stack hello -o name'), 'stack.oarlock.dev/hello\n')
    equal(JSON.parse(await output('get stacks -o json')).kind, 'List')
    equal(await output('get stacks hello --no-headers -o custom-columns=A:.spec.engine,B:.status.resources'), 'command   1\n')
  })

  test('-o yaml shows spec and status', async () => {
    const yaml = await output('get stack hello -o yaml')
    match(yaml, /^apiVersion: oarlock\.dev\/v1alpha1\nkind: Stack\nmetadata:\n/)
    match(yaml, /^spec:\n {2}approval: Auto\n/m)
    match(yaml, /^ {2}observedGeneration: 1$/m)
    ok(!yaml.includes('managedFields'), 'managedFields are shown only with --show-managed-fields')
  })

  test('describe shows conditions and events', async () => {
    const text = await output('describe stack hello')
    match(text, /^Name: +hello\nNamespace: +default\n/)
    match(text, /Reason: +Applied\n +Status: +True\n +Type: +Ready\n/)
    match(
      text,
      /Events:\n +Type +Reason +Age +From +Message\n.*\n +Normal +RunCreated .* oarlock-stack +Created Run hello-\w{5}-1 \(Apply\): NewGeneration\n/,
    )
    match(await output('describe runs -l oarlock.dev/stack=hello'), /Phase: +Succeeded/)
    match(await output('describe workerpool default'), /Mode: +Process/)
    match(await output('events --for stack/hello'), /RunCreated/)
  })

  test('explain describes every field', async () => {
    const spec = await output('explain stack.spec')
    match(spec, /GROUP: +oarlock\.dev\nKIND: +Stack\nVERSION: +v1alpha1\n/)
    // kubectl shows four values of an enumeration.
    match(spec, /engine\t<string> -required-\n {2}enum: terraform, opentofu, pulumi, ansible, \.{4}\n/)
    match(await output('explain stack.spec.source.git.secretRef.name'), /FIELD: name <string>/)
    match(await output('explain stk.spec --recursive'), /source\t<Object> -required-\n {4}git\t<Object>\n/)
    for (const part of ['run', 'run.spec', 'stack.status', 'workerpool.spec', 'worker.status']) {
      ok(!/DESCRIPTION:\n +<empty>/.test(await output(`explain ${part}`)), `${part} has no description`)
    }
  })

  test('api-resources and api-versions list the kinds of Oarlock', async () => {
    const table = await output('api-resources --api-group=oarlock.dev')
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
    match(await output('api-versions'), /^oarlock\.dev\/v1alpha1$/m)
  })

  test('label, annotate, patch, edit', async () => {
    await output('apply -f -', manifest('tagged', 'one'))
    equal(await output('label stack tagged team=crew'), 'stack.oarlock.dev/tagged labeled\n')
    equal((await kubectl.run('label stack tagged team=other')).code, 1, 'kubectl does not overwrite a label without --overwrite')
    equal(await output('get stacks -l team=crew -o name'), 'stack.oarlock.dev/tagged\n')
    equal(await output('label stack tagged team-'), 'stack.oarlock.dev/tagged unlabeled\n')
    equal(
      await output('patch stack tagged --type=json -p [{"op":"replace","path":"/spec/priority","value":7}]'),
      'stack.oarlock.dev/tagged patched\n',
    )
    equal(await output('patch stack tagged --type=merge -p {"spec":{"priority":8}}'), 'stack.oarlock.dev/tagged patched\n')
    // kubectl compares the object that it read with the response: a status update by the controller in between is a change.
    let again = ''
    for (let tries = 0; tries < 10 && !again.includes('(no change)'); tries++) {
      again = await output('patch stack tagged --type=merge -p {"spec":{"priority":8}}')
    }
    equal(again, 'stack.oarlock.dev/tagged patched (no change)\n')
    const rejected = await kubectl.run('patch stack tagged --type=merge -p {"spec":{"priority":8000}}')
    match(rejected.stderr, /^The Stack "tagged" is invalid: spec\.priority: Invalid value: 8000: .*less than or equal to 1000\n$/)
    const edit = await runProgram('kubectl', ['edit', 'stack', 'tagged'], {
      env: { ...kubectl.env, KUBE_EDITOR: "sed -i 's/priority: 8/priority: 9/'" },
    })
    deepEqual([edit.code, edit.stdout], [0, 'stack.oarlock.dev/tagged edited\n'], edit.stderr)
    equal(await output('get stack tagged -o jsonpath={.spec.priority}'), '9')
    // A Run is requested without the oarlock command.
    equal(await output('annotate stack tagged oarlock.dev/requested-run=apply:1'), 'stack.oarlock.dev/tagged annotated\n')
    equal(
      await output('wait --for=jsonpath={.status.handledRequest}=apply:1 stack/tagged --timeout=40s'),
      'stack.oarlock.dev/tagged condition met\n',
    )
    await output('delete stack tagged --timeout=40s')
  })

  test('get -w shows that a Stack becomes Ready', async () => {
    const watch = spawn('kubectl', ['get', 'stacks', '-w', '--field-selector=metadata.name=watched'], {
      env: { ...process.env, ...kubectl.env },
    })
    let seen = ''
    watch.stdout.setEncoding('utf8').on('data', text => (seen += text))
    try {
      await output('apply -f -', manifest('watched', 'one'))
      await eventually(() => /^watched +True +Applied/m.test(seen), 'the watch to show it Ready', 40_000)
      match(seen, /^NAME +READY +REASON +DRIFTED +APPROVAL +AGE$/m)
      match(seen, /^watched +False +Progressing/m)
    } finally {
      const ended = once(watch, 'exit')
      watch.kill()
      await ended
    }
    await output('delete stack watched --timeout=40s')
  })

  test('wait times out, and delete --wait=false returns immediately', async () => {
    const broken = manifest('broken', 'one').replace('[sh, -c', '[sh, -ec').replace('cp text.json', 'exit 1; cp')
    await output('apply -f -', broken)
    const waited = await kubectl.run('wait --for=condition=Ready stack/broken --timeout=1s')
    equal(waited.code, 1)
    match(waited.stderr, /timed out waiting for the condition on stacks\/broken/)
    equal(await output('wait --for=condition=Reconciling stack/broken --timeout=20s'), 'stack.oarlock.dev/broken condition met\n')
    equal(await output('delete stack broken --wait=false'), 'stack.oarlock.dev "broken" deleted\n')
    equal(await output('wait --for=delete stack/broken --timeout=40s').then(text => text.replace(/.*condition met\n/, '')), '')
  })

  test('an error is printed once, on one line', async () => {
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
      const { code, stderr } = await kubectl.run(args, input)
      equal(code, 1)
      match(stderr, want)
    }
  })
})
