/** Each setting of a Stack of engine pulumi, with the real CLI, which PULUMI_BIN names, and `oarlock up`. */
import { deepEqual, doesNotMatch, equal, match, ok } from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, describe, test } from 'node:test'
import type { Stack, StackSpec } from '../src/api/index.ts'
import { configMapResource, secretResource } from '../src/kubernetes/client/index.ts'
import { useOarlock } from './support/oarlock-fixture.ts'
import { runOarlock } from './support/run-program.ts'
import { condition, isReady } from './support/stacks.ts'

const { PULUMI_BIN: pulumi } = process.env
const skip = pulumi === undefined && 'PULUMI_BIN is not set'

const inline = (files: Record<string, string>) => ({ inline: { files } })
const yaml = (name: string, rest: string, more: Record<string, string> = {}) =>
  inline({ 'Pulumi.yaml': `name: ${name}\nruntime: yaml\n${rest}`, ...more })
const echo = (value: string) => `{ type: "testprovider:index:Echo", properties: { echo: "${value}" } }`
const command = (create: string, options = '') =>
  `{ type: "command:local:Command", properties: { create: "${create}" }${options && `, options: ${options}`} }`
const urn = (stack: string, project: string, name: string, type = 'testprovider:index:Echo') =>
  `urn:pulumi:${stack}::${project}::${type}::${name}`

/** A resource of the program that is a file: `read` finds what changed. Each run of the program appends a line to the ledger. */
const fileProgram = (ledger: string, path: string) =>
  inline({
    'Pulumi.yaml': 'name: file\nruntime: { name: nodejs, options: { typescript: false } }\n',
    'package.json': '{"name":"file","main":"index.js","dependencies":{"@pulumi/pulumi":"3.260.0"}}',
    'index.js': `
const pulumi = require('@pulumi/pulumi')
require('fs').appendFileSync(${JSON.stringify(ledger)}, 'run\\n')
const provider = {
  async create(inputs) { require('fs').writeFileSync(inputs.path, inputs.text); return { id: inputs.path, outs: inputs } },
  async read(id, props) { return { id, props: { ...props, text: require('fs').readFileSync(id, 'utf8') } } },
  async diff(id, before, after) { return { changes: before.text !== after.text } },
  async update(id, before, after) { require('fs').writeFileSync(id, after.text); return { outs: after } },
  async delete(id) { require('fs').rmSync(id, { force: true }) },
}
class File extends pulumi.dynamic.Resource { constructor(name, args) { super(provider, name, args) } }
new File('file', { path: ${JSON.stringify(path)}, text: 'wanted' })
`,
  })

const nodePack = {
  'policies/PulumiPolicy.yaml': 'runtime: nodejs\nversion: 0.1.0\n',
  'policies/package.json':
    '{"name":"policies","version":"0.1.0","main":"index.js","dependencies":{"@pulumi/policy":"1.21.0","@pulumi/pulumi":"3.260.0"}}',
  'policies/index.js': `
const { PolicyPack } = require('@pulumi/policy')
const policy = (name, enforcementLevel, isViolated) => ({
  name, enforcementLevel, description: 'Of an echo.',
  validateResource: (args, report) => { if (args.type.endsWith(':Echo') && isViolated(args.props.echo)) report('not "' + args.props.echo + '"') },
})
new PolicyPack('company', { policies: [
  policy('no-hello', 'mandatory', text => text === 'hello'),
  policy('short', 'advisory', text => text.length > 3),
] })
`,
}

const pythonPack = {
  'pypack/PulumiPolicy.yaml': 'runtime:\n  name: python\n  options: { virtualenv: venv }\nversion: 0.1.0\n',
  'pypack/requirements.txt': 'pulumi-policy>=1.20,<2\n',
  'pypack/__main__.py': `
from pulumi_policy import EnforcementLevel, PolicyPack, ResourceValidationPolicy

def check(args, report):
    if args.props.get("v") == "bad":
        report("must not be bad")

PolicyPack(name="pypack", enforcement_level=EnforcementLevel.MANDATORY, policies=[
    ResourceValidationPolicy(name="no-bad", description="Of a thing.", validate=check)])
`,
}

const pythonProgram = {
  'Pulumi.yaml': 'name: py\nruntime: python\n',
  'requirements.txt': 'pulumi==3.260.0\n',
  '__main__.py': `
import pulumi
from pulumi.dynamic import Resource, ResourceProvider, CreateResult

class Provider(ResourceProvider):
    def create(self, props):
        return CreateResult(id_="id", outs=props)

class Thing(Resource):
    def __init__(self, name, v):
        super().__init__(Provider(), name, {"v": v})

config = pulumi.Config()
Thing("one", config.require("v"))
pulumi.export("pin", config.require_secret_object("login").apply(lambda login: login["pin"] + 1))
`,
}

/** Encrypted with the passphrase "x" by the CLI: sec:pw is "topsecret-99". */
const passphraseFile = `encryptionsalt: v1:NZwPFVk30Og=:v1:EiWYSvP7M6QiDzob:LWo+T3i4vv5MVLj7aEfCZoL4wUPF3w==
config:
  sec:pw:
    secure: v1:elIbE4sno25+7EAM:8GGtr97q+iDWeJKRm45Jn0kDron59xSjatmTaw==
`

describe('settings of a Stack of engine pulumi', { skip, concurrency: 2 }, () => {
  const up = useOarlock({ args: ['--max-workers', '3'], env: { PATH: `${dirname(pulumi ?? '')}:${process.env.PATH}` } })
  const { stacks } = up
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-test-'))

  after(async () => {
    rmSync(directory, { recursive: true })
  })

  const oarlock = async (...args: string[]) => (await up.succeeds(...args)).text
  const create = async (name: string, source: StackSpec['source'], more: Partial<StackSpec> = {}) =>
    await stacks.create(name, { engine: 'pulumi', source, retry: { limit: 0 }, ...more })
  const untilReady = async (name: string, timeoutMs = 90_000) => await stacks.until(name, 'Ready', isReady, timeoutMs)
  const untilFailed = async (name: string, timeoutMs = 90_000) => {
    const stack = await stacks.until(name, 'failed', each => each.status?.failures !== undefined, timeoutMs)
    const { reason = '', message = '' } = condition(stack, 'Ready') ?? {}
    return { reason, message }
  }
  const outputsOf = ({ status }: Stack) => status?.outputs ?? {}
  const secretOutputsOf = async (name: string) => {
    const { data = {} } = await up.client.resource(secretResource).get(`${name}-outputs`, { namespace: 'default' })
    return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, JSON.parse(Buffer.from(value, 'base64').toString())]))
  }
  const createSecret = async (name: string, values: Record<string, string>) =>
    await up.client.resource(secretResource).create({
      metadata: { name, namespace: 'default' },
      data: Object.fromEntries(Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')])),
    })
  const lastPlan = async (name: string) => {
    const { add, change, destroy } = (await stacks.runsOf(name)).at(-1)?.status?.plan ?? {}
    return [add, change, destroy]
  }

  test('configuration comes from keys of Secrets and ConfigMaps, with structured values and secrets', async () => {
    await createSecret('login', { password: 'correct-horse', login: '{"user":"u","pin":"pin-9988"}' })
    await up.client.resource(configMapResource).create({
      metadata: { name: 'settings', namespace: 'default' },
      data: { greeting: 'hi', 'aws-region': 'eu-1', limits: '{"cpu":4}' },
    })
    const program = `
config:
  greeting: { type: string }
  password: { type: string, secret: true }
  login: { type: object }
  limits: { type: object }
  sizes: { type: array, items: { type: integer } }
  region: { type: string }
resources: { e: ${echo(`\${greeting} \${password} \${region}`)} }
outputs: { echo: "\${e.echo}", pin: "\${login.pin}", limits: "\${limits}", sizes: "\${sizes}" }
`
    await create('config', yaml('shop', program), {
      variables: { sizes: [1, 2] },
      variablesFrom: [
        { secretRef: { name: 'login', keys: { password: 'password' } } },
        { secretRef: { name: 'login', keys: { login: 'shop:login' }, format: 'JSON' } },
        { configMapRef: { name: 'settings', keys: { greeting: 'greeting', 'aws-region': 'shop:region' } } },
        { configMapRef: { name: 'settings', keys: { limits: 'limits' }, format: 'JSON' } },
      ],
    })
    const stack = await untilReady('config')
    deepEqual(outputsOf(stack), { limits: { cpu: 4 }, sizes: [1, 2] })
    const { echo: text, pin } = await secretOutputsOf('config')
    deepEqual([text, pin], ['hi correct-horse eu-1', 'pin-9988'])
    doesNotMatch(`${JSON.stringify(stack)}${await oarlock('logs', 'config')}`, /correct-horse|pin-9988/)
  })

  test('parallel: 1 executes one operation at a time', async () => {
    const ledger = join(directory, 'parallel')
    const resources = [1, 2, 3, 4].map(each => `  r${each}: ${command(`echo begin >> ${ledger}; sleep 0.5; echo end >> ${ledger}`)}`)
    await create('parallel', yaml('p', `resources:\n${resources.join('\n')}\n`), { pulumi: { parallel: 1 } })
    await untilReady('parallel')
    equal(readFileSync(ledger, 'utf8'), 'begin\nend\n'.repeat(4))
  })

  for (const continueOnError of [true, false]) {
    test(`continueOnError: ${continueOnError} ${continueOnError ? 'creates' : 'does not create'} what does not depend on a failure`, async () => {
      const [name, created] = [`continue-${continueOnError}`, join(directory, `continue-${continueOnError}`)]
      const program = `
resources:
  bad: ${command('echo it broke >&2; exit 3')}
  slow: ${command('sleep 2')}
  later: ${command(`touch ${created}`, `{ dependsOn: ["\${slow}"] }`)}
`
      await create(name, yaml('p', program), { pulumi: { continueOnError } })
      const { reason, message } = await untilFailed(name)
      equal(reason, 'RetriesExhausted')
      match(message, /command:local:Command bad: exit status 3: .*: it broke\. /)
      equal(existsSync(created), continueOnError)
    })
  }

  test('targets restrict updates, also with their dependents, and not the destruction', async () => {
    const program = `resources:\n  a: ${echo('a')}\n  b: ${echo(`\${a.echo}-b`)}\n  c: ${echo('c')}\noutputs: { b: "\${b.echo}", c: "\${c.echo}" }\n`
    await create('targets', yaml('p', program), { pulumi: { targets: [urn('targets', 'p', 'a')] } })
    const first = await untilReady('targets')
    deepEqual([first.status?.resources, outputsOf(first)], [1, {}])
    await oarlock('run', 'targets', '--wait')
    equal((await stacks.runsOf('targets')).at(-1)?.status?.message, 'no changes')

    await stacks.patch('targets', { spec: { pulumi: { targetDependents: true } } })
    const second = await stacks.until('targets', 'the dependent', each => isReady(each) && each.status?.resources === 2, 90_000)
    deepEqual(outputsOf(second), { b: 'a-b' })

    await oarlock('run', 'targets', '--target', urn('targets', 'p', 'c'), '--wait')
    equal((await stacks.get('targets')).status?.resources, 3)
    await oarlock('delete', 'stack', 'targets')
    await stacks.untilDeleted('targets', 90_000)
    const destroyed = (await stacks.runsOf('targets')).find(({ spec }) => spec.type === 'Destroy')
    if (destroyed) equal(destroyed.status?.plan?.destroy, 3)
  })

  test('replace replaces a resource once it exists, and one that does not exist is an error of the Run that names it', async () => {
    await create('replace', yaml('p', `resources: { a: ${echo('a')} }\n`), { pulumi: { replace: [urn('replace', 'p', 'a')] } })
    await untilReady('replace')
    deepEqual(await lastPlan('replace'), [1, 0, 0])
    await oarlock('run', 'replace', '--wait')
    deepEqual(await lastPlan('replace'), [1, 0, 1])
    const refused = await runOarlock(['run', 'replace', '--replace', urn('replace', 'p', 'other'), '--wait', '-n', 'default'], {
      env: { KUBECONFIG: up.kubeconfig },
    })
    match(refused.text, /urn:pulumi:replace::p::testprovider:index:Echo::other is neither in the program nor in the state/)
  })

  test('refresh finds what has changed, and runProgram runs the program in a refresh', { timeout: 600_000 }, async () => {
    const of = (name: string) => ({ file: join(directory, `${name}.txt`), ledger: join(directory, `${name}.runs`) })
    const pulumiOf = { refresh: { refresh: true }, 'no-refresh': {}, 'run-program': { runProgram: true } }
    for (const [name, options] of Object.entries(pulumiOf)) {
      const { file, ledger } = of(name)
      await create(name, fileProgram(ledger, file), { pulumi: options })
    }
    for (const name of Object.keys(pulumiOf)) {
      await untilReady(name, 500_000)
      writeFileSync(of(name).file, 'drifted')
    }
    await oarlock('run', 'refresh', '--wait')
    equal(readFileSync(of('refresh').file, 'utf8'), 'wanted')
    await oarlock('run', 'no-refresh', '--wait')
    equal(readFileSync(of('no-refresh').file, 'utf8'), 'drifted')
    const runs = (name: string) => readFileSync(of(name).ledger, 'utf8').split('\n').length
    for (const [name, runsProgram] of [
      ['run-program', true],
      ['no-refresh', false],
    ] as const) {
      const before = runs(name)
      await oarlock('run', name, '--refresh-only', '--wait')
      equal(runs(name) > before, runsProgram, name)
      deepEqual(await lastPlan(name), [0, 1, 0])
      equal(readFileSync(of(name).file, 'utf8'), 'drifted')
    }
  })

  test('policy packs of nodejs: a mandatory policy stops the update, an advisory one is a warning', { timeout: 600_000 }, async () => {
    const source = (text: string) => yaml('p', `resources: { a: ${echo(text)} }\n`, nodePack)
    await create('policy', source('hello'), { pulumi: { policyPacks: ['policies'] } })
    const { reason, message } = await untilFailed('policy', 400_000)
    equal(reason, 'InvalidConfiguration')
    match(message, /policy no-hello of pack company is violated by testprovider:index:Echo a: Of an echo\. not "hello"/)
    await stacks.patch('policy', { spec: { source: source('other') } })
    await untilReady('policy', 180_000)
    match(
      await oarlock('logs', 'policy'),
      /warning: policy short of pack company is violated by testprovider:index:Echo a: Of an echo\. not "other"/,
    )
  })

  test('programs and policy packs of python', { timeout: 900_000 }, async () => {
    await createSecret('py-login', { login: '{"pin":41}' })
    const variablesFrom = [{ secretRef: { name: 'py-login', format: 'JSON' as const } }]
    const source = inline({ ...pythonProgram, ...pythonPack })
    await create('py', source, { variables: { v: 'bad' }, variablesFrom, pulumi: { policyPacks: ['pypack'] } })
    match((await untilFailed('py', 800_000)).message, /policy no-bad of pack pypack is violated by .* one: .*must not be bad/)
    await stacks.patch('py', { spec: { variables: { v: 'good' } } })
    await untilReady('py', 180_000)
    deepEqual(await secretOutputsOf('py'), { pin: 42 })
  })

  test('a directory without a policy pack is an error of the field', async () => {
    await create('no-pack', yaml('p', ''), { pulumi: { policyPacks: ['policies'] } })
    const { reason, message } = await untilFailed('no-pack')
    equal(reason, 'InvalidConfiguration')
    match(message, /spec\.pulumi\.policyPacks\[0\]: the source has no policies\/PulumiPolicy\.yaml/)
  })

  test('a file of the source with a passphrase keeps its provider', async () => {
    const source = yaml(
      'sec',
      `config: { pw: { type: string, secret: true } }\nresources: { a: ${echo(`\${pw}`)} }\noutputs: { o: "\${a.echo}" }\n`,
      {
        'Pulumi.imp.yaml': passphraseFile,
      },
    )
    const more = { pulumi: { stack: 'imp' } }
    await create('no-passphrase', source, more)
    match(
      (await untilFailed('no-passphrase')).message,
      /passphrase, which this Run does not have: set PULUMI_CONFIG_PASSPHRASE with spec\.env/,
    )
    await createSecret('passphrases', { right: 'x', wrong: 'y' })
    const env = (key: string) => [{ name: 'PULUMI_CONFIG_PASSPHRASE', secretKeyRef: { name: 'passphrases', key } }]
    await create('wrong-passphrase', source, { ...more, env: env('wrong') })
    match((await untilFailed('wrong-passphrase')).message, /the passphrase of the environment does not decrypt/)
    await create('passphrase', source, { ...more, env: env('right') })
    await untilReady('passphrase')
    deepEqual(await secretOutputsOf('passphrase'), { o: 'topsecret-99' })
  })

  test('an ESC environment is rejected with Managed state', async () => {
    await create('esc', yaml('p', '', { 'Pulumi.esc.yaml': 'environment: [shop/dev]\n' }))
    match((await untilFailed('esc')).message, /Pulumi\.esc\.yaml: environment names an environment of Pulumi ESC/)
  })

  test('a StackReference reads secrets as secrets, of any engine', async () => {
    await createSecret('upstream-pw', { pw: 'battery-staple' })
    await create('upstream', yaml('up', `config: { pw: { type: string } }\noutputs: { plain: hello, hidden: "\${pw}" }\n`), {
      variablesFrom: [{ secretRef: { name: 'upstream-pw' } }],
    })
    await stacks.create('other-engine', {
      engine: 'command',
      source: inline({ a: '' }),
      command: { apply: ['sh', '-c', 'echo \'{"port":8080,"key":{"value":"other-secret","sensitive":true}}\' > "$OARLOCK_OUTPUTS"'] },
    })
    await create(
      'reader',
      yaml(
        'reader',
        `
resources:
  up: { type: "pulumi:pulumi:StackReference", properties: { name: default/up/upstream } }
  other: { type: "pulumi:pulumi:StackReference", properties: { name: default/any/other-engine } }
  e: ${echo(`\${up.outputs.hidden}-x`)}
outputs: { plain: "\${up.outputs.plain}", port: "\${other.outputs.port}", key: "\${other.outputs.key}", hidden: "\${up.outputs.hidden}", e: "\${e.echo}" }
`,
      ),
      { dependsOn: [{ name: 'upstream' }, { name: 'other-engine' }] },
    )
    const stack = await untilReady('reader')
    deepEqual(outputsOf(stack), { plain: 'hello', port: 8080 })
    const { hidden, e, key } = await secretOutputsOf('reader')
    deepEqual([hidden, e, key], ['battery-staple', 'battery-staple-x', 'other-secret'])
    doesNotMatch(await oarlock('logs', 'reader'), /battery-staple|other-secret/)
  })

  test('a language host or a version of the CLI that is missing is named', async () => {
    await create('java', inline({ 'Pulumi.yaml': 'name: j\nruntime: java\n', 'pom.xml': '<project/>' }))
    const { reason, message } = await untilFailed('java')
    equal(reason, 'EngineNotFound')
    match(message, /the language host of java programs was not found: pulumi-language-java is neither next to .*\/pulumi nor on the PATH/)
    await create('newer', yaml('p', ''), { placement: { engineVersion: '>= 99' } })
    const waiting = await stacks.until('newer', 'waiting', each =>
      /lacks engine pulumi >= 99/.test(condition(each, 'Ready')?.message ?? ''),
    )
    ok(waiting)
    await create('version', yaml('p', ''), { placement: { engineVersion: '>= 3' } })
    await untilReady('version')
  })
})
