import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Stack, type StackSpec, stackResource } from '../../src/api/index.ts'
import { type AllInOne, startAllInOne } from '../../src/app/index.ts'
import { configMapResource, namespaceResource, secretResource } from '../../src/kubernetes/client/index.ts'
import { findCondition } from '../../src/kubernetes/object/index.ts'
import { eventually } from './eventually.ts'
import { terraformEngine } from './run-program.ts'

export const fleetNamespace = 'shop'

/** A real all-in-one with the Stacks of a shop: `network` → `app`, which both have applied; `database`, whose plan awaits approval; `web`, which has drifted. */
export type ConsoleFleet = {
  readonly app: AllInOne
  /** Of the console's pages, with a slash at its end. */
  readonly url: string
  /** The Run whose last version of the state of `network` is the one before its change. */
  readonly firstRun: string
  consoleLink(): string
  specOf(name: string): Promise<StackSpec>
  /** Waits until the Stack is as wanted. */
  whenStack(name: string, isWanted: (stack: Stack) => boolean): Promise<Stack>
  stop(): Promise<void>
}

const networkFiles = (marker: string) => ({
  'main.tf': `
variable "cidr" { type = string }
resource "terraform_data" "network" { input = { cidr = var.cidr, marker = "${marker}" } }
resource "terraform_data" "subnet" {
  count = 2
  input = cidrsubnet(var.cidr, 8, count.index)
}
output "network_id" { value = terraform_data.network.output.cidr }
output "token" {
  value     = "very-secret-token"
  sensitive = true
}
`,
})

const specs: Readonly<Record<string, StackSpec>> = {
  network: { engine: terraformEngine, variables: { cidr: '10.0.0.0/16' }, source: { inline: { files: networkFiles('one') } } },
  app: {
    engine: terraformEngine,
    dependsOn: [{ name: 'web' }],
    variablesFrom: [
      { stackRef: { name: 'network', outputs: { network_id: 'network', token: 'token' } } },
      { secretRef: { name: 'app-credentials' } },
      { configMapRef: { name: 'app-settings' } },
    ],
    variables: { replicas: 2 },
    source: {
      inline: {
        files: {
          'main.tf': `
variable "network" { type = string }
variable "token" {
  type      = string
  sensitive = true
}
variable "password" {
  type      = string
  sensitive = true
}
variable "replicas" { type = number }
variable "region" { type = string }
resource "terraform_data" "release" {
  input = { network = var.network, region = var.region, token = var.token, welcome = "${'ahoy '.repeat(200)}" }
}
`,
        },
      },
    },
  },
  database: {
    engine: terraformEngine,
    approval: 'Manual',
    source: {
      inline: {
        files: {
          // A line of its plan is wider than any screen.
          'main.tf': `resource "terraform_data" "volume" { input = 20 }\nresource "terraform_data" "database" { input = "${'db-'.repeat(100)}" }\n`,
        },
      },
    },
  },
  web: {
    engine: 'manifests',
    drift: 'Report',
    source: {
      inline: {
        files: {
          'settings.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: web-settings }\ndata: { theme: dark, welcome: Ahoy }\n',
        },
      },
    },
  },
}

export async function startConsoleFleet(): Promise<ConsoleFleet> {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-console-fleet-'))
  const port = { host: '127.0.0.1', port: 0 }
  const launcher = [process.execPath, join(import.meta.dirname, '..', '..', 'bin', 'oarlock.js')]
  const app = await startAllInOne({ dataDir, listen: port, healthAddress: port, launcher, version: 'test', pool: { max: 2 } })
  const { client } = app
  const namespace = fleetNamespace
  const stacks = client.resource(stackResource)
  const whenStack = async (name: string, isWanted: (stack: Stack) => boolean) =>
    await eventually(
      async () => {
        const stack = await stacks.get(name, { namespace })
        return isWanted(stack) ? stack : undefined
      },
      `Stack ${name}`,
      90_000,
    )
  const stop = async () => {
    await app.stop({ graceMs: 1_000 })
    rmSync(dataDir, { recursive: true, force: true })
  }
  let firstRun = ''
  try {
    await client.resource(namespaceResource).create({ metadata: { name: namespace } })
    await client
      .resource(secretResource)
      .create({ metadata: { name: 'app-credentials', namespace }, stringData: { password: 'correct-horse' } })
    await client.resource(configMapResource).create({ metadata: { name: 'app-settings', namespace }, data: { region: 'eu-1' } })
    for (const [name, spec] of Object.entries(specs)) await stacks.create({ metadata: { name, namespace, labels: { team: 'shop' } }, spec })
    const [network] = await Promise.all([
      ...['network', 'app', 'web'].map(name => whenStack(name, isReady)),
      whenStack('database', ({ status }) => findCondition(status?.conditions, 'AwaitingApproval')?.status === 'True'),
    ])
    firstRun = network?.status?.applied?.runName ?? ''
    // A second version of the state, and a difference that only a plan finds.
    const source = { inline: { files: networkFiles('two') } }
    const changed = await stacks.patch('network', { spec: { source } }, { type: 'merge', namespace })
    await client.resource(configMapResource).patch('web-settings', { data: { theme: 'light' } }, { type: 'merge', namespace })
    await stacks.patch('web', { metadata: { annotations: { 'oarlock.dev/requested-run': 'plan:drift' } } }, { type: 'merge', namespace })
    await Promise.all([
      whenStack('network', stack => stack.status?.applied?.generation === changed.metadata.generation && isReady(stack)),
      whenStack('web', ({ status }) => findCondition(status?.conditions, 'Drifted')?.status === 'True'),
    ])
  } catch (error) {
    await stop()
    throw error
  }
  return {
    ...{ app, firstRun, whenStack, stop, url: `${app.httpUrl}/console/` },
    consoleLink: () => app.consoleLink(),
    specOf: async name => (await stacks.get(name, { namespace })).spec,
  }
}

export const isReady = ({ metadata, status }: Stack): boolean =>
  status?.observedGeneration === metadata.generation && findCondition(status?.conditions, 'Ready')?.status === 'True'
