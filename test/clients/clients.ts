import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../../src/kubernetes/server/index.ts'
import { startGatewayTarget } from '../conformance/gateway-target.ts'
import { peerMissing, startPeer } from '../conformance/peer.ts'
import { skipWithout } from '../support/run-program.ts'

const directory = process.env.OARLOCK_CLIENTS_DIR ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'oarlock', 'clients')
/** kube-apiserver runs without controllers in these tests: no garbage collection, namespace deletion or volume binding. */
export const isAgainstPeer = process.env.OARLOCK_CLIENTS_AGAINST === 'kube-apiserver'
/** A gateway before four partitions, with one Tenant: namespaces that name none belong to it. */
const isAgainstGateway = process.env.OARLOCK_CLIENTS_AGAINST === 'gateway'

/** The path of a client that `scripts/build-clients.sh` installed. */
export const clientPath = (name: string): string => join(directory, name)

/** The `skip` option of a test: false if the client exists (and the peer, if the tests run against it), else the reason. */
export function skipWithoutClient(name: string): string | false {
  const whyNot = isAgainstPeer ? peerMissing() : undefined
  if (whyNot) return whyNot
  if (name === 'kubectl') return skipWithout('kubectl')
  return existsSync(clientPath(name)) ? false : `${clientPath(name)} not found: run scripts/build-clients.sh`
}

export type ClientsServer = {
  url: string
  /** The server to which the Service kubernetes leads: that of `url`, or behind a gateway that of home. */
  serviceUrl: string
  kubeconfig: string
  directory: string
  close(): Promise<void>
}

/**
 * Starts the embedded server on a free port, in a temporary directory. With `OARLOCK_CLIENTS_AGAINST=kube-apiserver` it starts a real
 * kube-apiserver instead, with `gateway` a gateway: the expectations of these tests must hold there too.
 */
export async function startServerForClients(): Promise<ClientsServer> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-clients-'))
  const remove = () => rmSync(directory, { recursive: true, force: true })
  if (isAgainstGateway) {
    const target = await startGatewayTarget({ namespaceDefaults: true, tenants: { acme: 't1' } })
    const kubeconfig = join(directory, 'kubeconfig')
    writeFileSync(kubeconfig, target.kubeconfigText, { mode: 0o600 })
    return {
      ...{ url: target.url, serviceUrl: target.homeUrl, kubeconfig, directory },
      async close() {
        await target.close()
        remove()
      },
    }
  }
  if (!isAgainstPeer) {
    const server = await startServer({ dataDir: join(directory, 'data'), listen: { port: 0 }, storage: { synchronous: 'OFF' } })
    return {
      url: server.url,
      serviceUrl: server.url,
      kubeconfig: server.kubeconfigPath,
      directory,
      async close() {
        await server.close({ graceMs: 500 })
        remove()
      },
    }
  }
  const peer = await startPeer()
  const kubeconfig = join(directory, 'kubeconfig')
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'peer',
    contexts: [{ name: 'peer', context: { cluster: 'peer', user: 'admin' } }],
    clusters: [{ name: 'peer', cluster: { server: peer.url, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'admin', user: { token: peer.tokens.admin } }],
  }
  writeFileSync(kubeconfig, JSON.stringify(config), { mode: 0o600 })
  return {
    url: peer.url,
    serviceUrl: peer.url,
    kubeconfig,
    directory,
    async close() {
      await peer.close()
      remove()
    },
  }
}
