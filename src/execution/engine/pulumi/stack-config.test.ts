import { deepEqual, equal, rejects } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, type TestContext, test } from 'node:test'
import { parse } from 'yaml'
import type { Json } from '../../../kubernetes/object/index.ts'
import { createEngineHarness } from '../engine-harness.testing.ts'
import { parseProject } from './project-file.ts'
import { parseStackConfig, writeStackConfig } from './stack-config.ts'

type Given = {
  files?: Record<string, string>
  variables?: Record<string, Json>
  secrets?: string[]
  project?: string
  isExternal?: boolean
}

/** "Encrypted" values are the text with a prefix. */
async function write(t: TestContext, { files = {}, variables = {}, secrets = [], project = '', isExternal }: Given): Promise<string> {
  const { context } = await createEngineHarness(t, files, { variables, sensitiveNames: secrets })
  const encrypt = async (values: readonly Uint8Array[]) => values.map(value => Buffer.from(`encrypted ${Buffer.from(value)}`))
  const parsed = await parseProject('Pulumi.yaml', `name: shop\nruntime: yaml\n${project}`)
  const path = await writeStackConfig(context, { project: parsed, stack: 'dev', encrypt: isExternal ? undefined : encrypt })
  return readFileSync(path, 'utf8')
}
const secure = (text: string) => ({ secure: Buffer.from(`encrypted ${text}`).toString('base64') })

describe('the configuration of a stack', () => {
  test('has the variables in place of values of the source, and every other value as its text', async t => {
    const text = await write(t, {
      files: { 'Pulumi.dev.yaml': '# ours\nconfig:\n  shop:a: 1\n  shop:mode: 017\n  shop:day: 2020-01-31\n  aws:region: "017"\n' },
      variables: { a: [1, { b: true }], mode2: '1_000', 'aws:region': 'eu', nothing: null },
    })
    equal(
      text,
      '# ours\nconfig:\n  shop:a: [ 1, { "b": true } ]\n  shop:mode: 017\n  shop:day: 2020-01-31\n  aws:region: "eu"\n  shop:mode2: "1_000"\n  shop:nothing: null\n',
    )
  })

  test('has secrets encrypted: a text, and a structured value as its JSON text', async t => {
    const variables = { password: 'p', numbers: [1, 2], count: 3, plain: 'x' }
    deepEqual(parse(await write(t, { variables, secrets: ['password', 'numbers', 'count'] })), {
      config: { 'shop:password': secure('p'), 'shop:numbers': secure('[1,2]'), 'shop:count': secure('3'), 'shop:plain': 'x' },
    })
  })

  test('has each value of a structured secret encrypted if the project declares its structure', async t => {
    const project = 'config:\n  login: { type: object }\n  "other:list": { type: array, items: { type: integer } }\n'
    const variables = { login: { user: 'u', pin: 7, more: [{ a: null }] }, 'other:list': [1, 2] }
    deepEqual(parse(await write(t, { project, variables, secrets: ['login', 'other:list'] })), {
      config: {
        'shop:login': { user: secure('u'), pin: secure('7'), more: [{ a: secure('null') }] },
        'other:list': [secure('1'), secure('2')],
      },
    })
  })

  test('rejects secret variables that another provider would have to encrypt', async t => {
    const given = { variables: { password: 'p' }, secrets: ['password'] }
    await rejects(write(t, { ...given, files: { 'Pulumi.dev.yaml': 'encryptionsalt: v1:abc\n' } }), {
      message:
        'the secret variables password cannot be configuration: Pulumi.dev.yaml has encryptionsalt, so its secrets provider encrypts all secrets; pass them as environment variables (spec.env), or remove encryptionsalt',
    })
    await rejects(write(t, { ...given, isExternal: true }), { reason: 'InvalidConfiguration', message: /spec\.state is External/ })
  })

  for (const environment of ['[shop-dev]', '{ imports: [shop-dev] }', 'shop-dev']) {
    test(`rejects the ESC environment ${environment} with Managed state, and keeps it with External state`, async t => {
      const files = { 'Pulumi.dev.yaml': `environment: ${environment}\n` }
      await rejects(write(t, { files }), {
        ...{ reason: 'InvalidConfiguration', retryable: false },
        message:
          'Pulumi.dev.yaml: environment names an environment of Pulumi ESC, which only Pulumi Cloud can open; remove it and set its configuration with spec.variables and spec.variablesFrom and its variables with spec.env of the Stack, or leave the state in Pulumi Cloud with "state: External"',
      })
      deepEqual(parse(await write(t, { files, isExternal: true })).environment, parse(environment))
    })
  }

  test('ignores an environment without a name', async t => {
    equal(await write(t, { files: { 'Pulumi.dev.yaml': 'environment: []\n' } }), 'environment: []\nconfig: {}\n')
  })

  for (const text of ['[a]', 'a', 'a: [', 'a: 1\na: 2']) {
    test(`of the source is rejected: ${JSON.stringify(text)}`, t =>
      rejects(write(t, { files: { 'Pulumi.dev.yaml': text } }), { reason: 'InvalidConfiguration', message: /^Pulumi\.dev\.yaml: / }))
  }

  test('of the source may be empty, have only comments, or be JSON', async () => {
    const config = [['shop:a', 1]] as const
    for (const text of ['', '# nothing\n', '---\n', '{}', '{"config":{}}'])
      deepEqual(parse(await (await parseStackConfig('x', text)).withConfig(config)), { config: { 'shop:a': 1 } }, JSON.stringify(text))
  })
})
