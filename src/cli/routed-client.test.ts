import { match, rejects } from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { describe, test } from 'node:test'
import { systemNamespace } from '../api/index.ts'
import { discovery } from '../app/index.ts'
import { type AccessOptions, type Client, createClient, leaseResource, namespaceResource } from '../kubernetes/client/index.ts'
import { startTestServer } from '../kubernetes/testing/index.ts'
import { RoutedClient } from './routed-client.ts'

async function installed() {
  const api = await startTestServer()
  await api.client.resource(namespaceResource).apply({ metadata: { name: systemNamespace } }, { force: true })
  return api
}

/** An address where nothing listens. */
async function closedUrl(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return `https://127.0.0.1:${port}`
}

async function publish(client: Client, role: 'stores' | 'queue'): Promise<string> {
  const url = await closedUrl()
  await (await discovery()).publishEndpoint(client, role, { url, caCertificate: undefined })
  return url
}

const get = (client: Client, access: AccessOptions, path: string) => new RoutedClient(client, access).request({ method: 'GET', path })
const storesPath = '/state/default/a/versions'

describe('a role that does not serve', () => {
  test('stores that do not answer are named with their address and command', async () => {
    await using api = await installed()
    const url = await publish(api.client, 'stores')
    await rejects(get(api.client, { kubeconfig: api.kubeconfigPath }, storesPath), {
      name: 'CliError',
      message: `the stores do not answer at ${url} (ECONNREFUSED)`,
      hint: 'is "oarlock stores" running?',
      exitCode: 5,
    })
  })

  test('a queue that does not answer names the holder of the Lease and its last renewal', async () => {
    await using api = await installed()
    const { client } = api
    const leases = client.resource(leaseResource)
    const url = await publish(client, 'queue')
    const expectLeader = async (leader: string) => {
      const pattern = new RegExp(`^the leading controller does not answer at ${url} \\(ECONNREFUSED\\): ${leader}$`)
      await rejects(get(client, { kubeconfig: api.kubeconfigPath }, '/queue'), (error: { message: string; hint: string }) => {
        match(error.message, pattern)
        match(error.hint, /^is "oarlock controller" running\?/)
        return true
      })
    }
    const renew = async (agoMs: number) =>
      await leases.apply(
        {
          metadata: { name: 'oarlock-controller', namespace: systemNamespace },
          spec: {
            holderIdentity: 'vm_7_abc',
            leaseDurationSeconds: 15,
            renewTime: new Date(Date.now() - agoMs).toISOString().replace('Z', '000Z'),
          },
        },
        { force: true },
      )
    await expectLeader('no controller leads')
    await renew(0)
    await expectLeader('vm_7_abc leads, it renewed its Lease \\S+ ago for 15s')
    await renew(3_600_000)
    await expectLeader('no controller leads, vm_7_abc last renewed its Lease 1h\\S* ago')
  })

  test('a role without a published address is named, also for a user who may not read paths', async () => {
    await using api = await installed()
    const { client, server } = api
    const path = `/api/v1/namespaces/${systemNamespace}/serviceaccounts`
    await client.request({ method: 'POST', path, body: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'ann' } } })
    const spec = { expirationSeconds: 600 }
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec }
    const { status } = (await (await client.request({ method: 'POST', path: `${path}/ann/token`, body })).json()) as {
      status: { token: string }
    }
    const access = { cluster: { server: server.url, caCertificate: server.caCertificate, token: status.token } }
    await using user = Object.assign(await createClient(access), {
      async [Symbol.asyncDispose]() {
        await user.close()
      },
    })
    for (const [who, theirs] of [
      [client, { kubeconfig: api.kubeconfigPath }],
      [user, access],
    ] as const) {
      await rejects(get(who, theirs, storesPath), {
        message: `the stores have not published an address, and ${server.url} is not an "oarlock up" server`,
        hint: 'is "oarlock stores" running?',
        exitCode: 5,
      })
      await rejects(get(who, theirs, '/queue'), { message: /^the leading controller has not published an address, and / })
    }
  })
})

test('a client certificate is rejected before the request, with what the stores accept', async () => {
  await using api = await installed()
  await publish(api.client, 'stores')
  await publish(api.client, 'queue')
  const access = { cluster: { server: api.server.url, clientCertificate: 'client.pem', clientKey: 'client.key' } }
  await rejects(get(api.client, access, storesPath), {
    name: 'CliError',
    message: 'this kubeconfig uses a client certificate, which the stores do not accept',
    hint: /kubectl create token/,
    exitCode: 4,
  })
  await rejects(get(api.client, access, '/queue'), { message: /which the leading controller does not accept$/ })
})
