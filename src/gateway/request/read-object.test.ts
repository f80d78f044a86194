import { deepEqual, equal, match, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { named, readNewObject } from './read-object.ts'

const field = (number: number, value: string | Buffer) => {
  const bytes = Buffer.from(value)
  return Buffer.concat([Buffer.from([number * 8 + 2, bytes.length]), bytes])
}
const label = (key: string, value: string) => field(11, Buffer.concat([field(1, key), field(2, value)]))
const typed = (apiVersion: string, kind: string, ...content: Buffer[]) =>
  Buffer.concat([
    Buffer.from('k8s\0'),
    field(1, Buffer.concat([field(1, apiVersion), field(2, kind)])),
    field(2, Buffer.concat(content)),
    field(4, ''),
  ])

test('name and labels are read from JSON, YAML and protobuf', () => {
  const wanted = { name: 'c', labels: { 'oarlock.dev/tenant': 'acme' } }
  const metadata = { name: 'c', labels: { 'oarlock.dev/tenant': 'acme', odd: 1 } }
  deepEqual(readNewObject(Buffer.from(JSON.stringify({ metadata })), 'application/json'), wanted)
  deepEqual(
    readNewObject(Buffer.from('metadata:\n  name: c\n  labels: { oarlock.dev/tenant: acme }\n'), 'application/apply-patch+yaml'),
    wanted,
  )
  const meta = Buffer.concat([field(1, 'c'), Buffer.from([7 * 8, 1]), label('oarlock.dev/tenant', 'acme')])
  deepEqual(readNewObject(typed('v1', 'Namespace', field(1, meta), field(2, '')), 'application/vnd.kubernetes.protobuf'), wanted)
  deepEqual(readNewObject(Buffer.from('{}'), ''), { name: '', labels: {} })
})

test('an Event names what it is about, in both of its versions', () => {
  const about = { kind: 'Node', name: 'node-1' }
  const reference = Buffer.concat([field(1, 'Node'), field(3, 'node-1')])
  const meta = field(1, field(1, 'e'))
  deepEqual(readNewObject(typed('v1', 'Event', meta, field(2, reference)), '').about, about)
  deepEqual(readNewObject(typed('events.k8s.io/v1', 'Event', meta, field(8, reference)), '').about, about)
  deepEqual(readNewObject(Buffer.from(JSON.stringify({ regarding: about })), '').about, about)
  deepEqual(readNewObject(Buffer.from(JSON.stringify({ involvedObject: about })), '').about, about)
})

test('protobuf with two names is rejected: the partition could read the other one', () => {
  for (const content of [[field(1, field(1, 'a')), field(1, field(1, 'b'))], [field(1, Buffer.concat([field(1, 'a'), field(1, 'b')]))]])
    throws(() => readNewObject(typed('v1', 'Namespace', ...content), ''), /not an object in protobuf: field 1 is repeated/)
})

test('long YAML is rejected before it is parsed, and long JSON with its type is read', () => {
  const yaml = `metadata:\n  name: c\n${'k: v\n'.repeat(1_000)}`
  throws(
    () => readNewObject(Buffer.from(yaml), 'application/apply-patch+yaml'),
    /YAML with 5020 characters, at most 4096 .*: send it as JSON/,
  )
  const json = JSON.stringify({ metadata: { name: 'c' }, data: 'x'.repeat(10_000) })
  deepEqual(readNewObject(Buffer.from(json), 'application/apply-patch+yaml'), { name: 'c', labels: {} })
})

test('what cannot be read is named', () => {
  throws(() => readNewObject(Buffer.from('{'), 'application/json'), /the body is not JSON/)
  throws(() => readNewObject(Buffer.from('a: ['), 'application/yaml'), /the body is not YAML/)
  for (const tail of [[0x0a, 0x7f], [0x0b], [0xff, 0xff]])
    throws(() => readNewObject(Buffer.from([...Buffer.from('k8s\0'), ...tail]), ''), /the body is not an object in protobuf/)
})

test('a name is generated for a new object without one, in JSON and YAML', () => {
  for (const [text, type] of [
    ['{"metadata":{"generateName":"a-","labels":{"x":"z"}},"spec":{"z":1}}', 'application/json'],
    ['metadata: { generateName: a-, labels: { x: z } }\nspec: { z: 1 }\n', 'application/yaml'],
  ] as const) {
    const body = Buffer.from(text)
    const object = readNewObject(body, type)
    const { name, body: sent } = named({ name: '', body }, object, type)
    match(name, /^a-[a-z0-9]{5}$/)
    deepEqual(JSON.parse(Buffer.from(sent).toString()), { metadata: { generateName: 'a-', labels: { x: 'z' }, name }, spec: { z: 1 } })
    deepEqual(named({ name: 'of-path', body }, object, type), { name: 'of-path', body })
  }
  const body = typed('v1', 'Namespace', field(1, field(2, 'a-')))
  throws(() => named({ name: '', body }, readNewObject(body, ''), ''), /in JSON or YAML, not in protobuf: set metadata.name/)
  equal(named({ name: '', body: Buffer.from('{}') }, readNewObject(Buffer.from('{}'), ''), '').name, '')
})
