import { deepEqual, equal, match, rejects } from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { respondJson, respondStatus, startScriptedServer } from '../../../test/support/scripted-server.ts'
import { runExecPlugin } from './exec-plugin.ts'
import { configMapResource, createClient } from './index.ts'
import { resolveClusterAccess } from './resolve-cluster-access.ts'

async function withDirectory(run: (directory: string) => Promise<void>) {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-client-'))
  try {
    await run(directory)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

const kubeconfig = (server: string, user: object) =>
  JSON.stringify({
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server } }],
    users: [{ name: 'u', user }],
  })

test('resolves the cluster in the order: options, file, KUBECONFIG, Pod, home directory', async () => {
  await withDirectory(async directory => {
    const write = (name: string, server: string) => {
      mkdirSync(join(directory, name, '..'), { recursive: true })
      writeFileSync(join(directory, name), kubeconfig(server, {}))
      return join(directory, name)
    }
    const home = { env: {}, home: directory, serviceAccountDirectory: join(directory, 'sa') }
    await rejects(resolveClusterAccess({}, home), /no kubeconfig found: KUBECONFIG is not set.*\.kube\/config does not exist/)
    write('.kube/config', 'https://home')
    equal((await resolveClusterAccess({}, home)).server, 'https://home')
    mkdirSync(home.serviceAccountDirectory)
    writeFileSync(join(directory, 'sa/token'), 't')
    writeFileSync(join(directory, 'sa/namespace'), 'blue\n')
    const pod = { ...home, env: { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' } }
    const inPod = await resolveClusterAccess({}, pod)
    deepEqual(
      [inPod.server, inPod.defaultNamespace, inPod.credentials.kind, inPod.ca?.kind],
      ['https://[fd00::1]', 'blue', 'token-file', 'file'],
    )
    const env = { ...pod.env, KUBECONFIG: `${join(directory, 'missing')}:${write('env', 'https://env')}` }
    equal((await resolveClusterAccess({}, { ...pod, env })).server, 'https://env')
    equal((await resolveClusterAccess({ kubeconfig: write('file', 'https://file') }, { ...pod, env })).server, 'https://file')
    equal((await resolveClusterAccess({ cluster: { server: 'https://options' } }, { ...pod, env })).server, 'https://options')
    await rejects(
      resolveClusterAccess({}, { ...home, env: { KUBECONFIG: '/nowhere' } }),
      /KUBECONFIG lists \/nowhere, but none of these files exists/,
    )
    await rejects(resolveClusterAccess({ kubeconfig: '/nowhere' }, home), /cannot read kubeconfig \/nowhere \(ENOENT\)/)
    writeFileSync(join(directory, 'broken'), 'users:\n- token: "s3cret\n  x: [')
    await rejects(resolveClusterAccess({ kubeconfig: join(directory, 'broken') }, home), (error: Error) => {
      match(error.message, /is not valid YAML: .* at line \d+, column \d+$/)
      return !`${error.stack}`.includes('s3cret')
    })
  })
})

test('no user is impersonated whose name a header would change, or that looks like another one', async () => {
  const access = (user: string, ...groups: string[]) =>
    resolveClusterAccess({ cluster: { server: 'https://x' }, impersonate: { user, groups } })
  deepEqual((await access('ann b', 'dev, ops')).impersonate, { user: 'ann b', groups: ['dev, ops'] })
  for (const name of [' system:admin', 'system:admin\t', '\u00a0a', 'a\u0085', 'a\ud800', 'a\r\nx: y', 'a\u200b', 'a\u202eb', 'a\u2029b']) {
    await rejects(
      access(name),
      /cannot be impersonated: use a name without control, invisible or reversing characters and without spaces at its ends/,
    )
    await rejects(access('ann', name), /cannot be impersonated/)
  }
})

test('an impersonated name arrives as UTF-8, whatever the body is and however it is sent', async () => {
  const server = await startScriptedServer((_request, response) => respondJson(response, {}))
  const user = '日本 à josé'
  const client = await createClient({ cluster: { server: server.url }, impersonate: { user, groups: ['größe', 'e\u0301b'] } })
  const [get, post] = [
    { method: 'GET', path: '/a' },
    { method: 'POST', path: '/b', body: { text: 'é' } },
  ] as const
  await Promise.all([client.request({ ...get, isShort: true }), client.request({ ...post, isShort: true }), client.request(post)])
  await client.request(get)
  for (const request of [get, post]) for await (const _chunk of (await client.stream(request)).body);
  equal(server.requests.length, 6)
  for (const { headers, body, method } of server.requests) {
    equal(Buffer.from(headers['impersonate-user'] as string, 'latin1').toString(), user)
    equal(Buffer.from(headers['impersonate-group'] as string, 'latin1').toString(), 'größe, e\u0301b')
    if (method === 'POST') equal(body, '{"text":"é"}')
  }
  await client.close()
  await server.close()
})

test('after a 401 a token file is read again and the request is retried', async () => {
  await withDirectory(async directory => {
    const tokenFile = join(directory, 'token')
    writeFileSync(tokenFile, 'old\n')
    const server = await startScriptedServer(({ headers }, response) => {
      if (headers.authorization === 'Bearer old') {
        writeFileSync(tokenFile, 'new\n')
        return respondStatus(response, 401, 'Unauthorized')
      }
      respondJson(response, { metadata: { name: 'a' } })
    })
    const client = await createClient({ cluster: { server: server.url, tokenFile } })
    await client.resource(configMapResource).get('a')
    deepEqual(
      server.requests.map(({ headers }) => headers.authorization),
      ['Bearer old', 'Bearer new'],
    )
    server.setHandler((_request, response) => respondStatus(response, 401, 'Unauthorized'))
    await rejects(client.resource(configMapResource).get('a'), { reason: 'Unauthorized' })
    equal(server.requests.length, 4, 'one retry only')
    await client.close()
    await server.close()
  })
})

test('an exec plugin runs once for many requests, and again when its credential has expired', async () => {
  await withDirectory(async directory => {
    const plugin = join(directory, 'login')
    const script = [
      '#!/bin/sh',
      'echo x >> "$(dirname "$0")/runs"',
      'case "$KUBERNETES_EXEC_INFO" in *interactive*) ;; *) exit 3 ;; esac',
      'N=$(wc -l < "$(dirname "$0")/runs" | tr -d " ")',
      'echo "{\\"apiVersion\\":\\"client.authentication.k8s.io/v1\\",\\"kind\\":\\"ExecCredential\\",\\"status\\":{\\"token\\":\\"$PREFIX-$N\\"}}"',
    ]
    writeFileSync(plugin, script.join('\n'))
    chmodSync(plugin, 0o755)
    let rejected = ''
    const server = await startScriptedServer(({ headers }, response) =>
      headers.authorization === rejected
        ? respondStatus(response, 401, 'Unauthorized')
        : respondJson(response, { metadata: { name: 'a' } }),
    )
    const path = join(directory, 'kubeconfig')
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: './login',
      interactiveMode: 'Never',
      env: [{ name: 'PREFIX', value: 'token' }],
    }
    writeFileSync(path, kubeconfig(server.url, { exec }))
    const client = await createClient({ kubeconfig: path })
    const maps = client.resource(configMapResource)
    await Promise.all([maps.get('a'), maps.get('a'), maps.get('a')])
    rejected = 'Bearer token-1'
    await maps.get('a')
    deepEqual([...new Set(server.requests.map(({ headers }) => headers.authorization))], ['Bearer token-1', 'Bearer token-2'])
    await client.close()

    for (const { command, args, want } of [
      { command: './nowhere', args: [], want: /credential plugin ".*nowhere" of context "c" of .* was not found: try harder/ },
      { command: 'sh', args: ['-c', 'echo s3cret; echo no network >&2; exit 7'], want: /exited with 7: no network/ },
      { command: 'sh', args: ['-c', 'echo s3cret'], want: /must print an ExecCredential as JSON, got 7 characters that are not JSON/ },
      {
        command: 'sh',
        args: ['-c', 'echo {}'],
        want: /printed undefined undefined, must be client.authentication.k8s.io\/v1 ExecCredential/,
      },
      { command: 'sh', args: ['-c', 'echo null'], want: /printed undefined undefined, must be/ },
    ]) {
      writeFileSync(path, kubeconfig(server.url, { exec: { ...exec, command, args, installHint: 'try harder' } }))
      const broken = await createClient({ kubeconfig: path })
      await rejects(
        broken.resource(configMapResource).get('a'),
        (error: Error) => want.test(error.message) && !error.message.includes('s3cret'),
      )
      await broken.close()
    }
    await server.close()
  })
})

test('an exec plugin that does not exit is killed, even if a child process keeps its output open', async () => {
  const plugin = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: 'sh',
    args: ['-c', 'sleep 5 & echo $!; wait'],
    env: [],
    provideClusterInfo: false,
  }
  const access = await resolveClusterAccess({ cluster: { server: 'https://x' } })
  await rejects(runExecPlugin(plugin, access, 100), /"sh -c" of the options of createClient timed out after 0\.1 s: does it wait for input/)
})

test('invalid or mismatched certificates and keys are named, and so is a server that expects TLS', async () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  const half = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'
  for (const { cluster, want } of [
    { cluster: { caCertificate: '/nowhere/ca.crt' }, want: /cannot read certificate or key file \/nowhere\/ca\.crt \(ENOENT\)/ },
    { cluster: { caCertificate: half }, want: /the certificate authority of the options of createClient is not a PEM certificate/ },
    { cluster: { clientCertificate: half, clientKey: key }, want: /the client certificate of .* is not a PEM certificate/ },
    { cluster: { clientKey: key }, want: /has a client key but no client certificate: set both or neither/ },
  ]) {
    const client = await createClient({ cluster: { server: 'https://127.0.0.1:9', ...cluster } })
    await rejects(client.resource(configMapResource).get('a'), want)
    await client.close()
  }
  const silent = createServer(socket => socket.destroy())
  await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
  const plain = await createClient({ cluster: { server: `http://127.0.0.1:${(silent.address() as AddressInfo).port}` } })
  await rejects(
    plain.resource(configMapResource).create({ metadata: { name: 'a' } }),
    /if the server expects TLS, its address must begin with https/,
  )
  await plain.close()
  silent.close()
})

test('the error for rejected credentials names their source, the expiry of the token and a remedy, but no secret', async () => {
  const server = await startScriptedServer((_request, response) => respondStatus(response, 401, 'Unauthorized'))
  const jwt = (exp: number) => `h.${Buffer.from(JSON.stringify({ exp, sub: 's3cret' })).toString('base64url')}.s3cret`
  for (const { token, want } of [
    {
      token: jwt(1_700_000_000),
      want: /rejected the credentials of the options of createClient: its token expired at 2023-11-14T22:13:20.000Z, get a new one/,
    },
    { token: jwt(9_900_000_000), want: /does the token belong to this cluster, and is it still valid\?/ },
    { token: 's3cret', want: /does the token belong to this cluster, and is it still valid\?/ },
    { token: undefined, want: /has no credentials: set a token, a client certificate or an exec plugin/ },
  ]) {
    const client = await createClient({ cluster: { server: server.url, token } })
    const maps = client.resource(configMapResource)
    const isExpected = (error: { reason?: string; message: string }) =>
      error.reason === 'Unauthorized' && want.test(error.message) && !/s3cret|h\.ey/.test(error.message)
    await rejects(maps.get('a'), isExpected)
    await rejects(maps.watch({}).next(), isExpected)
    await client.close()
  }
  await server.close()
})
