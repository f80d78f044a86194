import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readDependencyLock, withHashes } from './dependency-lock.ts'

const aws = 'registry.terraform.io/hashicorp/aws'
const time = 'registry.terraform.io/hashicorp/time'
const text = `# This file is maintained automatically by "terraform init".
# provider "registry.terraform.io/hashicorp/null" { hashes = ["h1:comment="] }

provider "${aws}" {
  version     = "6.0.0"
  constraints = "~> 6.0, != 6.1"
  hashes = [
    "h1:linux=",
    "h1:darwin=", # of laptops
    "zh:00",
  ]
}

provider "${time}" {
  version = "0.14.2"
}
`

test('reads version and checksums of each provider', () => {
  const providers = [...readDependencyLock(text)].map(([address, { version, hashes }]) => ({ address, version, hashes }))
  assert.deepEqual(providers, [
    { address: aws, version: '6.0.0', hashes: ['h1:linux=', 'h1:darwin=', 'zh:00'] },
    { address: time, version: '0.14.2', hashes: [] },
  ])
})

for (const [name, file] of Object.entries({
  'an empty file': '',
  'a file that ends in a list': `provider "${aws}" {\n  version = "6.0.0"\n  hashes = [`,
  'a file that ends in a block': `provider "${aws}" {`,
  'a checksum that is no list': `provider "${aws}" { hashes = "h1:x" }`,
  'a nested block': `other { provider "${aws}" { hashes = ["h1:x"] `,
}))
  test(`${name} is read without an error`, () => {
    assert.ok(readDependencyLock(file).size <= 1)
  })

test('replaces the checksums of one provider and changes nothing else', () => {
  const changed = withHashes(text, aws, ['h1:only='])
  assert.deepEqual(readDependencyLock(changed).get(aws)?.hashes, ['h1:only='])
  assert.equal(
    changed,
    `${text.slice(0, text.indexOf('\n    "h1:linux'))}\n    "h1:only=",\n  ${text.slice(text.indexOf(']\n}\n\nprovider'))}`,
  )
  assert.equal(withHashes(text, time, ['h1:only=']), text)
  assert.equal(withHashes(text, 'registry.terraform.io/hashicorp/null', ['h1:only=']), text)
})
