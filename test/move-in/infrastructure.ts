import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { VariablesFrom } from '../../src/api/index.ts'
import { buildCache } from '../support/run-program.ts'

export const environments = ['dev', 'staging', 'prod'] as const
type Environment = (typeof environments)[number]

/**
 * `hasBackend`: as a team applies it without Oarlock, with backends, workspaces and `terraform_remote_state`; else with variables in their place.
 * `isChanged`: after the change with new and removed resources, `moved` and `import` blocks.
 */
export type Stage = { readonly hasBackend: boolean; readonly isChanged: boolean }

/** A state: a root module in one environment. */
export type Deployment = {
  readonly stack: string
  readonly environment: Environment
  readonly directory: string
  /** Set where the environments share a root module. */
  readonly workspace?: string
  readonly variables?: Record<string, unknown>
  readonly variablesFrom?: VariablesFrom[]
}

/** What a component is made of. `main` is HCL. */
type Component = {
  main: (stage: Stage, place: Place) => string
  /** Components whose outputs it uses: in another state before, variables of a Stack afterwards. */
  uses?: string[]
  files?: (stage: Stage, place: Place) => Record<string, string>
  hasPassword?: boolean
}
type Place = { environment: Environment; component: string }

/** Root modules in a directory per environment. */
const components: Record<string, Component> = {
  network: {
    main: stage => `
      resource "terraform_data" "subnet" {
        for_each = toset(${stage.isChanged ? '["a", "b", "c"]' : '["a", "b"]'})
        input    = { label = "\${module.label.name}/subnet-\${each.key}" }
        ${recorded('self.input.label')}
      }
      output "subnet_a" { value = terraform_data.subnet["a"].id }`,
  },
  database: {
    hasPassword: true,
    main: () => `
      variable "password" {
        type      = string
        sensitive = true
      }
      resource "terraform_data" "server" {
        input = { label = "\${module.label.name}/server", login = { user = "app", password = var.password } }
        ${recorded('self.input.label')}
      }
      output "connection" {
        value     = "app:\${var.password}@\${terraform_data.server.id}"
        sensitive = true
      }`,
  },
  compute: {
    uses: ['network'],
    main: (stage, { environment }) => `
      resource "local_file" "instance" {
        count    = ${stage.isChanged && environment === 'prod' ? 3 : 2}
        filename = "\${local.objects}/instance-\${count.index}"
        content  = "subnet \${${using(stage, 'network', 'subnet_a')}}"
        ${recorded('self.filename')}
      }
      output "addresses" { value = local_file.instance[*].filename }`,
  },
  cache: {
    main: stage => `
      resource "terraform_data" "${stage.isChanged ? 'primary' : 'node'}" {
        input = { label = "\${module.label.name}/node" }
        ${recorded('self.input.label')}
      }
      ${stage.isChanged ? 'moved {\n from = terraform_data.node\n to = terraform_data.primary\n}' : ''}`,
  },
  queue: {
    main: stage => `
      resource "terraform_data" "queue" {
        input = { label = "\${module.label.name}/queue" }
        ${recorded('self.input.label')}
      }
      ${
        stage.isChanged
          ? `import {
        to = terraform_data.legacy
        id = "legacy-queue"
      }
      resource "terraform_data" "legacy" {
        ${recorded('self.id')}
      }`
          : ''
      }`,
  },
  cdn: {
    main: () => `
      module "site" {
        for_each = toset(["docs", "shop"])
        source   = "../../../modules/site"
        objects  = "\${local.objects}/\${each.key}"
      }
      output "pages" { value = { for name, site in module.site : name => site.pages } }`,
  },
  secrets: {
    hasPassword: true,
    main: () => `
      variable "password" {
        type      = string
        sensitive = true
      }
      resource "terraform_data" "secret" {
        for_each = toset(["api", "web"])
        input    = { label = "\${module.label.name}/\${each.key}", value = "\${each.key}-\${var.password}" }
        ${recorded('self.input.label')}
      }`,
  },
  iam: {
    files: stage => ({
      'terraform.tfvars': `roles = ${stage.isChanged ? '{ ann = "admin", bob = "admin" }' : '{ ann = "admin", bob = "reader", eve = "reader" }'}\n`,
    }),
    main: () => `
      variable "roles" { type = map(string) }
      resource "terraform_data" "user" {
        for_each = var.roles
        input    = { label = "\${module.label.name}/\${each.key}", role = each.value }
        ${recorded('self.input.label')}
      }`,
  },
  app: {
    uses: ['compute', 'database'],
    main: stage => `
      resource "terraform_data" "release" {
        input = { label = "\${module.label.name}/release", hosts = ${using(stage, 'compute', 'addresses')}[0], database = ${using(stage, 'database', 'connection')} }
        ${recorded('self.input.label')}
      }`,
  },
}

/** Root modules with a workspace per environment. */
const shared = ['dns', 'registry', 'monitoring']

const using = (stage: Stage, component: string, output: string): string =>
  stage.hasBackend ? `data.terraform_remote_state.${component}.outputs.${output}` : `var.${output}`

/** A repository of 30 root modules with 36 states, and the directory that stands for the cloud in which they create their resources. */
export class Infrastructure {
  readonly #root: string
  readonly #ledger: string
  /** Configuration file of the engine: providers come from scripts/build-providers.sh. */
  readonly cliConfig: string

  constructor(root: string) {
    this.#root = root
    this.#ledger = join(root, 'ledger')
    this.cliConfig = join(root, 'cli.tfrc')
    mkdirSync(root, { recursive: true })
    writeFileSync(this.cliConfig, `provider_installation {\n  filesystem_mirror { path = "${join(buildCache, 'mirror')}" }\n}\n`)
  }

  /** The file of a `local_file`. */
  object(environment: Environment, component: string, name: string): string {
    return join(this.#root, 'objects', environment, component, name)
  }

  /** What was created (or destroyed) so far, by name, in order. */
  recorded(action: 'create' | 'destroy'): string[] {
    if (!existsSync(this.#ledger)) return []
    const lines = readFileSync(this.#ledger, 'utf8').split('\n')
    return lines.flatMap(line => (line.startsWith(`${action} `) ? [line.slice(action.length + 1)] : []))
  }

  /** The states in an order in which each comes after those it reads. */
  get deployments(): Deployment[] {
    const separate = Object.entries(components).flatMap(([component, { uses = [], hasPassword }]) =>
      environments.map(environment => ({
        stack: `${environment}-${component}`,
        environment,
        directory: `environments/${environment}/${component}`,
        variablesFrom: [
          ...uses.map(name => ({ stackRef: { name: `${environment}-${name}` } })),
          ...(hasPassword ? [{ secretRef: { name: 'password' } }] : []),
        ],
      })),
    )
    const inWorkspaces = shared.flatMap(component =>
      environments.map(environment => ({
        ...{ stack: `${environment}-${component}`, environment, directory: `shared/${component}` },
        ...{ workspace: environment, variables: { environment } },
      })),
    )
    return [...separate, ...inWorkspaces]
  }

  /** The files of the repository. */
  files(stage: Stage): Record<string, string> {
    const files: Record<string, string> = {
      'modules/label/main.tf': 'variable "parts" { type = list(string) }\noutput "name" { value = join("/", var.parts) }\n',
      'modules/site/main.tf': `variable "objects" { type = string }
        resource "local_file" "page" {
          count    = 2
          filename = "\${var.objects}/page-\${count.index}"
          content  = "page"
          ${this.#inPlace(recorded('self.filename'))}
        }
        output "pages" { value = local_file.page[*].filename }`,
    }
    for (const [component, { main, uses = [], files: more }] of Object.entries(components))
      for (const environment of environments) {
        const [place, directory] = [{ environment, component }, `environments/${environment}/${component}`]
        const inputs = uses.map(name => this.#input(stage, environment, name))
        const label = `module "label" {\n source = "../../../modules/label"\n parts = ["${environment}", "${component}"]\n}`
        const objects = `locals { objects = "${join(this.#root, 'objects', environment, component)}" }`
        files[`${directory}/main.tf`] = this.#inPlace([label, objects, ...inputs, main(stage, place)].join('\n'))
        for (const [name, text] of Object.entries(more?.(stage, place) ?? {})) files[`${directory}/${name}`] = text
        files[`${directory}/backend.tf`] = stage.hasBackend ? backend(this.#state(environment, component)) : ''
      }
    for (const component of shared) {
      const environment = stage.hasBackend ? 'terraform.workspace' : 'var.environment'
      const resource = `resource "terraform_data" "zone" {
          count = ${environment} == "prod" ? 2 : 1
          input = { label = "\${${environment}}/${component}/zone-\${count.index}" }
          ${recorded('self.input.label')}
        }`
      files[`shared/${component}/main.tf`] = this.#inPlace(
        `${stage.hasBackend ? '' : 'variable "environment" { type = string }\n'}${resource}`,
      )
      files[`shared/${component}/backend.tf`] = stage.hasBackend ? backend(this.#state('default', component)) : ''
    }
    return files
  }

  #state(environment: string, component: string): string {
    return join(this.#root, 'states', environment, `${component}.tfstate`)
  }

  #input(stage: Stage, environment: Environment, component: string): string {
    if (stage.hasBackend)
      return `data "terraform_remote_state" "${component}" {\n backend = "local"\n config = { path = "${this.#state(environment, component)}" }\n}`
    return components[component]!.main(stage, { environment, component })
      .split('\n')
      .flatMap(line => /output "(\w+)"/.exec(line)?.[1] ?? [])
      .map(name => `variable "${name}" {\n type = any\n}`)
      .join('\n')
  }

  #inPlace(hcl: string): string {
    return hcl.replaceAll('LEDGER', this.#ledger)
  }
}

const backend = (path: string): string =>
  `terraform {\n  backend "local" {\n    path          = "${path}"\n    workspace_dir = "${dirname(path)}/workspaces-${path.split('/').pop()}"\n  }\n}\n`

/** Provisioners that append what happens to the resource named by `name` to the ledger. */
const recorded = (name: string): string => `provisioner "local-exec" {
          command = "echo create \${${name}} >> LEDGER"
        }
        provisioner "local-exec" {
          when    = destroy
          command = "echo destroy \${${name}} >> LEDGER"
        }`
