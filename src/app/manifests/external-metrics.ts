import { systemNamespace } from '../../api/index.ts'
import { apiServiceName, group, serviceName, servicePort, servingSecretName, version } from '../external-metrics/names.ts'
import { componentAccount } from '../worker-identity.ts'
import { account, boundRole, clusterRole, clusterRoleBinding, type Manifest, on, onCore, reads } from './rule.ts'

const name = 'oarlock:external-metrics'
const controller = account(systemNamespace, componentAccount('controller'))

/**
 * What controllers need to serve `external.metrics.k8s.io`, and who may read it. Not part of every installation: a cluster has one APIService of
 * this name, and a user who may write it can replace that of another adapter. The Service is that of the chart.
 */
export const externalMetricsManifests: readonly Manifest[] = [
  clusterRole(name, [{ ...on(['apiregistration.k8s.io'], ['apiservices'], [...reads, 'patch']), resourceNames: [apiServiceName] }]),
  clusterRoleBinding(name, name, [controller]),
  ...boundRole(
    systemNamespace,
    serviceName,
    // Controllers may read Secrets and ConfigMaps anyway, as the inputs of Stacks. `create` cannot be restricted to a name.
    [onCore(['secrets'], ['create']), { ...onCore(['secrets'], ['patch']), resourceNames: [servingSecretName] }],
    [controller],
  ),
  // The HPA controller has a role of Kubernetes; this one is for users, such as those of kubectl get --raw. Not aggregated into `view`: WorkerPools belong to
  // the cluster, so who may read a metric in one namespace reads those of all pools.
  clusterRole('oarlock:external-metrics-reader', [on([group], ['*'], ['get', 'list'])]),
  {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: apiServiceName },
    // The controllers add the caBundle.
    spec: {
      group,
      version,
      groupPriorityMinimum: 100,
      versionPriority: 100,
      service: { name: serviceName, namespace: systemNamespace, port: servicePort },
    },
  },
]
