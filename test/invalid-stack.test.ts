/**
 * Invalid Stacks and manifests, sent to a real `oarlock up`. Each error names the field, the value and what is allowed or what to do.
 * Starts that fail are in `failed-start.test.ts` and `full-disk.test.ts`.
 */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { StackSpec } from '../src/api/index.ts'
import { exitCodes } from '../src/cli/exit-codes.ts'
import { isConditionTrue } from '../src/kubernetes/object/index.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { runOarlock, runProgram, skipWithout } from './support/run-program.ts'
import { condition, isUpToDate, StackFixture } from './support/stacks.ts'

const validSpec: StackSpec = { engine: 'command', source: { inline: { files: { a: 'b' } } }, command: { apply: ['true'] } }
const withSource = (source: object) => ({ ...validSpec, source })
const inline = { files: { a: 'b' } }

/** What a message must contain. */
type ExpectedMessage = { field: string; value: RegExp; allowed: RegExp }

/** Specs that the API server rejects: they are never stored. */
const rejected: ({ name: string; spec: object; kubectlAllowed?: RegExp } & ExpectedMessage)[] = [
  {
    name: 'an unknown field',
    spec: { ...validSpec, intervall: '5m' },
    field: 'spec.intervall',
    value: /unknown field/,
    allowed: /did you mean interval\?.* allowed: engine, source/,
    // Kubernetes' wording, which clients parse; `kubectl explain stack.spec` lists the allowed fields.
    kubectlAllowed: /strict decoding error/,
  },
  {
    name: 'an unknown field in a list',
    spec: { ...validSpec, env: [{ name: 'A', valeu: 'b' }] },
    field: 'spec.env[0].valeu',
    value: /unknown field/,
    allowed: /did you mean value\?.* allowed: name, value, secretKeyRef/,
    kubectlAllowed: /strict decoding error/,
  },
  {
    name: 'an invalid enum value',
    spec: { ...validSpec, engine: 'terrafrom' },
    field: 'spec.engine',
    value: /"terrafrom"/,
    allowed: /"terraform", "opentofu", "pulumi", "ansible", "manifests", "command"/,
  },
  {
    name: 'a wrong type',
    spec: { ...validSpec, suspend: 'yes' },
    field: 'spec.suspend',
    value: /"string"/,
    allowed: /must be of type boolean/,
  },
  {
    name: 'an invalid duration',
    spec: { ...validSpec, timeout: 'soon' },
    field: 'spec.timeout',
    value: /"soon"/,
    allowed: /should match '\^\(\[0-9\]/,
  },
  {
    name: 'a number out of its range',
    spec: { ...validSpec, priority: 5_000 },
    field: 'spec.priority',
    value: /5000/,
    allowed: /less than or equal to 1000/,
  },
  {
    name: 'inline without files',
    spec: withSource({ inline: { files: {} } }),
    field: 'spec.source.inline.files',
    value: /\{\}/,
    allowed: /at least 1/,
  },
  {
    name: 'no engine',
    spec: { source: { inline } },
    field: 'spec.engine',
    value: /Required value/,
    allowed: /Required value/,
  },
]

/** Specs that are stored: the Stack is Stalled, or waits until a missing object is created. */
const stored: ({ name: string; spec: object; reason: string; isWaiting?: true } & ExpectedMessage)[] = [
  {
    name: 'empty-source',
    spec: withSource({}),
    reason: 'InvalidSpec',
    field: 'spec.source',
    value: /Required value/,
    allowed: /specify exactly one of inline, path, git/,
  },
  {
    name: 'two-sources',
    spec: withSource({ inline, path: { path: '/srv' } }),
    reason: 'InvalidSpec',
    field: 'spec.source',
    value: /got inline and path/,
    allowed: /exactly one of inline, path, git/,
  },
  {
    name: 'cycle-a',
    spec: { ...validSpec, dependsOn: [{ name: 'cycle-b' }] },
    reason: 'DependencyCycle',
    field: 'spec.dependsOn',
    value: /cycle-a → cycle-b → cycle-c → cycle-a/,
    allowed: /Remove one of these references/,
  },
  {
    name: 'cycle-b',
    spec: { ...validSpec, dependsOn: [{ name: 'cycle-c' }] },
    reason: 'DependencyCycle',
    field: 'spec.dependsOn',
    value: /cycle-b → cycle-c → cycle-a → cycle-b/,
    allowed: /Remove one of these references/,
  },
  {
    name: 'cycle-c',
    spec: { ...validSpec, variablesFrom: [{ stackRef: { name: 'cycle-a' } }] },
    reason: 'DependencyCycle',
    field: 'spec.variablesFrom[].stackRef',
    value: /cycle-c → cycle-a → cycle-b → cycle-c/,
    allowed: /Remove one of these references/,
  },
  {
    name: 'missing-dependency',
    spec: { ...validSpec, dependsOn: [{ name: 'nowhere' }] },
    reason: 'DependencyNotFound',
    isWaiting: true,
    field: 'spec.dependsOn[0].name',
    value: /"nowhere"/,
    allowed: /create it or correct the name/,
  },
  {
    name: 'missing-outputs',
    spec: { ...validSpec, variablesFrom: [{ stackRef: { name: 'nowhere' } }] },
    reason: 'DependencyNotFound',
    isWaiting: true,
    field: 'spec.variablesFrom[0].stackRef.name',
    value: /"nowhere"/,
    allowed: /create it or correct the name/,
  },
  {
    name: 'path-outside',
    spec: withSource({ path: { path: '/etc' } }),
    reason: 'SourceNotAllowed',
    field: 'spec.source.path.path',
    value: /"\/etc"/,
    allowed: /not below an allowed directory.*--allow-path DIR/,
  },
  {
    name: 'file-url-outside',
    spec: withSource({ git: { url: 'file:///etc' } }),
    reason: 'SourceNotAllowed',
    field: 'spec.source.git.url',
    value: /"(file:\/\/)?\/etc"/,
    allowed: /not below an allowed directory.*--allow-path DIR/,
  },
  {
    name: 'path-relative',
    spec: withSource({ path: { path: 'srv/stacks' } }),
    reason: 'InvalidSpec',
    field: 'spec.source.path.path',
    value: /"srv\/stacks"/,
    allowed: /must be an absolute path/,
  },
  {
    name: 'dots-in-a-name',
    spec: withSource({ inline: { files: { '../x.tf': '' } } }),
    reason: 'InvalidSpec',
    field: 'spec.source.inline.files[../x.tf]',
    value: /"\.\.\/x\.tf"/,
    allowed: /must not contain "\.\."/,
  },
  {
    name: 'absolute-name',
    spec: withSource({ inline: { files: { '/etc/passwd': '' } } }),
    reason: 'InvalidSpec',
    field: 'spec.source.inline.files[/etc/passwd]',
    value: /"\/etc\/passwd"/,
    allowed: /must be relative/,
  },
  {
    name: 'git-option',
    spec: withSource({ git: { url: '--upload-pack=touch /tmp/x' } }),
    reason: 'InvalidSpec',
    field: 'spec.source.git.url',
    value: /"--upload-pack=touch \/tmp\/x"/,
    allowed: /must not start with "-"; must be https:\/\/host\/path, ssh:/,
  },
  {
    name: 'git-helper',
    spec: withSource({ git: { url: 'ext::sh -c touch% /tmp/x' } }),
    reason: 'InvalidSpec',
    field: 'spec.source.git.url',
    value: /"ext::sh -c/,
    allowed: /must not name a remote helper.*must be https:/,
  },
  {
    name: 'git-two-refs',
    spec: withSource({ git: { url: 'https://example.invalid/a.git', branch: 'main', tag: 'v1' } }),
    reason: 'InvalidSpec',
    field: 'spec.source.git',
    value: /got branch and tag/,
    allowed: /at most one of branch, tag, commit/,
  },
  {
    name: 'too-long',
    spec: withSource({ inline: { files: { 'big.txt': 'x'.repeat(600_000) } } }),
    reason: 'InvalidSpec',
    field: 'spec.source.inline.files',
    value: /have 600000 bytes/,
    allowed: /not be more than 524288 bytes; put them in a git repository/,
  },
  {
    name: 'missing-secret',
    spec: { ...validSpec, variablesFrom: [{ secretRef: { name: 'nowhere' } }] },
    reason: 'InputNotFound',
    isWaiting: true,
    field: 'spec.variablesFrom[0].secretRef.name',
    value: /"nowhere" does not exist in namespace "default"/,
    allowed: /create it or correct the name/,
  },
  {
    name: 'missing-env-secret',
    spec: { ...validSpec, env: [{ name: 'TOKEN', secretKeyRef: { name: 'nowhere', key: 'token' } }] },
    reason: 'InputNotFound',
    isWaiting: true,
    field: 'spec.env[0].secretKeyRef.name',
    value: /"nowhere" does not exist in namespace "default"/,
    allowed: /create it or correct the name/,
  },
  {
    name: 'no-command',
    spec: { engine: 'command', source: { inline } },
    reason: 'InvalidSpec',
    field: 'spec.command.apply',
    value: /Required value/,
    allowed: /requires a program to apply with, such as/,
  },
  {
    name: 'reserved-variable',
    spec: { ...validSpec, env: [{ name: 'OARLOCK_EPOCH', value: '9' }] },
    reason: 'InvalidSpec',
    field: 'spec.env[0].name',
    value: /"OARLOCK_EPOCH"/,
    allowed: /names that start with OARLOCK_ are reserved/,
  },
]

const manifest = (name: string, spec: object) =>
  JSON.stringify({ apiVersion: 'oarlock.dev/v1alpha1', kind: 'Stack', metadata: { name, namespace: 'default' }, spec })

function assertMessage(text: string, { field, value, allowed }: ExpectedMessage): void {
  ok(text.includes(field), `the field ${field} is not named in: ${text}`)
  match(text, value, 'the value')
  match(text, allowed, 'what is allowed')
}

describe('an invalid Stack', { concurrency: 4 }, () => {
  const dataDir = makeDataDir()
  let oarlock: OarlockProcess
  let stacks: StackFixture
  before(async () => {
    oarlock = await startOarlock(dataDir)
    stacks = new StackFixture(oarlock.client)
    // Created together: they are independent, except for the cycle, which needs all its members.
    await Promise.all(stored.map(({ name, spec }) => stacks.create(name, spec as StackSpec)))
  })
  after(async () => {
    equal(await oarlock.stop(), 0)
    removeDirectory(dataDir)
  })
  const apply = (input: string) => runOarlock(['apply', '-f', '-'], { input, env: { KUBECONFIG: oarlock.kubeconfig } })
  const kubectl = (args: string[], input: string) =>
    runProgram('kubectl', ['--cache-dir', join(dataDir, 'kubectl-cache'), ...args], { input, env: { KUBECONFIG: oarlock.kubeconfig } })

  for (const { name, spec, kubectlAllowed, ...want } of rejected) {
    test(`${name} is rejected by oarlock apply`, async () => {
      const { code, stdout, stderr } = await apply(manifest('rejected', spec))
      assertMessage(stderr, want)
      deepEqual([code, stdout], [exitCodes.rejected, ''])
      equal(await stacks.stacks.getOrUndefined('rejected', { namespace: 'default' }), undefined)
    })

    for (const args of name === 'an unknown field' ? [[], ['--server-side']] : [[]]) {
      test(`${name} is rejected by kubectl apply ${args}`, { skip: skipWithout('kubectl') }, async () => {
        const { code, stderr } = await kubectl(['apply', ...args, '-f', '-'], manifest('rejected', spec))
        assertMessage(stderr, { ...want, allowed: kubectlAllowed ?? want.allowed })
        equal(code, 1)
      })
    }
  }

  test('oarlock apply rejects an inline file of 5 MB by size', async () => {
    const input = manifest('huge', withSource({ inline: { files: { 'big.bin': 'x'.repeat(5_000_000) } } }))
    const { code, stderr } = await apply(input)
    assertMessage(stderr, {
      field: 'spec.source.inline.files',
      value: /have 5000000 bytes/,
      allowed: /not be more than 524288 bytes; put them in a git/,
    })
    equal(code, exitCodes.rejected)
  })

  test('kubectl apply rejects an inline file of 5 MB by size', { skip: skipWithout('kubectl') }, async () => {
    const input = manifest('huge', withSource({ inline: { files: { 'big.bin': 'x'.repeat(5_000_000) } } }))
    const { code, stderr } = await kubectl(['apply', '-f', '-'], input)
    assertMessage(stderr, { field: 'the body of the request', value: /got \d{8}/, allowed: /at most 3145728 bytes/ })
    equal(code, 1)
  })

  for (const { name, reason, isWaiting, ...want } of stored) {
    test(`${name.replaceAll('-', ' ')} sets reason ${reason}`, async () => {
      const stack = await stacks.until(name, reason, current => isUpToDate(current) && condition(current, 'Ready')?.reason === reason)
      assertMessage(condition(stack, 'Ready')?.message ?? '', want)
      const { conditions } = stack.status ?? {}
      equal(isConditionTrue(conditions, 'Stalled'), !isWaiting)
      equal(isConditionTrue(conditions, 'Reconciling'), isWaiting === true)
      deepEqual(await stacks.runsOf(name), [], 'a Run was created for it')
    })
  }

  const head = 'apiVersion: oarlock.dev/v1alpha1\nkind: Stack\n'
  for (const [name, input, code, want] of [
    ['invalid YAML', 'a: [b\n', exitCodes.usage, /stdin:2:1 is not valid YAML: .*must be sufficiently indented/],
    ['a duplicate key', 'a: 1\na: 2\n', exitCodes.usage, /stdin:2:1 is not valid YAML: Map keys must be unique/],
    ['empty input', '', exitCodes.usage, /no object found in stdin/],
    ['plain text', 'just text', exitCodes.rejected, /stdin:1: must be a Kubernetes object, got "just text"/],
    ['a manifest without apiVersion', 'kind: Stack\n', exitCodes.rejected, /stdin:1: apiVersion must be a non-empty string, got nothing/],
    ['a manifest without a name', head, exitCodes.rejected, /stdin:1: metadata\.name must be a non-empty string, got nothing/],
    ['a manifest without a spec', `${head}metadata: { name: a }\n`, exitCodes.rejected, /spec: Required value/],
    ['an unknown kind', `${head.replace('Stack', 'Stak')}metadata: { name: a }\n`, exitCodes.notFound, /no kind "Stak" in apiVersion/],
    [
      'an unknown namespace',
      manifest('a', validSpec).replace('"default"', '"nowhere"'),
      exitCodes.notFound,
      /namespaces "nowhere" not found/,
    ],
  ] as const) {
    test(`oarlock apply of ${name} exits with ${code}`, async () => {
      const ended = await apply(input)
      match(ended.stderr, want)
      deepEqual([ended.code, ended.stdout], [code, ''])
    })
  }

  test('a Stack continues when its missing dependency is created', async () => {
    await stacks.create('late', { ...validSpec, dependsOn: [{ name: 'made-later' }] })
    await stacks.until('late', 'DependencyNotFound', stack => condition(stack, 'Ready')?.reason === 'DependencyNotFound')
    await stacks.create('made-later', validSpec)
    await stacks.untilReady('late')
  })
})
