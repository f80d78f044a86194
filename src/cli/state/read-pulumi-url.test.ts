import { equal, rejects, throws } from 'node:assert/strict'
import { test } from 'node:test'
import type { CliError } from '../cli-error.ts'
import { chooseStack, isBackendUrl, readPulumiUrl } from './read-pulumi-url.ts'

const names = ['organization/shop/dev', 'organization/shop/prod', 'organization/web/dev']
const from = { url: 's3://states', name: undefined, stack: 'prod' }

for (const { name, of, all = names, want } of [
  { name: 'the only stack of this name', of: from, want: 'organization/shop/prod' },
  { name: 'a stack named with its project', of: { ...from, name: 'web/dev' }, want: 'organization/web/dev' },
  { name: 'a stack named in full', of: { ...from, name: 'organization/shop/dev' }, want: 'organization/shop/dev' },
  { name: 'a stack of a backend without projects', of: from, all: ['prod'], want: 'prod' },
])
  test(`chooses ${name}`, () => equal(chooseStack(all, of), want))

for (const { name, of, all = names, message, hint } of [
  {
    name: 'several stacks of this name',
    of: { ...from, stack: 'dev' },
    message: /has 2 stacks "dev"/,
    hint: /organization\/shop\/dev, organization\/web\/dev$/,
  },
  {
    name: 'no stack of this name',
    of: { ...from, stack: 'rod' },
    message: /has no stack "rod"/,
    hint: /--pulumi-stack: organization\/shop\/dev, /,
  },
  { name: 'no stack', of: from, all: [], message: /has no stack "prod"/, hint: /check the address/ },
])
  test(`rejects ${name}`, () =>
    throws(
      () => chooseStack(all, of),
      (error: CliError) => message.test(error.message) && hint.test(error.hint ?? ''),
    ))

test('without the CLI the error has the commands that import the state from elsewhere', async () => {
  await rejects(
    readPulumiUrl({ ...from, url: 's3://key:secret@states' }, { PATH: '/nonexistent' }),
    (error: CliError) =>
      /^s3:\/\/\*\*\*@states is read with the Pulumi CLI, which was not found/.test(error.message) &&
      /pulumi stack export --show-secrets --stack NAME \| oarlock state import STACK --from -/.test(error.hint ?? ''),
  )
})

for (const [url, want] of [
  ['s3://states?region=eu-central-1', true],
  ['gs://states', true],
  ['azblob://states', true],
  ['https://api.pulumi.com', true],
  ['file:///srv/states', false],
  ['s3/states', false],
] as const)
  test(`${url} is ${want ? 'a' : 'no'} backend of the CLI`, () => equal(isBackendUrl(url), want))
