import { stringify } from 'yaml'

/** A kubeconfig with one context: this server, its authority, the administrator's token. */
export function makeKubeconfig({ url, ca, token }: { url: string; ca: string; token: string }): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'oarlock', cluster: { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
    users: [{ name: 'admin', user: { token } }],
    contexts: [{ name: 'oarlock', context: { cluster: 'oarlock', user: 'admin', namespace: 'default' } }],
    'current-context': 'oarlock',
  })
}
