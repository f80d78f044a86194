import type { Row } from './row.ts'

export const networkingKinds: readonly Row[] = [
  {
    group: 'networking.k8s.io',
    kind: 'Ingress',
    plural: 'ingresses',
    shortNames: ['ing'],
    schema: 'io.k8s.api.networking.v1.Ingress',
    hasStatus: true,
    hasGeneration: true,
  },
  {
    group: 'networking.k8s.io',
    kind: 'IngressClass',
    plural: 'ingressclasses',
    cluster: true,
    schema: 'io.k8s.api.networking.v1.IngressClass',
    hasGeneration: true,
  },
  {
    group: 'networking.k8s.io',
    kind: 'NetworkPolicy',
    plural: 'networkpolicies',
    shortNames: ['netpol'],
    schema: 'io.k8s.api.networking.v1.NetworkPolicy',
    hasGeneration: true,
  },
]
