import { systemNamespace } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import type { Log } from '../../kubernetes/controller/index.ts'
import { describeResource, type KubeObject } from '../../kubernetes/object/index.ts'
import { coerceError } from '../../kubernetes/util/index.ts'
import { watchObject } from '../watch-object.ts'
import { apiServiceName, serviceName } from './names.ts'
import { RetriedTask } from './retried-task.ts'

type ApiServiceBody = { spec: { service?: { namespace?: string; name?: string }; caBundle?: string } }

export const apiServiceResource = describeResource<ApiServiceBody>({
  ...{ group: 'apiregistration.k8s.io', version: 'v1', kind: 'APIService', plural: 'apiservices', scope: 'Cluster' },
})

export type CaBundle = {
  /** PEM of the authority of the certificate that is served; undefined while it is not known. */
  set(ca: string | undefined): void
}

/**
 * Keeps the authority in the APIService, so that kube-apiserver trusts the certificate, also after either was replaced. An APIService of another
 * adapter, such as KEDA's, is never changed.
 */
export function keepCaBundle(client: Client, { signal, log }: { signal: AbortSignal; log: Log }): CaBundle {
  let ca: string | undefined
  let found: KubeObject<ApiServiceBody> | undefined
  let reportedOwner: string | undefined
  const update = async () => {
    const expected = ca === undefined ? undefined : Buffer.from(ca).toString('base64')
    if (expected === undefined || !found || found.spec.caBundle === expected) return
    const { service } = found.spec
    if (service?.namespace !== systemNamespace || service.name !== serviceName) {
      const owner = service ? `Service ${service.namespace}/${service.name}` : 'the API server itself'
      // Such as that of KEDA. Once, and not for each change of its status.
      if (owner !== reportedOwner)
        log.warn({ apiService: apiServiceName, owner }, 'HPAs read no metrics of Oarlock: the APIService is not its own')
      reportedOwner = owner
      return
    }
    reportedOwner = undefined
    const { resourceVersion } = found.metadata
    found = await client.resource(apiServiceResource).patch(apiServiceName, { spec: { caBundle: expected } } as object, {
      ...{ type: 'merge', resourceVersion, signal },
    })
  }
  // A retry is for what no event of the watch follows; a conflict also comes with one.
  const updating = new RetriedTask({
    work: update,
    onError: err => log.warn({ err, apiService: apiServiceName }, 'failed to write the CA into the APIService'),
    ...{ retryMs, signal },
  })
  watchObject(client, apiServiceResource, {
    ...{ namespace: undefined, name: apiServiceName, signal },
    onChange: object => {
      found = object
      updating.request()
    },
    onError: (error, retryInMs) => log.warn({ err: coerceError(error), retryInMs }, `failed to watch APIService ${apiServiceName}`),
  })
  return {
    set: value => {
      ca = value
      updating.request()
    },
  }
}

const retryMs = 2_000
