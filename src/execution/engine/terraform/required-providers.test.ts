import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { Flavor } from './flavor.ts'
import { requiredProviders } from './required-providers.ts'

type Row = { name: string; files: Record<string, string>; flavor?: Flavor['name']; expected: Record<string, string>; modules?: string[] }

const rows: Row[] = [
  {
    name: 'sources with and without a host, and their constraints',
    files: {
      'a.tf': `terraform {
        required_version = ">= 1.5" # { not a block
        required_providers {
          time  = { source = "hashicorp/time", version = "~> 0.9" }
          mine  = {
            source                = "registry.example:8443/Acme/widget"
            version               = ">= 1, != 1.3"
            configuration_aliases = [mine.west, mine.east]
          }
          local = "1.4.0"
        }
      }`,
    },
    expected: {
      'registry.terraform.io/hashicorp/time': '~> 0.9',
      'registry.example:8443/acme/widget': '>= 1, != 1.3',
      'registry.terraform.io/hashicorp/local': '1.4.0',
    },
  },
  {
    name: 'resources, data sources and provider blocks without a requirement, by their local names',
    files: {
      'a.tf': `resource "aws_instance" "web" {
        tags = { "resource \\"x_y\\" {" = <<-END
          resource "heredoc_x" "y" {}
        END
        }
      }
      data "random_id" "x" { byte_length = 8 }
      provider "null" {}
      resource "google_instance" "beta" {
        provider = google-beta.west
      }
      resource "terraform_data" "builtin" {}`,
    },
    flavor: 'opentofu',
    expected: {
      'registry.opentofu.org/hashicorp/aws': '',
      'registry.opentofu.org/hashicorp/random': '',
      'registry.opentofu.org/hashicorp/null': '',
      'registry.opentofu.org/hashicorp/google-beta': '',
    },
  },
  {
    name: 'a resource of a required provider, which is not looked for by its name',
    files: { 'a.tf': 'resource "widget_x" "y" {}', 'b.tf': 'terraform { required_providers { widget = { source = "acme/widget" } } }' },
    expected: { 'registry.terraform.io/acme/widget': '' },
  },
  {
    name: 'JSON syntax',
    files: {
      'a.tf.json': JSON.stringify({
        terraform: [{ required_providers: { time: { source: 'hashicorp/time', version: '~> 0.9' }, local: '1.4.0' } }],
        resource: { aws_instance: { web: {} }, google_x: { y: [{ provider: 'google-beta.west' }] } },
        provider: { null: [{ alias: 'x' }] },
        module: { net: { source: './net' } },
      }),
    },
    expected: {
      'registry.terraform.io/hashicorp/time': '~> 0.9',
      'registry.terraform.io/hashicorp/local': '1.4.0',
      'registry.terraform.io/hashicorp/null': '',
      'registry.terraform.io/hashicorp/aws': '',
      'registry.terraform.io/hashicorp/google-beta': '',
    },
    modules: ['./net'],
  },
  {
    name: 'modules',
    files: { 'a.tf': `module "a" {\n  source = "./a"\n  count = 2\n}\nmodule "b" { source = "git::https://x/y?ref=\${var.z}" }` },
    expected: {},
    modules: ['./a'],
  },
  {
    name: 'nothing that is no address or no constraint',
    files: {
      'a.tf': `terraform { required_providers {
        a = { source = "../../x" }
        b = { source = "a/b/c/d" }
        c = { source = "hashicorp/c", version = "1\\n} evil {" }
        d = { source = "\${var.x}/d" }
        e = { source = "terraform.io/builtin/terraform" }
        f = { source = "hashicorp/.." }
      } }`,
      'b.tf.json': '{"terraform": 1, "resource": [3, {"x": null}]',
    },
    expected: {},
  },
  {
    name: 'unbalanced files',
    files: { 'a.tf': 'terraform { required_providers { a = {\nresource "b_c" {{{' },
    expected: { 'registry.terraform.io/hashicorp/a': '' },
  },
]

for (const { name, files, flavor = 'terraform', expected, modules = [] } of rows)
  test(`finds ${name}`, () => {
    const found = requiredProviders(
      Object.entries(files).map(([name, text]) => ({ name, text })),
      flavor,
    )
    deepEqual([Object.fromEntries(found.providers), found.modules], [expected, modules])
  })
