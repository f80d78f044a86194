import { deepEqual, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { type KubeObject, StatusError } from '../../object/index.ts'
import { kubeletAddress } from './kubelet-address.ts'
import { kubeletPath, type PodStream } from './kubelet-path.ts'

const pod = (containers: string[], nodeName = 'n1') =>
  ({
    metadata: { name: 'web', namespace: 'shop' },
    spec: { nodeName, containers: containers.map(name => ({ name })) },
  }) as unknown as KubeObject

for (const [stream, query, wanted] of [
  ['log', '', '/containerLogs/shop/web/main'],
  ['log', 'follow=true&tailLines=5&evil=1', '/containerLogs/shop/web/main?follow=true&tailLines=5'],
  ['exec', 'command=sh&command=-c&stdout=true&container=main', '/exec/shop/web/main?output=1&command=sh&command=-c'],
  ['attach', 'stdin=1&stdout=1&tty=true', '/attach/shop/web/main?input=1&output=1&tty=1'],
  ['portforward', 'ports=80', '/portForward/shop/web?port=80'],
] as const) {
  test(`${stream}?${query} becomes ${wanted}`, () => {
    deepEqual(kubeletPath(pod(['main']), stream, new URLSearchParams(query)), { node: 'n1', path: wanted })
  })
}

for (const [stream, query, containers, message] of [
  ['log', '', ['a', 'b'], 'a container name must be specified for pod web, choose one of: [a b]'],
  ['log', 'container=../../x', ['a'], 'container ../../x is not valid for pod web'],
  ['exec', 'command=sh&stdout=1&container=x', ['a'], 'container x not found in pod web'],
  ['exec', 'stdout=1', ['a'], 'you must specify at least 1 command to execute in pod web'],
  ['attach', '', ['a'], 'you must specify at least 1 of stdin, stdout, stderr'],
] as const satisfies [PodStream, string, string[], string][]) {
  test(`rejects ${stream}?${query}: ${message}`, () => {
    throws(() => kubeletPath(pod([...containers]), stream, new URLSearchParams(query)), new StatusError('BadRequest', message))
  })
}

test('the log of a Pod without a Node is empty, a stream into it is rejected', () => {
  deepEqual(kubeletPath(pod(['main'], ''), 'log', new URLSearchParams()), undefined)
  throws(() => kubeletPath(pod(['main'], ''), 'portforward', new URLSearchParams('ports=80')), /does not have a host assigned/)
})

test('a Node is reached at its internal address first, and not before it has reported one', () => {
  const addresses = [
    { type: 'Hostname', address: 'n1' },
    { type: 'InternalIP', address: '10.0.0.1' },
  ]
  const node = (status: object) => ({ metadata: { name: 'n1' }, status }) as unknown as KubeObject
  deepEqual(kubeletAddress(node({ addresses, daemonEndpoints: { kubeletEndpoint: { Port: 10250 } } })), { host: '10.0.0.1', port: 10250 })
  throws(() => kubeletAddress(node({ addresses })), /has not reported the address and port of its kubelet yet/)
})
