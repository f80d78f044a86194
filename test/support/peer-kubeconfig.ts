import type { Peer } from '../conformance/peer.ts'

/** A kubeconfig of the administrator of a peer, whose certificate is not verified. */
export const peerKubeconfig = ({ url, tokens }: Peer): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'peer', cluster: { server: url, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'admin', user: { token: tokens.admin } }],
    contexts: [{ name: 'peer', context: { cluster: 'peer', user: 'admin' } }],
    'current-context': 'peer',
  })
