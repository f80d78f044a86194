/** The scenarios with the real CLI: `PULUMI_BIN=/path/to/pulumi OARLOCK_PULUMI_NODE_MODULES=… node --test test/pulumi/real-cli.slow.test.ts` (README.md). */
import { deepEqual } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { comparableArguments, decodeCommands, type RecordedCommand } from './command-recording.ts'
import { openPulumiCli } from './pulumi-cli.ts'
import { recordScenario } from './record.ts'
import { recordRuns } from './record-runs.ts'
import type { InitialStack } from './recording.ts'
import { replayOnEndpoint } from './replay-endpoint.ts'
import { runScenarios } from './run-scenarios.ts'
import { scenarios } from './scenarios.ts'

const { PULUMI_BIN, OARLOCK_PULUMI_NODE_MODULES } = process.env

for (const scenario of scenarios) {
  const missing =
    PULUMI_BIN === undefined
      ? 'PULUMI_BIN is not set'
      : scenario.program === 'nodejs' && OARLOCK_PULUMI_NODE_MODULES === undefined && 'OARLOCK_PULUMI_NODE_MODULES is not set'
  test(`${scenario.name}: the real CLI works with the endpoint, and a replay has the same answers`, {
    skip: missing,
    timeout: 600_000,
  }, async () => {
    const cli = await openPulumiCli(PULUMI_BIN ?? '')
    let stacks: Record<string, InitialStack> = {}
    if (scenario.program === 'reference')
      stacks = { ...(await recordScenario(cli, scenarios.find(each => each.name === 'second-up')!, {})).header.stacks }
    const { differences } = await replayOnEndpoint(await recordScenario(cli, scenario, stacks))
    deepEqual(differences, [])
  })
}

for (const [scenario, runs] of Object.entries(runScenarios))
  test(`${scenario}: Runs execute the recorded commands of the real CLI, and these end as recorded`, {
    skip: PULUMI_BIN === undefined && 'PULUMI_BIN is not set',
    timeout: 600_000,
  }, async () => {
    const recorded = decodeCommands(readFileSync(join(import.meta.dirname, 'recordings', 'runs', `${scenario}.jsonl.zst`)))
    const { commands } = await recordRuns(await openPulumiCli(PULUMI_BIN ?? ''), scenario, runs)
    const summarize = ({ args, exitCode, plan, savedPlan }: RecordedCommand) => ({
      ...{ args: comparableArguments(args), exitCode, hasPlan: plan !== undefined, savesPlan: savedPlan !== undefined },
    })
    deepEqual(commands.map(summarize), recorded.commands.map(summarize))
  })
