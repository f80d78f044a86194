/** Stores with a certificate that another authority has issued, such as cert-manager: controllers, workers and commands must trust it. */
import { equal, match } from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type StackSpec, workerPoolResource } from '../src/api/index.ts'
import { createJoinToken } from '../src/app/join/index.ts'
import { createCertificates } from '../src/app/listener/tls-listener.ts'
import { type Client, configMapResource } from '../src/kubernetes/client/index.ts'
import { makeDataDir, removeDirectory } from './support/oarlock-process.ts'
import { accountKubeconfig, controllerArgs, type RoleProcess, RoleProcesses, startApiRole } from './support/role-process.ts'
import { runOarlock } from './support/run-program.ts'
import { isReady, StackFixture } from './support/stacks.ts'

const base = makeDataDir()
const roles = new RoleProcesses(base)
let api: RoleProcess
let client: Client
let ca: string
/** Files of the certificate. */
const issued = join(base, 'issued')
const file = (name: string) => readFileSync(join(issued, 'pki', name), 'utf8')

before(async () => {
  ;({ api, client, ca } = await startApiRole(roles))
  await createCertificates(issued, '127.0.0.1', [])
  await client.resource(workerPoolResource).create({ metadata: { name: 'edge' }, spec: { mode: 'External', lifecycle: 'Warm' } })
})
after(async () => {
  await client?.close()
  await roles.stopAll()
  removeDirectory(base)
})

const spec: StackSpec = {
  ...{ engine: 'command', pool: 'edge', command: { apply: ['echo', 'applied'] } },
  source: { inline: { files: { a: '' } } },
}

for (const [name, isPublished] of [
  ['that clients find with the address', true],
  ['of the system', false],
] as const)
  test(`an authority ${name} is trusted by controllers, workers and commands`, async () => {
    // Others than its own are those of the system, to which NODE_EXTRA_CA_CERTS adds one.
    const trust = join(base, `trust-${isPublished}.crt`)
    writeFileSync(trust, file('ca.crt'), { mode: 0o644 })
    const env = isPublished ? {} : { NODE_EXTRA_CA_CERTS: trust }
    const start = async (role: string, account: string, args: string[], environment: NodeJS.ProcessEnv = {}) => {
      const kubeconfig = roles.file(role, 'kubeconfig', await accountKubeconfig(client, account, ca))
      return await roles.start(role, [...args, '--kubeconfig', kubeconfig, '--data', '.'], /^ *API /m, environment)
    }
    const files = { '--tls-cert-file': 'serving.crt', '--tls-private-key-file': 'serving.key', '--tls-ca-file': 'ca.crt' }
    const flags = Object.entries(files)
      .filter(([flag]) => isPublished || flag !== '--tls-ca-file')
      .flatMap(([flag, name]) => [flag, roles.file('stores', name, file(name))])
    const running = [
      await start('stores', 'oarlock-stores', ['stores', '--listen', '127.0.0.1:0', ...flags]),
      await start('join', 'oarlock-join-service', ['join-service', '--listen', '127.0.0.1:0']),
      await start('controller', 'oarlock-controller', controllerArgs, env),
    ]
    const { data } = await client.resource(configMapResource).get('oarlock-endpoint-stores', { namespace: 'oarlock-system' })
    equal(data?.['ca.crt'], isPublished ? file('ca.crt') : undefined)
    const join_ = await client.resource(configMapResource).get('oarlock-endpoint-join', { namespace: 'oarlock-system' })
    const token = await createJoinToken(client, join_.data?.['ca.crt'] ?? '', { pool: 'edge', ttlMs: 600_000, uses: 1 })
    const worker = `vm-${isPublished}`
    const args = ['worker', '--server', running[1]!.printed('join'), '--token-file', roles.file(worker, 'token', token.text)]
    const { path } = roles.directory(worker)
    const directories = { OARLOCK_RUNS_DIR: join(path, 'runs'), OARLOCK_CACHE_DIR: join(path, 'cache') }
    running.push(await roles.start(worker, [...args, '--name', worker], /joined/, { ...env, ...directories }))

    const stacks = new StackFixture(client)
    const stack = `web-${isPublished}`
    await stacks.create(stack, spec)
    await stacks.until(stack, 'Ready', isReady).catch((error: unknown) => {
      throw new Error(running.map(role => role.output()).join('\n'), { cause: error })
    })
    const cli = await runOarlock(['logs', `stack/${stack}`, '--kubeconfig', join(api.directory, 'kubeconfig')], { env })
    equal(cli.code, 0, cli.text)
    match(cli.stdout, /applied/)
    // The controllers ask the stores before they delete it.
    await stacks.stacks.delete(stack, { namespace: 'default' })
    await stacks.untilDeleted(stack)
    for (const role of running.toReversed()) await role.stop()
  })
