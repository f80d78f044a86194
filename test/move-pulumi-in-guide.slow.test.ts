/** Runs every command of docs/move-an-existing-pulumi-project.md, in order, with the real CLI of PULUMI_BIN and a directory, or a bucket, as backend. */
import { deepEqual, doesNotMatch, equal, match } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { delimiter, dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Stack } from '../src/api/index.ts'
import { eventually } from './support/eventually.ts'
import { GitRepository } from './support/git-repository.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { runProgram, skipWithout } from './support/run-program.ts'
import { isReady, StackFixture } from './support/stacks.ts'

const { PULUMI_BIN: pulumi, OARLOCK_VERSITYGW: gateway } = process.env
const skip =
  pulumi === undefined ? 'PULUMI_BIN is not set' : gateway === undefined ? 'OARLOCK_VERSITYGW is not set' : skipWithout('kubectl')
const root = join(import.meta.dirname, '..')
const guide = readFileSync(join(root, 'docs', 'move-an-existing-pulumi-project.md'), 'utf8')
const dataDir = makeDataDir()
const work = join(dataDir, 'work')
const buckets = join(dataDir, 'buckets')
let oarlock: OarlockProcess
let stacks: StackFixture

before(async () => {
  if (skip) return
  mkdirSync(work)
  mkdirSync(join(buckets, 'my-states'), { recursive: true })
  oarlock = await startOarlock(dataDir, ['--allow-path', dataDir], { PATH: `${dirname(pulumi ?? '')}${delimiter}${process.env.PATH}` })
  stacks = new StackFixture(oarlock.client)
})
after(async () => {
  await oarlock?.stop()
  removeDirectory(dataDir)
})

test('a project is moved in and out by the commands of the guide, and no resource is created twice', { skip }, async t => {
  const free = createServer().listen(0, '127.0.0.1')
  await once(free, 'listening')
  const { port } = free.address() as AddressInfo
  free.close()
  const server = spawn(gateway ?? '', ['--port', `127.0.0.1:${port}`, '--access', 'user', '--secret', 'password', 'posix', buckets], {
    stdio: 'ignore',
  })
  t.after(async () => {
    const closed = once(server, 'close')
    server.kill('SIGKILL')
    await closed
  })
  const isReachable = () =>
    fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    )
  await eventually(isReachable, 'the gateway', 30_000)
  const url = `s3://my-states?endpoint=127.0.0.1:${port}&disableSSL=true&s3ForcePathStyle=true&region=us-east-1`

  const repository = new GitRepository(join(dataDir, 'infra.git'))
  const created = join(dataDir, 'created')
  mkdirSync(join(repository.path, 'infrastructure'))
  repository.commit({
    'infrastructure/Pulumi.yaml': `name: shop
runtime: yaml
backend: { url: "${url}" }
config:
  note: { type: string, default: none }
resources:
  subnet:
    type: command:local:Command
    properties: { create: "echo subnet >> ${created}" }
outputs:
  subnet: \${subnet.id}
  note: \${note}
  password: { "fn::secret": "correct horse battery" }
`,
  })
  const bin = join(dataDir, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'oarlock'), `#!/bin/sh\nexec "${process.execPath}" "${join(root, 'bin', 'oarlock.js')}" "$@"\n`, { mode: 0o755 })
  writeFileSync(join(dataDir, 'gitconfig'), '[user]\n  name = t\n  email = t@example.invalid\n')
  const shell = async (commands: string) => {
    const env = {
      ...{ PATH: [bin, dirname(pulumi ?? ''), process.env.PATH].join(delimiter), KUBECONFIG: oarlock.kubeconfig, PULUMI_BIN: undefined },
      ...{ GIT_CONFIG_GLOBAL: join(dataDir, 'gitconfig'), GIT_CONFIG_SYSTEM: '/dev/null', PULUMI_HOME: join(dataDir, 'pulumi') },
      ...{ AWS_ACCESS_KEY_ID: 'user', AWS_SECRET_ACCESS_KEY: 'password', PULUMI_CONFIG_PASSPHRASE: 'open sesame' },
      ...{ PULUMI_SKIP_UPDATE_CHECK: 'true', PULUMI_BACKEND_URL: url },
    }
    const { code, text } = await runProgram('bash', ['-euxo', 'pipefail', '-c', commands], { cwd: work, env })
    equal(code, 0, text)
    return text
  }
  const commandsOf = (heading: string) => {
    const section = guide.split(/^## /m).find(text => text.startsWith(`${heading}\n`)) ?? ''
    const commands = [...section.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, text]) => text).join('\n')
    match(commands, /oarlock/)
    return commands.replaceAll('https://git.example.com/infra.git', repository.url)
  }
  const state = () => readFileSync(join(buckets, 'my-states/.pulumi/stacks/shop/prod.json'), 'utf8')
  const idOf = (text: string) => {
    const { checkpoint } = JSON.parse(text) as { checkpoint: { latest: { resources: { type: string; id: string }[] } } }
    return checkpoint.latest.resources.find(({ type }) => type === 'command:local:Command')?.id
  }

  await shell(`git clone --quiet ${repository.url} infra
git -C ${repository.path} config receive.denyCurrentBranch ignore
pulumi -C infra/infrastructure stack init prod --non-interactive
pulumi -C infra/infrastructure up --yes --skip-preview --stack prod --non-interactive
rm infra/infrastructure/Pulumi.prod.yaml`)
  const imported = idOf(state())
  equal(typeof imported, 'string')
  await shell(commandsOf('Move the state in'))
  const plans = (await stacks.runsOf('shop')).flatMap(({ status }) => status?.plan ?? [])
  deepEqual([...new Set(plans.map(({ add, change, destroy }) => `${add} ${change} ${destroy}`))], ['0 0 0'])

  // The first update encrypts the secrets for the Stack.
  await shell(`sed -i '/approval: Manual/d' shop.yaml && oarlock apply -f shop.yaml`)
  for (const note of ['changed', null]) {
    await stacks.patch('shop', { spec: { variables: { note } } })
    const isDone = (stack: Stack) => isReady(stack) && (stack.status?.outputs as { note?: string })?.note === (note ?? 'none')
    await stacks.until('shop', `note ${note}`, isDone, 120_000)
  }
  const raw = await shell('oarlock state pull shop')
  doesNotMatch(raw, /correct horse/)
  match(raw, /hint: its secrets are encrypted for this Stack; .*--encrypt-with-passphrase/)
  match(await shell('oarlock state pull shop --show-secrets'), /warning: [\s\S]*correct horse battery/)

  await shell(commandsOf('Move the state out'))
  equal(await stacks.stacks.getOrUndefined('shop', { namespace: 'default' }), undefined)
  equal(idOf(state()), imported)
  doesNotMatch(state(), /correct horse/)
  const outputs = await shell('pulumi -C infra/infrastructure stack output --show-secrets --json --stack prod --non-interactive')
  match(outputs, /correct horse battery/)
  equal(readFileSync(created, 'utf8'), 'subnet\n')
})
