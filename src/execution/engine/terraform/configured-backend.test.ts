import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configuredBackend } from './configured-backend.ts'
import { moduleFileNames } from './module-files.ts'

const s3 = 'backend "s3"'

for (const { name, file = 'main.tf', text, want } of [
  { name: 'a backend', text: 'terraform {\n  required_version = ">= 1"\n  backend "s3" {\n    bucket = "b"\n  }\n}', want: [s3, 3] },
  { name: 'cloud', text: 'terraform {\n  cloud {\n    organization = "o"\n  }\n}', want: ['cloud', 2] },
  { name: 'everything on one line', text: 'terraform { backend "s3" {} }', want: [s3, 1] },
  { name: 'a label without quotes', text: 'terraform {\nbackend s3 {\n}\n}', want: [s3, 2] },
  { name: 'comments inside of the header', text: 'terraform /* { */ {\n/* x */ backend /*\n*/ "s3" /* y */ {}\n}', want: [s3, 2] },
  { name: 'Windows line ends', text: 'terraform {\r\n  backend "s3" {\r\n  }\r\n}\r\n', want: [s3, 2] },
  { name: 'a byte order mark', text: '\uFEFFterraform {\n  backend "s3" {}\n}', want: [s3, 2] },
  {
    name: 'after a block',
    text: 'terraform {\n  required_providers {\n    a = { source = "x/a" }\n  }\n  backend "s3" {}\n}',
    want: [s3, 5],
  },
  { name: 'the second terraform block', text: 'terraform {}\nlocals {\n  a = [{}]\n}\nterraform {\n  backend "s3" {}\n}', want: [s3, 6] },
  { name: 'after a heredoc', text: 'locals {\n  a = <<EOT\n}}\n"\nEOT\n}\nterraform {\n  backend "s3" {}\n}', want: [s3, 8] },
  { name: 'line comments', text: 'terraform {\n  # backend "s3" {}\n  // cloud {}\n}', want: undefined },
  { name: 'a block comment', text: '/* terraform {\n  backend "s3" {}\n} */ terraform {}', want: undefined },
  { name: 'a string', text: 'locals {\n  a = "terraform { backend \\"s3\\" {} }"\n}', want: undefined },
  { name: 'a heredoc', text: 'locals {\n  a = <<-EOT\n  terraform {\n    backend "s3" {}\n  }\n  EOT\n}', want: undefined },
  { name: 'an attribute called backend', text: 'terraform {\n  backend = { s3 = {} }\n}', want: undefined },
  { name: 'a block of another type', text: 'resource "x" "y" {\n  backend "s3" {}\n}', want: undefined },
  { name: 'a nested terraform block', text: 'module "m" {\n  terraform {\n    backend "s3" {}\n  }\n}', want: undefined },
  { name: 'a resource called terraform', text: 'data "terraform_remote_state" "a" {\n  backend = "s3"\n}', want: undefined },
  { name: 'an object after the block', text: 'terraform {}\nlocals { a = { backend = {} } }', want: undefined },
  { name: 'JSON', file: 'x_override.tf.json', text: '{"terraform": {"backend": {"s3": {"bucket": "b"}}}}', want: [s3, undefined] },
  { name: 'JSON lists', file: 'x.tf.json', text: '[{}, {"terraform": [{}, {"backend": [{"s3": [{}]}]}]}]', want: [s3, undefined] },
  { name: 'cloud in JSON', file: 'x.tf.json', text: '{"terraform": {"cloud": {}}}', want: ['cloud', undefined] },
  {
    name: 'no backend in JSON',
    file: 'x.tf.json',
    text: '{"terraform": {"backend": {}, "cloud": null}, "locals": {"backend": {"s3": {}}}}',
    want: undefined,
  },
  { name: 'invalid JSON', file: 'x.tf.json', text: '{"terraform": {"backend"', want: undefined },
])
  test(`the backend that files configure: ${name}`, () => {
    const found = configuredBackend([{ name: file, text }])
    assert.deepEqual(found && [found.block, found.line], want)
    if (found) assert.equal(found.file, file)
  })

test('the files of a root module are those that the engine reads', () => {
  const names = ['.hidden.tf', 'a.tf', 'a.tofu', 'b.tf', 'b.tf.json', 'b.tofu.json', 'c.tofu', 'c.tfvars', 'README.md', 'x_override.tf']
  assert.deepEqual(moduleFileNames(names, 'terraform'), ['a.tf', 'b.tf', 'b.tf.json', 'x_override.tf'])
  assert.deepEqual(moduleFileNames(names, 'opentofu'), ['a.tofu', 'b.tf', 'b.tofu.json', 'c.tofu', 'x_override.tf'])
})
