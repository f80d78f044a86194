import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { maxAttributeBytes, maxAttributes, type ResourceAttribute, sensitiveText } from '../../protocol/index.ts'
import { attributesOf } from './resource-attributes.ts'
import { performTask } from './stack-tasks.ts'

const secret = 'correct-horse'
const get = (value: string) => ({ type: 'get_attr', value })
const at = (value: string | number) => ({ type: 'index', value: { value, type: typeof value } })

type Instance = { readonly attributes?: unknown; readonly sensitive_attributes?: unknown; readonly [field: string]: unknown }
const terraform = (instances: readonly Instance[], more: object = {}, version: unknown = '1.12.6') =>
  JSON.stringify({
    ...{ version: 4, terraform_version: version, serial: 1, lineage: 'a', outputs: {} },
    resources: [
      {
        ...{ mode: 'managed', type: 'a', name: 'b', provider: 'provider["registry.terraform.io/a/b"].west' },
        ...more,
        instances: instances.map(instance => ({ sensitive_attributes: [], ...instance })),
      },
    ],
  })

/** Name and text of each; a text that is sensitive as a whole is undefined, one that is cut ends with `…`. */
const texts = (values: readonly ResourceAttribute[] = []) =>
  Object.fromEntries(values.map(({ name, text, isCut }) => [name, isCut ? `${text}…` : text]))
const attributesIn = (content: string, address = 'a.b') => texts(attributesOf(content, address)?.objects[0]?.attributes)

for (const { name, attributes, sensitive, shown } of [
  {
    name: 'no attribute',
    attributes: { text: 'two\nlines', size: 3, none: null, empty: {}, tags: { a: 'x', b: [1, true] } },
    sensitive: [],
    shown: { text: 'two\nlines', size: '3', none: 'null', empty: '{}', tags: '{\n  "a": "x",\n  "b": [\n    1,\n    true\n  ]\n}' },
  },
  {
    name: 'an attribute, with the keys below it',
    attributes: { password: secret, login: { [secret]: 1 }, size: 3 },
    sensitive: [[get('password')], [get('login')]],
    shown: { password: undefined, login: undefined, size: '3' },
  },
  {
    name: 'an element of a list in a map, and a key with a dot',
    attributes: { m: { list: [{ p: secret, q: 1 }, { p: 'plain' }], 'k.1': secret, k: [secret] } },
    sensitive: [
      [get('m'), get('list'), at(0), get('p')],
      [get('m'), at('k.1')],
      [get('m'), get('k'), at(0)],
    ],
    shown: {
      m: `{\n  "list": [\n    {\n      "p": ${sensitiveText},\n      "q": 1\n    },\n    {\n      "p": "plain"\n    }\n  ],\n  "k.1": ${sensitiveText},\n  "k": [\n    ${sensitiveText}\n  ]\n}`,
    },
  },
  {
    name: 'a part of an attribute that is stored with its type, whose names of attributes may be sensitive too',
    attributes: { input: { value: { [secret]: 1, d: { [secret]: 1 }, n: 2 }, type: ['object', { [secret]: 'number' }] } },
    sensitive: [
      [get('input'), get(secret)],
      [get('input'), get('d')],
    ],
    shown: {
      input: `{\n  "value": {\n    "${secret}": ${sensitiveText},\n    "d": ${sensitiveText},\n    "n": 2\n  },\n  "type": ${sensitiveText}\n}`,
    },
  },
  {
    name: 'an attribute with the name of what such a value is stored with',
    attributes: { input: { value: { value: secret, type: secret, n: 2 }, type: ['object', {}] } },
    sensitive: [
      [get('input'), get('value')],
      [get('input'), get('type')],
    ],
    shown: { input: `{\n  "value": ${sensitiveText},\n  "type": ${sensitiveText}\n}` },
  },
  {
    name: 'an element of a set, which has no index: all of the set',
    attributes: { s: [secret, 'other'], n: 1 },
    sensitive: [[get('s'), { type: 'index', value: { value: { a: secret }, type: 'object' } }]],
    shown: { s: undefined, n: '1' },
  },
  {
    name: 'a path that leads to nothing: all that it may be meant for',
    attributes: { a: { b: { c: secret } }, n: 1 },
    sensitive: [[get('a'), get('b'), get('other')]],
    shown: { a: `{\n  "b": ${sensitiveText}\n}`, n: '1' },
  },
  { name: 'an attribute that the resource does not have', attributes: { a: 1 }, sensitive: [[get('b')]], shown: { a: '1' } },
  { name: 'a path without a step: everything', attributes: { a: secret }, sensitive: [[]], shown: { a: undefined } },
  { name: 'a path that is none: everything', attributes: { a: secret }, sensitive: ['a'], shown: { a: undefined } },
  { name: 'marks that are none: everything', attributes: { a: secret }, sensitive: { a: true }, shown: { a: undefined } },
  { name: 'marks that are missing: everything', attributes: { a: secret }, sensitive: null, shown: { a: undefined } },
  {
    name: 'more paths than are read: everything',
    attributes: { a: secret },
    sensitive: Array.from({ length: 100_001 }, () => [get('b')]),
    shown: { a: undefined },
  },
  { name: 'attributes that are no object: everything', attributes: secret, sensitive: [], shown: { attributes: undefined } },
])
  test(`sensitive in a state of Terraform: ${name}`, () => {
    const content = terraform([{ attributes, sensitive_attributes: sensitive }])
    deepEqual(attributesIn(content), shown)
    const result = JSON.stringify(attributesOf(content, 'a.b'))
    // Where it is the name of an attribute of an object, the name is known from the configuration.
    ok(name.includes('stored with its type') || !result.includes(secret), result)
  })

for (const version of ['1.7.5', '0.15.0', '1', '', null, 1.12])
  test(`a state of version ${JSON.stringify(version)}, which does not record what providers mark, has names only`, () => {
    const details = attributesOf(terraform([{ attributes: { password: secret } }], {}, version), 'a.b')
    deepEqual(texts(details?.objects[0]?.attributes), { password: undefined })
    equal(details?.unmarkedBy, typeof version === 'string' ? version : '')
  })
for (const version of ['1.8.0', '1.12.6', '1.10.0-rc1', '2.0.0'])
  test(`a state of version ${version} records what providers mark`, () => {
    const details = attributesOf(terraform([{ attributes: { a: 'x' } }], {}, version), 'a.b')
    deepEqual([texts(details?.objects[0]?.attributes), details?.unmarkedBy], [{ a: 'x' }, undefined])
  })

test('a sensitive value that a provider has copied is hidden where it is', () => {
  const attributes = {
    password: secret,
    pin: 12_345,
    short: 'on',
    url: `postgres://root:${secret}@db`,
    copies: { [secret]: 1, inner: [secret, 'x'], pin: 12_345, number: 912_345, text: '12345', short: 'on' },
    nested: { inner: { [secret]: 1 } },
  }
  const sensitive = ['password', 'pin', 'short'].map(name => [get(name)])
  const content = terraform([{ attributes, sensitive_attributes: sensitive }])
  deepEqual(attributesIn(content), {
    ...{ password: undefined, pin: undefined, short: undefined, url: undefined, copies: undefined },
    nested: `{\n  "inner": ${sensitiveText}\n}`,
  })
  const { [secret]: _, ...copies } = attributes.copies
  deepEqual(
    attributesIn(terraform([{ attributes: { ...attributes, copies }, sensitive_attributes: sensitive }])).copies,
    [
      ...['{', '  "inner": [', `    ${sensitiveText},`, '    "x"', '  ],', `  "pin": ${sensitiveText},`, '  "number": 912345,'],
      ...[`  "text": ${sensitiveText},`, '  "short": "on"', '}'],
    ].join('\n'),
  )
})

test('the output of terraform_data is as sensitive as its input', () => {
  const value = { value: { [secret]: 1, n: 2 }, type: ['object', { [secret]: 'number', n: 'number' }] }
  const attributes = { input: value, output: value }
  const content = terraform([{ attributes, sensitive_attributes: [[get('input')]] }], { type: 'terraform_data' })
  deepEqual(attributesIn(content, 'terraform_data.b'), { input: undefined, output: undefined })
})

test('a resource with more sensitive texts than are looked for is hidden', () => {
  const many = (count: number) => ({ list: Array.from({ length: count }, (_, index) => `secret-${index}`), a: 'x' })
  const of = (count: number) => attributesIn(terraform([{ attributes: many(count), sensitive_attributes: [[get('list')]] }]))
  deepEqual(of(1_000), { list: undefined, a: 'x' })
  deepEqual(of(1_001), { list: undefined, a: undefined })
})

test('instances of count, for_each and modules have their addresses', () => {
  const content = terraform(
    [
      { index_key: 0, attributes: { n: 0 } },
      { index_key: 'x"]/y', attributes: { n: 1 } },
    ],
    { module: 'module.m["k"]', mode: 'data' },
  )
  deepEqual(attributesIn(content, 'module.m["k"].data.a.b[0]'), { n: '0' })
  deepEqual(attributesIn(content, 'module.m["k"].data.a.b["x\\"]/y"]'), { n: '1' })
  for (const other of ['module.m["k"].data.a.b', 'a.b[0]', 'module.m["k"].data.a.b[1]', '', '__proto__', 'constructor'])
    equal(attributesOf(content, other), undefined, other)
})

test('a tainted and a deposed object have addresses of their own, and facts', () => {
  const content = terraform([
    {
      attributes: { n: 1 },
      status: 'tainted',
      dependencies: ['a.c', 'module.m.a.d'],
      create_before_destroy: true,
      private: 'cHJpdmF0ZQ==',
    },
    { attributes: { n: 2 }, deposed: '0a1b2c3d' },
    { attributes_flat: { password: secret }, index_key: 1 },
  ])
  const provider = 'provider["registry.terraform.io/a/b"].west'
  const [tainted] = attributesOf(content, 'a.b')?.objects ?? []
  deepEqual(texts(tainted?.facts), {
    provider,
    status: 'tainted',
    create_before_destroy: 'true',
    dependencies: 'a.c\nmodule.m.a.d',
  })
  deepEqual(texts(tainted?.attributes), { n: '1' })
  const deposed = attributesOf(content, 'a.b (deposed 0a1b2c3d)')?.objects
  deepEqual([deposed?.length, texts(deposed?.[0]?.facts)], [1, { provider, deposed: '0a1b2c3d' }])
  deepEqual(attributesIn(content, 'a.b[1]'), { attributes: undefined })
})

const signature = '4dabf18193072939515e22adb298388d'
const special = (kind: string, more: object) => ({ [signature]: kind, ...more })
const encrypted = (ciphertext = 'AAAAciphertext') => special('1b47061264138c4ac30d75fd1eb44270', { ciphertext })
const plaintext = special('1b47061264138c4ac30d75fd1eb44270', { plaintext: JSON.stringify(secret) })
const urn = 'urn:pulumi:dev::shop::aws:s3:Bucket::b'
const pulumi = (...resources: object[]) =>
  JSON.stringify({ version: 3, deployment: { resources: resources.map(resource => ({ urn, type: 'aws:s3:Bucket', ...resource })) } })

test('a resource of Pulumi has outputs without secrets, and inputs that differ', () => {
  const content = pulumi({
    ...{ id: 'b-1', parent: 'urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev', protect: true, external: false, dependencies: [] },
    inputs: { size: 1, name: 'b', token: plaintext, onlyInput: { a: [plaintext, 1] }, named: secret, plainInput: 'shown' },
    outputs: { size: 2, name: 'b', token: encrypted(), list: [{ k: encrypted('BBBBciphertext') }, plaintext], named: secret },
    additionalSecretOutputs: ['named', 'none'],
  })
  const details = attributesOf(content, urn)
  const [object] = details?.objects ?? []
  deepEqual(texts(object?.facts), {
    ...{ id: 'b-1', type: 'aws:s3:Bucket', parent: 'urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev', protect: 'true' },
  })
  deepEqual(texts(object?.attributes), {
    ...{ size: '2', name: 'b', token: undefined, named: undefined },
    list: `[\n  {\n    "k": ${sensitiveText}\n  },\n  ${sensitiveText}\n]`,
  })
  deepEqual(texts(object?.inputs), { size: '1', onlyInput: `{\n  "a": [\n    ${sensitiveText},\n    1\n  ]\n}`, plainInput: 'shown' })
  ok(!/correct-horse|ciphertext/.test(JSON.stringify(details)))
})

test('what is secret in the inputs or the outputs of a resource is shown of neither', () => {
  const content = pulumi({
    inputs: { a: plaintext, b: secret, c: { d: plaintext, e: 1 }, f: [secret, 1] },
    outputs: { a: secret, b: encrypted(), c: { d: secret, e: 2 }, f: [plaintext, 2] },
  })
  const details = attributesOf(content, urn)
  ok(!JSON.stringify(details).includes(secret))
  deepEqual(texts(details?.objects[0]?.attributes), {
    ...{ a: undefined, b: undefined, c: `{\n  "d": ${sensitiveText},\n  "e": 2\n}`, f: `[\n  ${sensitiveText},\n  2\n]` },
  })
})

for (const { name, resource, shown } of [
  { name: 'names of secrets that are none', resource: { outputs: { a: secret }, additionalSecretOutputs: 'a' }, shown: { a: undefined } },
  { name: 'outputs that are no object', resource: { outputs: secret }, shown: { attributes: undefined } },
  { name: 'outputs that are a secret', resource: { outputs: plaintext }, shown: { attributes: undefined } },
  {
    name: 'an output value, and a special value of an unknown kind',
    resource: {
      outputs: {
        a: special('d0e6a833031e9bbcd3f4e8bde6ca49a4', { value: secret, secret: true }),
        b: { c: special('0123456789abcdef0123456789abcdef', { value: secret }) },
      },
    },
    shown: { a: undefined, b: `{\n  "c": ${sensitiveText}\n}` },
  },
  {
    name: 'an asset in an archive, which is no secret',
    resource: {
      outputs: {
        a: special('0def7320c3a5731c473e5ecbe6d01bc7', { assets: { x: special('c44067f5952c0a294b673a41bacd8c17', { text: 'hi' }) } }),
      },
    },
    shown: {
      a: `{\n  "${signature}": "0def7320c3a5731c473e5ecbe6d01bc7",\n  "assets": {\n    "x": {\n      "${signature}": "c44067f5952c0a294b673a41bacd8c17",\n      "text": "hi"\n    }\n  }\n}`,
    },
  },
])
  test(`Pulumi: ${name}`, () => {
    const content = pulumi(resource)
    deepEqual(attributesIn(content, urn), shown)
    ok(!JSON.stringify(attributesOf(content, urn)).includes(secret))
  })

test('the id of a resource of Pulumi may be a secret', () => {
  for (const more of [{ additionalSecretOutputs: ['id'] }, { outputs: { id: plaintext } }])
    equal(attributesOf(pulumi({ id: secret, ...more }), urn)?.objects[0]?.facts[0]?.text, undefined)
})

test('a resource of Pulumi that was replaced, and is not deleted yet, has an address of its own', () => {
  const content = pulumi({ outputs: { n: 1 } }, ...Array.from({ length: 12 }, () => ({ outputs: { n: 2 }, delete: true })))
  deepEqual(attributesIn(content, urn), { n: '1' })
  const replaced = attributesOf(content, `${urn} (to be deleted)`)
  deepEqual([replaced?.objects.length, replaced?.moreObjects], [10, 2])
})

test('an inventory has what identifies an object', () => {
  const objects = [{ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'a', name: 'x', uid: 'u', data: secret }, null]
  const details = attributesOf(JSON.stringify({ engine: 'manifests', objects }), 'ConfigMap a/x')
  deepEqual(texts(details?.objects[0]?.facts), { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'a', name: 'x', uid: 'u' })
  deepEqual([details?.format, details?.objects[0]?.attributes], ['inventory', []])
})

test('another state has no resources, and one that is no state is an error', () => {
  equal(attributesOf('{"a":1}', 'a'), undefined)
  for (const text of ['', '[1]', 'null', '"a"', '{']) throws(() => attributesOf(text, 'a'), SyntaxError)
})

test('names of prototypes are names like others', () => {
  const attributes = JSON.parse(`{"__proto__":{"toString":"${secret}","a":1},"constructor":"${secret}","hasOwnProperty":"x"}`) as object
  const sensitive = [[get('__proto__'), get('toString')], [get('constructor')]]
  const content = terraform([{ attributes, sensitive_attributes: sensitive }])
  const found = attributesOf(content, 'a.b')?.objects[0]?.attributes
  deepEqual(
    found?.map(({ name, text }) => [name, text]),
    [
      ['__proto__', `{\n  "toString": ${sensitiveText},\n  "a": 1\n}`],
      ['constructor', undefined],
      ['hasOwnProperty', 'x'],
    ],
  )
})

test('long values and many attributes are cut, and short values are whole', () => {
  const bytes = (content: string) => Buffer.byteLength(JSON.stringify(attributesOf(content, 'a.b')))
  const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`k${index}`, 'x'.repeat(1_000)]))
  const ofMany = terraform([{ attributes: many }])
  // What depends on the number of attributes: their names.
  ok(bytes(ofMany) < 1.2 * maxAttributeBytes, `${bytes(ofMany)}`)
  const [object] = attributesOf(ofMany, 'a.b')?.objects ?? []
  deepEqual([(object?.attributes.length ?? 0) + (object?.facts.length ?? 0), object?.more], [maxAttributes, 10_001 - maxAttributes])

  const long = terraform([
    { attributes: { [`n${'a'.repeat(100_000)}`]: 1, long: '\u0000'.repeat(1_000_000), nested: { a: 'é'.repeat(500_000) }, short: 'x' } },
  ])
  ok(bytes(long) < 1.1 * maxAttributeBytes, `${bytes(long)}`)
  const shown = attributesOf(long, 'a.b')?.objects[0]?.attributes ?? []
  deepEqual(
    shown.map(({ name, isCut }) => [name.length, isCut]),
    [
      [4, true],
      [201, undefined],
      [6, true],
      [5, undefined],
    ],
  )
})

test('a text is not cut within a character', () => {
  for (const before of ['', 'x']) {
    const [value] = attributesOf(terraform([{ attributes: { a: before + '😀'.repeat(200_000) } }]), 'a.b')?.objects[0]?.attributes ?? []
    ok(value?.isCut && value.text?.isWellFormed())
  }
})

test('500 levels are shown, and more are an error', () => {
  const nested = (levels: number) =>
    terraform([{ attributes: { a: JSON.parse(`${'['.repeat(levels)}"${secret}"${']'.repeat(levels)}`) as unknown } }])
  // The levels around the attribute: the state, its resources, one, its instances, one, its attributes.
  const [deep] = attributesOf(nested(494), 'a.b')?.objects[0]?.attributes ?? []
  ok(deep?.text?.includes(secret))
  ok('result' in performTask({ name: 'attributesOf', args: [nested(494), 'a.b'] }))
  const reply = performTask({ name: 'attributesOf', args: [nested(495), 'a.b'] })
  equal('status' in reply && reply.status.message, 'the state nests deeper than 500 levels: use "oarlock state pull"')
})

test('many levels that are stored with their types take no longer than others', () => {
  const typed = (levels: number): unknown => JSON.parse(`${'{"type":"string","value":'.repeat(levels)}"${secret}"${'}'.repeat(levels)}`)
  const sensitive = [[get('a'), ...Array.from({ length: 1_000 }, () => get('value'))]]
  const startMs = performance.now()
  const content = terraform([{ attributes: { a: typed(490) }, sensitive_attributes: sensitive }])
  ok(!JSON.stringify(attributesOf(content, 'a.b')).includes(secret))
  ok(performance.now() - startMs < 2_000)
})

test('what another state has is hidden, because its marks are not copied', () => {
  const content = JSON.stringify({
    ...{ version: 4, terraform_version: '1.12.6', serial: 1, lineage: 'l', outputs: {} },
    resources: [
      {
        ...{ mode: 'data', type: 'terraform_remote_state', name: 'other', provider: 'provider["terraform.io/builtin/terraform"]' },
        instances: [
          {
            attributes: {
              ...{ backend: 'pg', workspace: null, defaults: null },
              config: { value: { conn_str: `postgres://u:${secret}@h` }, type: ['object', { conn_str: 'string' }] },
              outputs: { value: { pw: secret }, type: ['object', { pw: 'string' }] },
            },
            sensitive_attributes: [],
          },
        ],
      },
    ],
  })
  const text = JSON.stringify(attributesOf(content, 'data.terraform_remote_state.other'))
  ok(text.includes('"pg"'), text)
  ok(!text.includes(secret), text)
})
