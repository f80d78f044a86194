/**
 * Records the commands that Runs execute, with engine pulumi, the state store and the real CLI: `PULUMI_BIN=/path/to/pulumi node test/pulumi/record-runs.ts
 * [SCENARIO…]`; README.md has what it needs.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { arch, platform, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createEngineHarness } from '../../src/execution/engine/engine-harness.testing.ts'
import { createPulumiEngine } from '../../src/execution/engine/pulumi/pulumi.ts'
import { type CommandRecording, encodeCommands, type RecordedCommand } from './command-recording.ts'
import { writeLauncher } from './install-recorded-cli.ts'
import { openPulumiCli, type PulumiCli } from './pulumi-cli.ts'
import type { RecordingCliOptions } from './recording-cli.ts'
import { openRunEndpoint, type RunEndpoint, withStateServerOfStacks } from './run-endpoint.ts'
import { type RecordedRun, runScenarios } from './run-scenarios.ts'

export async function recordRuns(cli: PulumiCli, scenario: string, runs: readonly RecordedRun[]): Promise<CommandRecording> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-record-'))
  const output = join(directory, 'commands.jsonl')
  const releases: (() => unknown)[] = []
  const t = { after: (release: () => unknown) => void releases.unshift(release) } as unknown as TestContext
  try {
    await withStateServerOfStacks(async server => {
      const files = { 'Pulumi.yaml': readFileSync(join(import.meta.dirname, 'programs', 'run', 'Pulumi.yaml'), 'utf8') }
      const harness = await createEngineHarness(t, files)
      const id = { organization: 'apps', project: 'web', stack: 'dev' }
      let run: RunEndpoint | undefined
      for (const recorded of runs) {
        run = run
          ? await run.takeOver()
          : await openRunEndpoint({ server, stack: 'dev', epoch: 1, id, readOther: async () => undefined, settings: {} })
        const active = run
        const [reached, proceed] = [join(directory, 'reached'), join(directory, 'proceed')]
        const controls = (recorded.controls ?? []).map(each => ({ ...each, reached, proceed }))
        const options: RecordingCliOptions = { binary: cli.binary, output, controls }
        const launcher = writeLauncher(directory, join(import.meta.dirname, 'recording-cli.ts'), options)
        const engine = createPulumiEngine({ ...process.env, PULUMI_BIN: launcher })
        const isFenced = recorded.isFenced === true
        const takeOver =
          isFenced &&
          untilExists(reached).then(() => {
            server.abandoned.add(active.runName)
            return active.takeOver()
          })
        if (takeOver) void takeOver.then(() => writeFileSync(proceed, ''))
        const { intent, variables, pendingCreates } = recorded
        const context = await harness.nextRun({
          spec: { engine: 'pulumi', pulumi: { stack: 'dev', refresh: false, ...(pendingCreates && { pendingCreates }) } },
          stack: { namespace: 'apps', name: 'dev', uid: 'dev' },
          pulumiState: run.state,
          variables: { ...variables },
          sensitiveNames: ['password'],
          env: { HOME: directory, LANG: 'C.UTF-8', PATH: `${dirname(cli.binary)}:${dirname(process.execPath)}:/usr/bin:/bin` },
        })
        await engine.prepare(context)
        const plan = await engine.plan(context, { destroy: intent === 'destroy', refreshOnly: intent === 'refresh' })
        const { message } = await engine.apply(context, plan).then(
          result => ({ message: JSON.stringify(result.outputs) }),
          (error: Error) => ({ message: error.message }),
        )
        console.log(`${scenario}, ${intent}: ${plan.add} ${plan.change} ${plan.destroy}, ${message}`)
        if (takeOver) {
          await (await takeOver).end()
          await run.killWorker()
        } else await run.end()
      }
    })
    const commands = readFileSync(output, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map(line => JSON.parse(line) as RecordedCommand)
    return {
      header: {
        ...{ kind: 'header', format: 1, scenario, cliVersion: cli.version, cliSha256: cli.sha256 },
        ...{ platform: `${platform()} ${arch()}`, recordedAt: new Date().toISOString() },
      },
      commands,
    }
  } finally {
    for (const release of releases) await release()
    rmSync(directory, { recursive: true, force: true })
  }
}

async function untilExists(path: string): Promise<void> {
  while (!existsSync(path)) await sleep(20)
}

if (import.meta.main) {
  const { PULUMI_BIN } = process.env
  if (PULUMI_BIN === undefined) throw new Error('PULUMI_BIN is not set')
  const cli = await openPulumiCli(PULUMI_BIN)
  const directory = join(import.meta.dirname, 'recordings', 'runs')
  mkdirSync(directory, { recursive: true })
  const chosen = process.argv.slice(2)
  for (const [scenario, runs] of Object.entries(runScenarios)) {
    if (chosen.length > 0 && !chosen.includes(scenario)) continue
    const bytes = encodeCommands(await recordRuns(cli, scenario, runs))
    writeFileSync(join(directory, `${scenario}.jsonl.zst`), bytes)
    console.log(`${scenario}: ${bytes.byteLength} bytes`)
  }
}
