import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import type { EngineContext, StackOutputs } from '../engine.ts'
import { readReferencedStack } from './stack-reference.ts'

const stored: Record<string, StackOutputs> = {
  network: {
    outputs: { vpc: { value: 'vpc-1', sensitive: false }, key: { value: { a: 'secret' }, sensitive: true } },
    pulumiStack: 'net/dev',
  },
  database: { outputs: { host: { value: 'db', sensitive: false } } },
}
const context = (spec: Partial<EngineContext['spec']>) => ({
  spec: { engine: 'pulumi' as const, ...spec },
  stack: { namespace: 'apps', name: 'shop', uid: 'u' },
  readStackOutputs: async (name: string) => stored[name],
})
const named = context({ dependsOn: [{ name: 'network' }, { name: 'later' }], variablesFrom: [{ stackRef: { name: 'database' } }] })
const idOf = (text: string) => {
  const [organization = '', project = '', stack = ''] = text.split('/')
  return { organization, project, stack }
}
const outputsOf = async (id: string) =>
  JSON.parse(Buffer.from(await readReferencedStack(named, idOf(id))).toString()).deployment.resources[0]

test('a reference finds the outputs of a Stack that the spec names, and nothing else of it', async () => {
  const root = await outputsOf('apps/net/dev')
  equal(root.urn, 'urn:pulumi:dev::net::pulumi:pulumi:Stack::net-dev')
  deepEqual(root.outputs, {
    vpc: 'vpc-1',
    key: { '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270', plaintext: '{"a":"secret"}' },
  })
  deepEqual((await outputsOf('apps/anything/database')).outputs, { host: 'db' })
})

for (const [id, stack, code, message] of [
  ['other/net/dev', named, 'Forbidden', /another organization.*as apps\/net\/dev/],
  [
    'apps/net/prod',
    named,
    'Forbidden',
    /Stack apps\/shop may not refer to apps\/net\/prod: name that Stack in spec.dependsOn .*it names network, later, database/,
  ],
  ['apps/wrong/dev', named, 'Forbidden', /may not refer/],
  ['apps/net/network', named, 'Forbidden', /may not refer/],
  ['apps/net/dev', context({}), 'Forbidden', /it names none/],
  ['apps/x/later', named, 'NotFound', /Stack apps\/later has no outputs yet/],
] as const) {
  test(`a reference to ${id} is rejected with ${code}`, () => rejects(readReferencedStack(stack, idOf(id)), { code, message }))
}
