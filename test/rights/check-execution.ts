/** A real worker executes Runs with inputs of every kind, and has no right to any Secret or ConfigMap, on any API server. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isEnded, type Run, runResource, type StackSpec, stackResource, workerResource } from '../../src/api/index.ts'
import { defaultLeaseTimings, runWorker } from '../../src/execution/worker/index.ts'
import { configMapResource, createClient, secretResource } from '../../src/kubernetes/client/index.ts'
import { eventually } from '../support/eventually.ts'
import { GitRepository } from '../support/git-repository.ts'
import { makeCertificate } from '../support/make-certificate.ts'
import { runProgram } from '../support/run-program.ts'
import { type Fixture, namespace, runSpec, stackSpec } from './fixture.ts'

const workerName = 'w8'
const password = 'git-password'

/** A repository that is served as files to the user `ada` only. */
async function servePrivateRepository(directory: string, files: Record<string, string>) {
  const repository = new GitRepository(join(directory, 'work'))
  const commit = repository.commit(files)
  const bare = join(directory, 'private.git')
  for (const args of [
    ['clone', '-q', '--bare', repository.path, bare],
    [`--git-dir=${bare}`, 'update-server-info'],
  ])
    equal((await runProgram('git', args)).code, 0)
  const { path: caPath, cert, key } = makeCertificate(directory)
  const server = createServer({ cert, key }, (request, response) => {
    if (request.headers.authorization !== `Basic ${Buffer.from(`ada:${password}`).toString('base64')}`) {
      return response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end()
    }
    try {
      response.writeHead(200).end(readFileSync(join(directory, new URL(request.url ?? '', 'http://x').pathname)))
    } catch {
      response.writeHead(404).end()
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { caPath, url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/private.git`, commit, server }
}

const shell = (script: string): string[] => ['sh', '-c', script]

export async function checkExecution(fixture: Fixture): Promise<void> {
  const { client, tokens, storesUrl, caCertificate } = fixture
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-execution-'))
  const { caPath, url, commit, server } = await servePrivateRepository(directory, { 'greeting.txt': 'from git' })
  const originalCaInfo = process.env.GIT_SSL_CAINFO
  process.env.GIT_SSL_CAINFO = caPath
  const secrets = client.resource(secretResource)
  const create = async (name: string, stringData: Record<string, string>) =>
    await secrets.create({ metadata: { name, namespace }, stringData })
  await create('repository', { username: 'ada', password })
  await create('service', { token: 'service-token', unrelated: 'unrelated-value' })
  await create('database', { dsn: 'database-dsn' })
  await client.resource(configMapResource).create({ metadata: { name: 'region', namespace }, data: { region: 'eu-1' } })

  const workerClient = await createClient({
    cluster: { server: client.server, token: tokens[workerName], insecureSkipTlsVerify: true },
  })
  const denied: string[] = []
  workerClient.observeRequests(({ method, code }) => {
    if (code === '401' || code === '403') denied.push(method)
  })
  const drain = new AbortController()
  const log = { info: () => {}, warn: () => {} }
  const working = runWorker({
    ...{ name: workerName, pool: 'edge', once: false, client: workerClient, storeUrl: storesUrl, caCertificate, log },
    storeCaCertificate: caCertificate,
    token: tokens[workerName] ?? '',
    lease: { ...defaultLeaseTimings, renewMs: 1_000 },
    ...{ runsDir: join(directory, 'runs'), cacheDir: join(directory, 'cache'), allowPaths: [], signal: drain.signal },
  })
  const execute = async (stack: string, spec: Partial<StackSpec>, revision = 'r'): Promise<Run> => {
    const { metadata } = await client.resource(stackResource).create({ metadata: { name: stack, namespace }, spec: stackSpec })
    const runs = client.resource(runResource)
    const name = `${stack}-1`
    const full = { ...runSpec(stack, metadata.uid, { workerName, revision }), stack: { ...stackSpec, ...spec } }
    await runs.create({ metadata: { name, namespace }, spec: full })
    await eventually(async () => isEnded(await runs.get(name, { namespace })), `Run ${name} to end`, 60_000)
    return await runs.get(name, { namespace })
  }
  try {
    await eventually(
      async () => (await client.resource(workerResource).getOrUndefined(workerName))?.status?.phase === 'Ready',
      'the worker to be Ready',
      60_000,
    )
    const base = await execute('base', { command: { apply: shell('echo \'{"url":"http://base","port":7}\' > $OARLOCK_OUTPUTS') } })
    equal(base.status?.phase, 'Succeeded', JSON.stringify(base.status))

    const script =
      'printf \'{"found":"%s %s %s %s %s %s"}\' "$(cat greeting.txt)" $TOKEN $OARLOCK_VAR_dsn $OARLOCK_VAR_region $OARLOCK_VAR_url $OARLOCK_VAR_port > $OARLOCK_OUTPUTS'
    const app = await execute(
      'service',
      {
        source: { git: { url, commit, secretRef: { name: 'repository' } } },
        command: { apply: shell(`env; ${script}`) },
        env: [{ name: 'TOKEN', secretKeyRef: { name: 'service', key: 'token' } }],
        variablesFrom: [{ secretRef: { name: 'database' } }, { configMapRef: { name: 'region' } }, { stackRef: { name: 'base' } }],
      },
      commit,
    )
    equal(app.status?.phase, 'Succeeded', JSON.stringify(app.status))
    // Sensitive, because it contains the values of Secrets: not in the status.
    deepEqual(app.status?.outputs, {})
    const { data } = await secrets.get('service-outputs', { namespace })
    equal(Buffer.from(data?.found ?? '', 'base64').toString(), '"from git service-token database-dsn eu-1 http://base 7"')
    const text = await (
      await fetch(`${storesUrl}/logs/${namespace}/service-1`, { headers: { authorization: `Bearer ${tokens.admin}` } })
    ).text()
    ok(text.includes('OARLOCK_VAR_region=eu-1'), text)
    for (const value of ['service-token', 'database-dsn', password, 'unrelated-value']) ok(!text.includes(value), text)

    const missing = await execute('missing', { env: [{ name: 'TOKEN', secretKeyRef: { name: 'service', key: 'password' } }] })
    deepEqual(
      [missing.status?.reason, missing.status?.message],
      ['KeyNotFound', 'spec.env[0].secretKeyRef.key: Secret shop/service has no key "password"; it has: token, unrelated'],
    )
  } finally {
    drain.abort()
    await working
    await workerClient.close()
    if (originalCaInfo === undefined) delete process.env.GIT_SSL_CAINFO
    else process.env.GIT_SSL_CAINFO = originalCaInfo
    server.closeAllConnections()
    server.close()
    rmSync(directory, { recursive: true, force: true })
  }
  // None of its requests was for an object that it has no right to.
  deepEqual(denied, [])
}
