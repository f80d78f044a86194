/** Plugins of the real Pulumi CLI, which PULUMI_BIN names, from a local mirror: the plugin "random" is the one next to the CLI. */
import { deepEqual, equal } from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { dirname, join } from 'node:path'
import { after, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { privateNetworkProblem, probeIsolation } from '../src/execution/workspace/index.ts'
import { useOarlock } from './support/oarlock-fixture.ts'
import { isReady } from './support/stacks.ts'

const { PULUMI_BIN: pulumi } = process.env
const directory = dirname(pulumi ?? '')
const sandbox = await probeIsolation('Sandbox')
const networkProblem = sandbox.available ? (privateNetworkProblem(sandbox.sandbox?.slirp4netns) ?? false) : sandbox.reason
/** A sandbox with a network of its own reaches the machine by it, and not by its loopback interface. */
const address = Object.values(networkInterfaces())
  .flatMap(each => each ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address
const skip = pulumi === undefined ? 'PULUMI_BIN is not set' : address === undefined ? 'the machine has no network' : networkProblem

const program = (length: number) => ({
  inline: {
    files: {
      'Pulumi.yaml': `
name: pets
runtime: yaml
resources:
  pet: { type: "random:RandomPet", properties: { length: ${length} }, options: { version: 4.21.1 } }
outputs: { pet: "\${pet.id}" }
`,
    },
  },
})

describe('plugins of the Pulumi CLI', { skip }, () => {
  const requests: string[] = []
  const server = createServer(async (request, response) => {
    requests.push(request.url ?? '')
    const { stdout } = await promisify(execFile)('tar', ['czf', '-', '-C', directory, 'pulumi-resource-random'], {
      encoding: 'buffer',
      maxBuffer: 1024 ** 3,
    })
    response.end(stdout)
  })
  const up = useOarlock({
    args: ['--max-workers', '4'],
    env: async () => {
      await new Promise<void>(resolve => server.listen(0, '0.0.0.0', resolve))
      const url = `http://${address}:${(server.address() as AddressInfo).port}`
      // Without the provider on the PATH, which the CLI would prefer.
      const path = (process.env.PATH ?? '').split(':').filter(each => !existsSync(join(each, 'pulumi-resource-random')))
      return {
        PATH: path.join(':'),
        PULUMI_BIN: pulumi!,
        PULUMI_PLUGIN_DOWNLOAD_URL_OVERRIDES: `^https://get.pulumi.com.*$=${url},^github://.*$=${url}`,
      }
    },
  })
  const { stacks } = up
  after(() => void server.close())

  test('of 20 Runs that start together one downloads the plugin, and none fails', { timeout: 600_000 }, async () => {
    const names = Array.from({ length: 20 }, (_, number) => `pet-${number}`)
    const isolation = { level: 'Sandbox', network: 'Private' } as const
    await Promise.all(names.map(name => stacks.create(name, { engine: 'pulumi', source: program(2), isolation })))
    await Promise.all(names.map(name => stacks.until(name, 'Ready', isReady, 500_000)))
    const runs = (await Promise.all(names.map(name => stacks.runsOf(name)))).flat()
    deepEqual([requests.length, runs.length, runs.every(({ status }) => status?.phase === 'Succeeded')], [1, 20, true], requests.join())
    const providers = runs.map(({ status }) => status!.providers!)
    deepEqual(
      providers
        .filter(({ downloaded }) => downloaded > 0)
        .map(({ downloaded, downloadedBytes }) => [downloaded, downloadedBytes > 1_000_000]),
      [[1, true]],
      JSON.stringify(providers),
    )
    deepEqual([...new Set(providers.map(({ cached, waited, downloaded }) => cached + waited + downloaded))], [1], JSON.stringify(providers))
    equal(new Set(providers.map(({ downloadSeconds }) => downloadSeconds)).size, 1, JSON.stringify(providers))
  })
})
