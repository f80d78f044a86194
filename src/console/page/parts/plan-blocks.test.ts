import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { planBlocks } from './plan-blocks.ts'

const shapes = (text: string, engine: string) => planBlocks(text, engine).map(({ title, tone, lines }) => [title, tone, lines.length])

const terraform = `
OpenTofu will perform the following actions:

  # terraform_data.a will be created
  + resource "terraform_data" "a" {
      + id = (known after apply)
    }

  # terraform_data.b["x"] must be replaced
-/+ resource "terraform_data" "b" {
      ~ input = 1 -> 2
    }

Plan: 2 to add, 0 to change, 1 to destroy.`

test('a plan of terraform has a block for each resource, and the lines between them', () => {
  deepEqual(shapes(terraform, 'opentofu'), [
    [undefined, undefined, 3],
    ['  # terraform_data.a will be created', 'good', 3],
    [undefined, undefined, 1],
    ['  # terraform_data.b["x"] must be replaced', 'bad', 3],
    [undefined, undefined, 2],
  ])
})

test('a plan of manifests and one of Pulumi have a block for each object', () => {
  deepEqual(shapes('~ ConfigMap shop/web\n    ~ data.theme: "a" → "b"\n\n- Secret shop/old', 'manifests'), [
    ['~ ConfigMap shop/web', 'attention', 2],
    ['- Secret shop/old', 'bad', 0],
  ])
  const pulumi =
    '  pulumi:pulumi:Stack: (same)\n    [urn=a]\n    + aws:s3/bucket:Bucket: (create)\n        [urn=b]\nResources:\n    + 1 to create'
  deepEqual(shapes(pulumi, 'pulumi'), [
    [undefined, undefined, 2],
    ['    + aws:s3/bucket:Bucket: (create)', 'good', 2],
    [undefined, undefined, 1],
  ])
})

test('no line is left out, whatever the engine prints', () => {
  for (const engine of ['terraform', 'pulumi', 'manifests', 'command'])
    for (const text of [terraform, '', 'a\n\nb', '  # x will be destroyed'])
      equal(
        planBlocks(text, engine)
          .flatMap(({ title, lines }) => [...(title === undefined ? [] : [title]), ...lines])
          .join('\n'),
        text,
      )
})
