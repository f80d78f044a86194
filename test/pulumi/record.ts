/**
 * Records conversations between the real Pulumi CLI and our endpoint, one file for each scenario:
 * `PULUMI_BIN=/path/to/pulumi node test/pulumi/record.ts [SCENARIO…]`; README.md has what it needs.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { arch, platform } from 'node:os'
import { dirname, join } from 'node:path'
import { createPulumiHandler, listenPulumi } from '../../src/execution/pulumi-backend/index.ts'
import type { MemoryBackend } from '../../src/execution/pulumi-backend/memory-backend.testing.ts'
import { type CliWorkspace, createCliWorkspace, openPulumiCli, type PulumiCli } from './pulumi-cli.ts'
import { type EndpointSettings, encodeRecording, type InitialStack, type Recording, type RecordingHeader } from './recording.ts'
import { RecordingProxy } from './recording-proxy.ts'
import { type Scenario, type ScenarioControl, scenarios } from './scenarios.ts'
import { createScriptedBackend } from './scripted-backend.ts'

/** Of no use elsewhere: it is part of the recordings. */
const accessToken = 'pul-recording-0123456789abcdef'

const { PULUMI_BIN, OARLOCK_PULUMI_NODE_MODULES } = process.env

export async function recordScenario(cli: PulumiCli, scenario: Scenario, stacks: Record<string, InitialStack>): Promise<Recording> {
  const isNode = scenario.program === 'nodejs'
  if (isNode && OARLOCK_PULUMI_NODE_MODULES === undefined) throw new Error('OARLOCK_PULUMI_NODE_MODULES is not set')
  const workspace = createCliWorkspace(cli, scenario.program, isNode ? OARLOCK_PULUMI_NODE_MODULES : undefined)
  try {
    const settings = scenario.settings ?? {}
    const initial = scenario.prepare ? { ...stacks, ...(await prepare(workspace, scenario, stacks, settings)) } : stacks
    const backend = createScriptedBackend(settings, initial)
    const { handler, endpoint } = await openEndpoint(backend, settings)
    const proxy = new RecordingProxy(endpoint.url)
    const url = await proxy.listen()
    await scenario.run(
      createControl(
        workspace,
        scenario,
        url,
        async () => {
          await handler.abandonUpdates()
          proxy.note('abandon')
        },
        proxy,
      ),
    )
    const lines = await proxy.close()
    await endpoint.close()
    const header: RecordingHeader = {
      ...{ kind: 'header' as const, format: 1 as const, scenario: scenario.name, cliVersion: cli.version, cliSha256: cli.sha256 },
      ...{ platform: `${platform()} ${arch()}`, recordedAt: new Date().toISOString(), accessToken, settings, stacks: initial },
    }
    return { header, lines }
  } finally {
    rmSync(dirname(workspace.directory), { recursive: true, force: true })
  }
}

/** @returns the stacks that the preparation leaves. */
async function prepare(
  workspace: CliWorkspace,
  scenario: Scenario,
  stacks: Record<string, InitialStack>,
  { testedCliVersions }: EndpointSettings,
): Promise<Record<string, InitialStack>> {
  const settings = testedCliVersions ? { testedCliVersions } : {}
  const backend = createScriptedBackend(settings, stacks)
  const { endpoint } = await openEndpoint(backend, settings)
  await scenario.prepare?.(createControl(workspace, scenario, endpoint.url, async () => {}))
  await endpoint.close()
  return Object.fromEntries(
    [...backend.stacks].map(([key, { tags, versions }]) => {
      const newest = versions.at(-1)
      return [key, { tags, ...(newest && { deployment: Buffer.from(newest).toString() }) }]
    }),
  )
}

async function openEndpoint(backend: MemoryBackend, { testedCliVersions, deltaCutoffBytes }: EndpointSettings) {
  const handler = createPulumiHandler({
    ...{ backend, accessToken, onError: error => console.error('  backend:', error) },
    ...(testedCliVersions && { testedCliVersions }),
    ...(deltaCutoffBytes !== undefined && { deltaCutoffBytes }),
  })
  return { handler, endpoint: await listenPulumi(handler) }
}

function createControl(
  workspace: CliWorkspace,
  scenario: Scenario,
  url: string,
  abandon: () => Promise<void>,
  proxy?: RecordingProxy,
): ScenarioControl {
  const project = scenario.program === 'reference' ? 'app' : 'web'
  return {
    ...{ directory: workspace.directory, abandon },
    pulumi: async (args, { exitCode, kill } = {}) => {
      const takesStack = !['whoami'].includes(args[0] ?? '') && !(args[0] === 'stack' && ['init', 'ls'].includes(args[1] ?? ''))
      const stack = `apps/${project}/dev`
      const all = takesStack ? [...args, '--stack', stack] : args[1] === 'init' ? [...args, stack] : args
      proxy?.note('start', all.join(' '))
      const { result, kill: killCli } = workspace.run(all, { url, accessToken })
      if (kill)
        proxy?.breakAt({
          ...{ path: kill.path ?? /\/journalentries$/, count: kill.count, when: kill.when },
          reach: async () => {
            killCli()
            proxy.note('kill')
            await result
          },
        })
      const { exitCode: actual, stdout, stderr } = await result
      proxy?.breakAt(undefined)
      proxy?.note('exit', String(actual))
      if (actual !== (exitCode ?? (kill ? -1 : 0))) throw new Error(`pulumi ${all.join(' ')}: exit code ${actual}\n${stdout}\n${stderr}`)
      return `${stdout}\n${stderr}`
    },
  }
}

if (import.meta.main) {
  if (PULUMI_BIN === undefined) throw new Error('PULUMI_BIN is not set')
  const cli = await openPulumiCli(PULUMI_BIN)
  const directory = join(import.meta.dirname, 'recordings')
  mkdirSync(directory, { recursive: true })
  const chosen = process.argv.slice(2)
  /** The stack that `stack-reference` reads. */
  let referenced: Record<string, InitialStack> = {}
  for (const scenario of scenarios) {
    const isReference = scenario.program === 'reference'
    if (chosen.length > 0 && !chosen.includes(scenario.name)) continue
    if (isReference) {
      const first = scenarios.find(each => each.name === 'second-up')
      if (first) referenced = { ...(await recordScenario(cli, first, {})).header.stacks }
    }
    const recording = await recordScenario(cli, scenario, isReference ? referenced : {})
    const bytes = encodeRecording(recording)
    writeFileSync(join(directory, `${scenario.name}.jsonl.zst`), bytes)
    console.log(`${scenario.name}: ${recording.lines.length} lines, ${bytes.byteLength} bytes`)
  }
}
