import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { discoveryDocument } from './discovery-documents.ts'
import { metricNames } from './pool-metrics.ts'

const aggregated = (version: string) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`
const typeOf = (accept: string | undefined) => discoveryDocument('/apis', accept)?.contentType

test('/apis is aggregated for a client that prefers it, else a list of groups', () => {
  for (const version of ['v2', 'v2beta1']) equal(typeOf(aggregated(version)), aggregated(version))
  // As kube-apiserver and client-go send it.
  equal(typeOf(`${aggregated('v2')},${aggregated('v2beta1')},application/json`), aggregated('v2'))
  equal(typeOf(`application/vnd.kubernetes.protobuf, ${aggregated('v9')}, ${aggregated('v2beta1')}`), aggregated('v2beta1'))
  for (const accept of [undefined, '*/*', 'application/json', `application/json,${aggregated('v2')}`, aggregated('v9')])
    equal(typeOf(accept), 'application/json')
})

test('every document has every metric, which can only be read', () => {
  const list = discoveryDocument('/apis/external.metrics.k8s.io/v1beta1', undefined)?.body as {
    resources: { name: string; verbs: string[] }[]
  }
  const groups = discoveryDocument('/apis', aggregated('v2'))?.body as {
    items: { versions: { resources: { resource: string; verbs: string[] }[] }[] }[]
  }
  const resources = groups.items[0]?.versions[0]?.resources
  deepEqual([list.resources.map(({ name }) => name), resources?.map(({ resource }) => resource)], [metricNames, metricNames])
  for (const { verbs } of [...list.resources, ...(resources ?? [])]) deepEqual(verbs, ['get'])
})

test('other paths have none', () => {
  for (const path of ['/', '/api', '/apis/apps', '/apis/external.metrics.k8s.io/v1', '/apis/external.metrics.k8s.io/v1beta1/nodes'])
    equal(discoveryDocument(path, undefined), undefined, path)
})
