import { deepEqual, doesNotMatch, equal, rejects } from 'node:assert/strict'
import { createDecipheriv, pbkdf2Sync } from 'node:crypto'
import { test } from 'node:test'
import type { CliError } from '../cli-error.ts'
import { exportState, isForStackOnly } from './export-state.ts'
import { createPassphraseSecrets } from './passphrase-secrets.ts'

const signature = { '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270' }
const encrypted = (text: string) => ({ ...signature, ciphertext: Buffer.from(`sealed ${JSON.stringify(text)}`).toString('base64') })
const plain = (text: string) => ({ ...signature, plaintext: JSON.stringify(text) })
const state = (secret: (text: string) => object, type?: string) => ({
  ...{ version: 4, features: ['refreshBeforeUpdate'] },
  deployment: {
    ...(type !== undefined && { secrets_providers: { type, state: { url: 'http://127.0.0.1:1', owner: 'a', project: 'b', stack: 'c' } } }),
    resources: [
      {
        urn: 'urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev',
        outputs: { list: [{ deep: secret('a') }, secret('b'), secret('a')], open: 1 },
      },
    ],
    pending_operations: [{ resource: { urn: 'urn:pulumi:dev::shop::a:b:C::c', inputs: { password: secret('c') } }, type: 'creating' }],
  },
})
const decrypt = async (values: readonly string[]) =>
  values.map(value => Buffer.from(Buffer.from(value, 'base64').toString().replace('sealed ', '')).toString('base64'))

for (const type of ['service', undefined])
  test(`every secret is decrypted once, and the provider is that of Pulumi Cloud (${type})`, async () => {
    const requests: number[] = []
    const shown = await exportState(JSON.stringify(state(encrypted, type)), async values => {
      requests.push(values.length)
      return await decrypt(values)
    })
    const { deployment, ...others } = JSON.parse(shown)
    const { secrets_providers: provider, ...resources } = deployment
    deepEqual({ ...others, deployment: resources }, state(plain))
    deepEqual(provider, { type: 'service', state: { url: 'https://api.pulumi.com', owner: '', project: 'shop', stack: 'dev' } })
    deepEqual(requests, [3])
  })

test('many secrets are decrypted in several requests', async () => {
  const urn = 'urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev'
  const outputs = Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`key${i}`, encrypted(`value ${i}`)]))
  const requests: number[] = []
  const text = await exportState(JSON.stringify({ version: 3, deployment: { resources: [{ urn, outputs }] } }), async values => {
    requests.push(values.length)
    return await decrypt(values)
  })
  deepEqual(requests, [10_000, 1])
  deepEqual(JSON.parse(text).deployment.resources[0].outputs.key10000, plain('value 10000'))
})

test('secrets are encrypted with a passphrase as the CLI does it', async () => {
  const passphrase = await createPassphraseSecrets('open sesame')
  const text = await exportState(JSON.stringify(state(encrypted, 'service')), decrypt, passphrase)
  const { deployment } = JSON.parse(text)
  doesNotMatch(text, /plaintext/)
  const [, salt = '', ...check] = (deployment.secrets_providers.state.salt as string).split(':')
  const key = pbkdf2Sync('open sesame', Buffer.from(salt, 'base64'), 1_000_000, 32, 'sha256')
  const open = (ciphertext: string) => {
    const [, nonce = '', sealed = ''] = ciphertext.split(':')
    const bytes = Buffer.from(sealed, 'base64')
    const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64')).setAuthTag(bytes.subarray(-16))
    return Buffer.concat([decipher.update(bytes.subarray(0, -16)), decipher.final()]).toString()
  }
  equal(open(check.join(':')), 'pulumi')
  equal(open(deployment.resources[0].outputs.list[1].ciphertext), '"b"')
  equal(open(deployment.pending_operations[0].resource.inputs.password.ciphertext), '"c"')
})

test('secrets in plain text are encrypted with a passphrase, too', async () => {
  const passphrase = { provider: { type: 'passphrase' as const, state: { salt: 's' } }, encrypt: (text: string) => `sealed ${text}` }
  const { deployment } = JSON.parse(await exportState(JSON.stringify(state(plain)), decrypt, passphrase))
  equal(deployment.resources[0].outputs.list[1].ciphertext, 'sealed "b"')
  deepEqual(deployment.secrets_providers, passphrase.provider)
})

test('a response with fewer values than secrets is an error, not empty secrets', async () => {
  const short = async (values: readonly string[]) => (await decrypt(values)).slice(1)
  await rejects(exportState(JSON.stringify(state(encrypted)), short), /decrypted 2 values, not the 3/)
})

test('secrets of another provider are rejected', async () => {
  await rejects(exportState(JSON.stringify(state(encrypted, 'passphrase')), decrypt), (error: CliError) =>
    /encrypted with passphrase/.test(error.message),
  )
})

test('a state is only for its Stack if it has secrets that the store has encrypted', () => {
  equal(isForStackOnly(JSON.stringify(state(encrypted, 'service'))), true)
  equal(isForStackOnly(JSON.stringify(state(encrypted, 'passphrase'))), false)
  equal(isForStackOnly(JSON.stringify(state(plain, 'service'))), false)
  equal(isForStackOnly('{"entries":[]}'), false)
})
