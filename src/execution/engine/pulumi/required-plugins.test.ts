import { deepEqual } from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { pluginsOfPackages, pluginsOfState, pluginsOfYaml, validPlugins } from './required-plugins.ts'

const plugin = (name: string, version?: string, server?: string) => ({ name, version, server })

for (const { name, found, want } of [
  { name: 'a version with a v', found: { name: 'aws', version: 'v6.1.0' }, want: [plugin('aws', '6.1.0')] },
  { name: 'a pre-release', found: { name: 'aws', version: '6.1.0-alpha.1+x' }, want: [plugin('aws', '6.1.0-alpha.1+x')] },
  { name: 'no version', found: { name: 'azure-native' }, want: [plugin('azure-native')] },
  {
    name: 'a server',
    found: { name: 'x', version: '1.0.0', server: 'github://api.github.com/acme' },
    want: [plugin('x', '1.0.0', 'github://api.github.com/acme')],
  },
  { name: 'the provider of Pulumi itself', found: { name: 'pulumi', version: '1.0.0' }, want: [] },
  { name: 'a name that is an option', found: { name: '--file=/etc/passwd', version: '1.0.0' }, want: [] },
  { name: 'a name that is a path', found: { name: '../x', version: '1.0.0' }, want: [] },
  { name: 'a name with a version', found: { name: 'x@1.0.0' }, want: [] },
  { name: 'a version that is an option', found: { name: 'x', version: '--file' }, want: [] },
  { name: 'a version that is a path', found: { name: 'x', version: '1.0.0/../..' }, want: [] },
  { name: 'a server of git', found: { name: 'x', version: '1.0.0', server: 'git://example.com/x' }, want: [] },
  { name: 'a server that is a file', found: { name: 'x', version: '1.0.0', server: 'file:///etc' }, want: [] },
  { name: 'values that are no strings', found: { name: 1, version: {} }, want: [] },
])
  test(`of what a program declares, ${name} becomes ${want.length === 0 ? 'no plugin' : 'a plugin'}`, () =>
    deepEqual(validPlugins([found, found]), want))

function treeOf(t: TestContext, files: Record<string, unknown>): string {
  const root = mkdtempSync(join(tmpdir(), 'oarlock-test-'))
  t.after(() => rmSync(root, { recursive: true }))
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), typeof content === 'string' ? content : JSON.stringify(content))
  }
  return root
}

const place = { base: 'source', path: '' } as const

for (const { manager, files, want } of [
  {
    manager: 'npm',
    files: {
      '@pulumi/aws/package.json': { name: '@pulumi/aws', version: '6.1.0', pulumi: { resource: true } },
      '@pulumi/pulumi/package.json': { name: '@pulumi/pulumi', version: '3.0.0' },
      'acme/package.json': {
        name: 'acme',
        version: '0.1.0',
        pulumi: { resource: true, name: 'acme-cloud', version: '1.2.3', server: 'https://acme.example' },
      },
      'outer/package.json': { name: 'outer' },
      'outer/node_modules/@pulumi/random/package.json': { name: '@pulumi/random', version: '4.0.0', pulumi: { resource: true } },
      'without/package.json': { name: 'without', version: '1.0.0', pulumi: { resource: false, name: 'no' } },
      'bridged/package.json': { name: 'b', version: '1.0.0', pulumi: { resource: true, name: 'b', parameterization: {} } },
      'broken/package.json': '{',
    },
    want: [plugin('aws', '6.1.0'), plugin('acme-cloud', '1.2.3', 'https://acme.example'), plugin('random', '4.0.0')],
  },
  {
    manager: 'pnpm',
    files: {
      '.pnpm/@pulumi+aws@6.1.0/node_modules/@pulumi/aws/package.json': {
        name: '@pulumi/aws',
        version: '6.1.0',
        pulumi: { resource: true },
      },
    },
    want: [plugin('aws', '6.1.0')],
  },
  {
    manager: 'uv',
    files: {
      'lib/python3.12/site-packages/pulumi_aws/pulumi-plugin.json': { resource: true, name: 'aws', version: '6.1.0' },
      'lib/python3.12/site-packages/other/pulumi-plugin.json': { resource: false, name: 'other' },
    },
    want: [plugin('aws', '6.1.0')],
  },
  {
    manager: 'go',
    files: {
      'github.com/pulumi/pulumi-random/sdk/v4@v4.16.0/go/pulumi-plugin.json': { resource: true },
      'github.com/acme/pulumi-acme/sdk@v1.0.0/go/acme/pulumi-plugin.json': { resource: true, name: 'acme', version: '2.0.0' },
      'github.com/spf13/cobra@v1.8.0/cobra.go': '',
      'cache/download/x/pulumi-plugin.json': { resource: true, name: 'cached' },
    },
    want: [plugin('acme', '2.0.0'), plugin('random', '4.16.0')],
  },
] as const)
  test(`the plugins of packages of ${manager} are found`, async t =>
    deepEqual(await pluginsOfPackages({ manager, trees: [{ place, path: treeOf(t, files) }] }), want))

test('the plugins of a state are those of its provider resources', () => {
  const resource = (type: string, inputs: unknown) => ({ urn: `urn:pulumi:s::p::${type}::n`, type, custom: true, inputs })
  deepEqual(
    pluginsOfState({
      resources: [
        resource('pulumi:providers:aws', { version: '6.1.0' }),
        resource('pulumi:providers:acme', { __internal: { version: '1.0.0', pluginDownloadURL: 'https://acme.example' } }),
        resource('pulumi:providers:b', { version: '1.0.0', __internal: { name: 'terraform-provider', parameterization: {} } }),
        resource('aws:s3/bucket:Bucket', { version: '1.0.0' }),
      ] as never,
    }),
    [plugin('aws', '6.1.0'), plugin('acme', '1.0.0', 'https://acme.example')],
  )
})

test('the plugins of a program in YAML are those of its types and functions, without those in the source', () => {
  deepEqual(
    pluginsOfYaml({
      name: 'p',
      plugins: { providers: [{ name: 'local', path: './local' }] },
      resources: {
        pet: { type: 'random:RandomPet', options: { version: '4.16.0' } },
        own: { type: 'pulumi:providers:gcp' },
        stack: { type: 'pulumi:pulumi:StackReference' },
        local: { type: 'local:index:X' },
        nested: {
          type: 'random:RandomPet',
          options: { version: '4.16.0' },
          properties: { x: { 'fn::invoke': { function: 'aws:ec2:getAmi' } } },
        },
      },
      variables: { zones: { 'fn::azure:getZones': {} } },
    }),
    [plugin('random', '4.16.0'), plugin('gcp'), plugin('aws'), plugin('azure')],
  )
})
