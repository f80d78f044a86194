import { systemNamespace } from '../../api/index.ts'

export const group = 'external.metrics.k8s.io'
export const version = 'v1beta1'
export const groupVersion = `${group}/${version}`

/** A cluster has one APIService for the group: Oarlock's, KEDA's, or that of another adapter. */
export const apiServiceName = `${version}.${group}`
export const serviceName = 'oarlock-external-metrics'
export const servicePort = 443
/** The Secret in `oarlock-system` with the certificate that all controller processes serve. */
export const servingSecretName = 'oarlock-external-metrics-tls'
/** kube-apiserver verifies the first. */
export const servingNames = [`${serviceName}.${systemNamespace}.svc`, `${serviceName}.${systemNamespace}.svc.cluster.local`]

/** `Own`: the controllers keep the certificate in its Secret. `CertManager`: another process does, such as cert-manager. */
export type CertificateMode = 'Own' | 'CertManager'
