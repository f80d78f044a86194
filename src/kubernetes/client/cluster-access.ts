import { isUnixUrl, parseServerAddress, unixSocketUrl } from '../util/server-address.ts'

/** A command that prints credentials: `users[].user.exec` of a kubeconfig. */
export type ExecPlugin = {
  apiVersion: string
  command: string
  args: string[]
  env: { name: string; value: string }[]
  installHint?: string
  provideClusterInfo: boolean
}

/** The source of a credential. Files are given by path, since they are read again when they change. */
export type Credentials =
  | { kind: 'none' }
  | { kind: 'token'; token: string }
  | { kind: 'dynamic-token'; get: () => string }
  | { kind: 'token-file'; path: string }
  | { kind: 'basic'; username: string; password: string }
  | { kind: 'exec'; plugin: ExecPlugin }

/** PEM text, or the path of a file that contains it. */
export type Pem = { kind: 'text'; text: string } | { kind: 'file'; path: string }

/** Everything needed to connect to one cluster, from a kubeconfig, a Pod's service account or a caller's options. */
export type ClusterAccess = {
  /** `https://host:port` with an optional path prefix, without a slash at the end, or `unix:///path`. */
  server: string
  defaultNamespace: string
  credentials: Credentials
  ca?: Pem
  clientCertificate?: Pem
  clientKey?: Pem
  insecureSkipTlsVerify: boolean
  tlsServerName?: string
  proxyUrl?: string
  impersonate?: { user?: string; groups: string[]; uid?: string }
  /** For error messages: `context "dev" of /home/ann/.kube/config`. */
  source: string
}

/** Validates the address and removes trailing slashes. @throws {TypeError} if it is neither an http(s) URL nor `unix:///path`. */
export function parseServer(server: string, field: string): string {
  if (isUnixUrl(server)) {
    try {
      return unixSocketUrl(parseServerAddress(server).socketPath ?? '')
    } catch (error) {
      throw new TypeError(`${field}: ${(error as Error).message}`)
    }
  }
  let url: URL
  try {
    // kubectl accepts `host:port`; the scheme is then http, as in client-go.
    url = new URL(/^[a-z][a-z0-9+.-]*:\/\//i.test(server) ? server : `http://${server}`)
  } catch {
    throw new TypeError(`${field} ${JSON.stringify(server)} must be a URL such as https://127.0.0.1:6443`)
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new TypeError(`${field} ${JSON.stringify(server)} must start with https:// or http://`)
  }
  if (url.username || url.password) throw new TypeError(`${field} must not contain a user or password: use a token or a client certificate`)
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}
