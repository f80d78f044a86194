/** A command that prints credentials, as kubeconfigs name it under `users[].user.exec`. */
export type ExecPlugin = {
  apiVersion: string
  command: string
  args: string[]
  env: { name: string; value: string }[]
  installHint?: string
  provideClusterInfo: boolean
}

/** Where a credential comes from. Files are named, not read: they are read again when they change. */
export type Credentials =
  | { kind: 'none' }
  | { kind: 'token'; token: string }
  | { kind: 'changing-token'; get: () => string }
  | { kind: 'token-file'; path: string }
  | { kind: 'basic'; username: string; password: string }
  | { kind: 'exec'; plugin: ExecPlugin }

/** PEM text that is here already, or a file that holds it. */
export type Pem = { kind: 'text'; text: string } | { kind: 'file'; path: string }

/** Everything needed to talk to one cluster: what a kubeconfig, a Pod or a caller's options come down to. */
export type ClusterAccess = {
  /** `https://host:port` with an optional path prefix, without a slash at the end. */
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
  /** For errors: `context "dev" of /home/ann/.kube/config`. */
  source: string
}

/** Checks the address and drops the slash at its end. @throws {TypeError} if it is not an http(s) URL. */
export function parseServer(server: string, field: string): string {
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
