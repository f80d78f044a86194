import { isIP } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { StatusError } from '../../object/index.ts'

/** PEM: with what the server authenticates to a kubelet, and who signs the certificates of kubelets. */
export type KubeletCredentials = { readonly certificate: string; readonly key: string; readonly ca: string }

export type KubeletAddress = { readonly node: string; readonly host: string; readonly port: number }

/** A handshake may take this long. */
const connectTimeoutMs = 10_000

/**
 * Connects to the kubelet of a Node. The other side must have a certificate of the authority of kubelets for the name of this Node: a Node that
 * reports the address of another one, or of another service, gets a handshake and no request.
 * @throws {StatusError} ServiceUnavailable with the reason.
 */
export async function connectToKubelet({ node, host, port }: KubeletAddress, credentials: KubeletCredentials): Promise<TLSSocket> {
  const { checkServerIdentity, connect } = process.getBuiltinModule('node:tls')
  return await new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port,
      ca: credentials.ca,
      cert: credentials.certificate,
      key: credentials.key,
      ...(isIP(node) === 0 && { servername: node }),
      checkServerIdentity: (_, certificate) => checkServerIdentity(node, certificate),
      ALPNProtocols: ['http/1.1'],
      minVersion: 'TLSv1.2',
    })
    const fail = (why: string) => {
      socket.destroy()
      reject(new StatusError('ServiceUnavailable', `the kubelet of node ${node} at ${host}:${port} cannot be reached: ${why}`))
    }
    socket.setTimeout(connectTimeoutMs, () => fail(`no TLS connection within ${connectTimeoutMs / 1_000} s`))
    socket.once('error', (error: NodeJS.ErrnoException) => fail(reasonOf(error, node)))
    socket.once('secureConnect', () => {
      socket.setTimeout(0)
      socket.removeAllListeners('error')
      socket.removeAllListeners('timeout')
      resolve(socket)
    })
  })
}

function reasonOf({ code = '', message }: NodeJS.ErrnoException, node: string): string {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return `its certificate is not for the name ${node}`
  const isUntrusted = /CERT|SELF_SIGNED|UNABLE_TO|ISSUER/.test(code)
  return isUntrusted
    ? `its certificate is not from the kubelet authority of this server (${code}): issue one with oarlock node-config`
    : code || message
}
