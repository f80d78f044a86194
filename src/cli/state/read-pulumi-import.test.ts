import { deepEqual, equal, match, throws } from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import type { CliError } from '../cli-error.ts'
import { preparePulumiImport, readPulumiBackend } from './read-pulumi-import.ts'

const signature = { '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270' }
const encrypted = { ...signature, ciphertext: 'AAAA' }
const plain = { ...signature, plaintext: '"hunter22"' }
const deployment = (secret: object | undefined, provider: string | undefined) => ({
  ...(provider && { secrets_providers: { type: provider, state: { url: 'https://api.pulumi.com' } } }),
  resources: [{ urn: 'urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev', outputs: { password: secret } }],
})
const exported = (secret: object | undefined, provider?: string) => JSON.stringify({ version: 3, deployment: deployment(secret, provider) })

test('a checkpoint of a file backend becomes what "pulumi stack export" writes', () => {
  const checkpoint = JSON.stringify({
    version: 3,
    checkpoint: { stack: 'organization/shop/dev', latest: deployment(encrypted, 'passphrase') },
  })
  const { content, secretsHint } = preparePulumiImport(checkpoint, 'dev.json')
  deepEqual(JSON.parse(content), JSON.parse(exported(encrypted, 'passphrase')))
  match(secretsHint ?? '', /encrypted with passphrase/)
})

test('secrets of Pulumi Cloud are imported in plain text only, and need Pulumi Cloud no more', () => {
  throws(
    () => preparePulumiImport(exported(encrypted, 'service'), 'f'),
    (error: CliError) => /encrypted by Pulumi Cloud/.test(error.message) && /--show-secrets/.test(error.hint ?? ''),
  )
  const { content, secretsHint } = preparePulumiImport(exported(plain, 'service'), 'f')
  deepEqual([JSON.parse(content), secretsHint], [JSON.parse(exported(plain)), undefined])
  equal(preparePulumiImport(exported(undefined, 'service'), 'f').secretsHint, undefined)
})

for (const { name, text, want } of [
  { name: 'nothing', text: ' ', want: /there is no state/ },
  { name: 'a state of Terraform', text: '{"version":4,"lineage":"l","serial":1}', want: /Terraform or OpenTofu/ },
  { name: 'another file', text: '{}', want: /not a state of Pulumi/ },
])
  test(`${name} is rejected`, () =>
    throws(
      () => preparePulumiImport(text, 'f'),
      (error: CliError) => want.test(error.message) && error.exitCode === 4,
    ))

function backend(t: TestContext, files: Record<string, string | Buffer>): string {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-pulumi-import-'))
  t.after(() => rmSync(directory, { recursive: true }))
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true })
    writeFileSync(join(directory, name), content)
  }
  return directory
}

test('the only stack of a file backend is read, also compressed and of a backend without projects', t => {
  const state = exported(plain)
  const project = backend(t, {
    '.pulumi/stacks/shop/dev.json': state,
    '.pulumi/stacks/shop/dev.json.bak': 'x',
    '.pulumi/meta.yaml': 'version: 1',
  })
  equal(readPulumiBackend(project, false).text, state)
  equal(readPulumiBackend(join(project, '.pulumi'), false).text, state)
  equal(readPulumiBackend(backend(t, { '.pulumi/stacks/dev.json.gz': gzipSync(state) }), false).text, state)
  equal(readPulumiBackend(backend(t, { '.pulumi/stacks/shop/dev.json.zst': zstdCompressSync(state) }), false).text, state)
})

test('a backend without a stack, with several, or with a locked one is rejected', t => {
  const stack = (name: string) => ({ [`.pulumi/stacks/shop/${name}.json`]: '{}' })
  throws(() => readPulumiBackend(backend(t, {}), false), /has no .pulumi\/stacks/)
  throws(() => readPulumiBackend(backend(t, { '.pulumi/stacks/x': '' }), false), /has no stacks/)
  const several = backend(t, { ...stack('a'), ...stack('b'), '.pulumi/stacks/shop/b.json': '{"b":1}' })
  throws(() => readPulumiBackend(several, false), /has 2 stacks/)
  throws(() => readPulumiBackend(several, false, 'b'), /has no stack b/)
  equal(readPulumiBackend(several, false, 'shop/b').text, '{"b":1}')
  const locked = backend(t, { ...stack('dev'), '.pulumi/locks/organization/shop/dev/1.json': '{}' })
  throws(() => readPulumiBackend(locked, false), /is locked by/)
  equal(readPulumiBackend(locked, true).text, '{}')
})

test('a provider that has encrypted nothing is not needed any more', () => {
  for (const secret of [plain, undefined]) {
    const { content, secretsHint } = preparePulumiImport(exported(secret, 'passphrase'), 'f')
    deepEqual([JSON.parse(content), secretsHint], [JSON.parse(exported(secret)), undefined])
  }
})
