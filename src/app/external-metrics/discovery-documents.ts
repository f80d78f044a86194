import { group, groupVersion, version } from './names.ts'
import { metricNames } from './pool-metrics.ts'

export type DiscoveryDocument = { readonly contentType: string; readonly body: object }

const json = 'application/json'
const kind = 'ExternalMetricValueList'
/** No `list`, `watch` or `delete`: metrics are no objects, and controllers that visit every kind, such as that of namespaces, leave them out. */
const verbs = ['get']
const apiGroup = {
  name: group,
  versions: [{ groupVersion, version }],
  preferredVersion: { groupVersion, version },
}

/** What a client discovers at `path`; undefined for a path that is no discovery document. @param accept the header of the request. */
export function discoveryDocument(path: string, accept: string | undefined): DiscoveryDocument | undefined {
  switch (path) {
    case '/apis': {
      const requested = aggregatedVersion(accept)
      if (requested === undefined) return { contentType: json, body: { kind: 'APIGroupList', apiVersion: 'v1', groups: [apiGroup] } }
      return {
        contentType: `${json};g=apidiscovery.k8s.io;v=${requested};as=APIGroupDiscoveryList`,
        body: aggregatedDiscovery(requested),
      }
    }
    case `/apis/${group}`:
      return { contentType: json, body: { kind: 'APIGroup', apiVersion: 'v1', ...apiGroup } }
    case `/apis/${groupVersion}`:
      return {
        contentType: json,
        body: { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources: metricNames.map(resourceOf) },
      }
    case '/openapi/v3':
      // Values have no schema that a user would read with kubectl explain.
      return { contentType: json, body: { paths: {} } }
    case '/openapi/v2':
      return { contentType: json, body: { swagger: '2.0', info: { title: group, version }, paths: {} } }
    default:
      return undefined
  }
}

/** The newest version of aggregated discovery that the client accepts before anything else; undefined for none. */
function aggregatedVersion(accept = ''): 'v2' | 'v2beta1' | undefined {
  for (const part of accept.split(',')) {
    const [type, ...parameters] = part.split(';').map(text => text.trim())
    if (type !== json && type !== '*/*') continue
    const of = Object.fromEntries(parameters.map(text => text.split('=', 2)))
    if (of.as === undefined) return undefined
    if (of.g === 'apidiscovery.k8s.io' && of.as === 'APIGroupDiscoveryList' && (of.v === 'v2' || of.v === 'v2beta1')) return of.v
  }
  return undefined
}

const resourceOf = (name: string) => ({ name, singularName: '', namespaced: true, kind, verbs })

function aggregatedDiscovery(apiVersion: 'v2' | 'v2beta1'): object {
  const resources = metricNames.map(resource => ({
    resource,
    responseKind: { group: '', version: '', kind },
    scope: 'Namespaced',
    singularResource: '',
    verbs,
  }))
  const items = [{ metadata: { name: group }, versions: [{ version, resources, freshness: 'Current' }] }]
  return { kind: 'APIGroupDiscoveryList', apiVersion: `apidiscovery.k8s.io/${apiVersion}`, metadata: {}, items }
}
