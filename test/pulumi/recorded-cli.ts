/**
 * A stand-in for the CLI, for tests of everything around it: `recorded-cli.ts OPTIONS ARGUMENT…`. It finds the recorded command with these arguments, this
 * configuration, this plan and this state of the stack, sends its requests to the endpoint of the Run, and prints and writes what the CLI did. An answer that is
 * not the recorded one, or a command that was not recorded, is an error. `install-recorded-cli.ts` makes a program of it.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { parse } from 'yaml'
import { type CommandControl, comparableArguments, decodeCommands, optionOf, type RecordedCommand } from './command-recording.ts'
import type { RecordedExchange } from './recording.ts'
import { learn, type ParsedAnswer, replayRecording, substituteStrings } from './replay.ts'
import { bodyOf } from './request-text.ts'

export type RecordedCliOptions = { readonly recording: string; readonly controls: readonly CommandControl[] }

/** Not used by the CLI. */
const noReplayExitCode = 70

const { PULUMI_BACKEND_URL: url = '', PULUMI_ACCESS_TOKEN: accessToken = '' } = process.env
const [optionsText = '', ...args] = process.argv.slice(2)
const options: RecordedCliOptions = JSON.parse(optionsText)
const { header, commands } = decodeCommands(readFileSync(options.recording))

if (args[0] === 'version') process.stdout.write(`v${header.cliVersion}\n`)
else await execute()

async function execute(): Promise<void> {
  const config = readOption('config-file') ?? ''
  const plan = readOption('plan')
  const state = await readState()
  const problems: string[] = []
  for (const command of commands) {
    const substitutes = new Map<string, string>()
    const problem = differs(command, { config, plan, state }, substitutes)
    if (problem === undefined) return await replay(command, substitutes)
    problems.push(`${command.args[0]}: ${problem}`)
  }
  process.stderr.write(`error: no recorded command begins like "${args.join(' ')}": ${problems.join('; ')}\n`)
  process.exit(noReplayExitCode)
}

type Situation = { readonly config: string; readonly plan: string | undefined; readonly state: unknown }

/** Why the recorded command did not begin like this one; undefined if it did. */
function differs(command: RecordedCommand, { config, plan, state }: Situation, substitutes: Map<string, string>): string | undefined {
  if (!isDeepStrictEqual(comparableArguments(command.args), comparableArguments(args))) return 'other arguments'
  const [recordedConfig, actualConfig]: unknown[] = [parse(command.config), parse(config)]
  learn(recordedConfig, actualConfig, substitutes)
  const expectedConfig = JSON.parse(substituteStrings(JSON.stringify(recordedConfig), substitutes))
  if (!isDeepStrictEqual(expectedConfig, actualConfig)) return 'another configuration'
  const recordedState = recordedExport(command)
  learn(recordedState, state, substitutes)
  if (!isDeepStrictEqual(summary(recordedState), summary(state))) return 'another state'
  if ((command.plan === undefined) !== (plan === undefined)) return 'with or without a plan'
  if (command.plan === undefined || plan === undefined) return undefined
  learn(JSON.parse(command.plan), JSON.parse(plan), substitutes)
  return isDeepStrictEqual(JSON.parse(substituteStrings(command.plan, substitutes)), JSON.parse(plan)) ? undefined : 'another plan'
}

async function replay(command: RecordedCommand, substitutes: Map<string, string>): Promise<void> {
  const control = options.controls.find(each => each.command === args[0])
  let isReached = false
  const { differences } = await replayRecording({
    ...{ recording: { header: command, lines: command.lines }, url, accessToken, substitutes, comparable },
    onRequest: async exchange => {
      if (!control || isReached || !exchange.path.endsWith('/journalentries') || !new RegExp(control.body).test(bodyOf(exchange)))
        return true
      isReached = true
      writeFileSync(control.reached ?? '', `${process.pid}`)
      while (!existsSync(control.proceed ?? '')) await sleep(20)
      return true
    },
  })
  if (differences.length > 0) {
    for (const { request, expected, received } of differences)
      process.stderr.write(`error: ${request} has another answer than the recorded one\n  expected ${expected}\n  received ${received}\n`)
    process.exit(noReplayExitCode)
  }
  process.stdout.write(command.stdout)
  process.stderr.write(command.stderr)
  const planFile = optionOf(args, 'save-plan')
  if (planFile !== undefined && command.savedPlan !== undefined) writeFileSync(planFile, substituteStrings(command.savedPlan, substitutes))
  if (command.exitCode === null) process.kill(process.pid, 'SIGKILL')
  process.exitCode = command.exitCode ?? 1
}

/** Manifests have the time of a write. Why a write is refused depends on names of Runs. */
function comparable({ path }: RecordedExchange, { status, body }: ParsedAnswer): unknown {
  if (status === 403) return status
  return path.endsWith('/export') ? { status, body: withoutManifest(body) } : { status, body }
}

function withoutManifest(body: unknown): unknown {
  const { deployment, ...rest } = body as { deployment: { manifest?: unknown } | null }
  const { manifest: _, ...others } = deployment ?? {}
  return { ...rest, deployment: deployment && others }
}

function recordedExport({ lines }: RecordedCommand): unknown {
  const found = lines.find(line => line.kind === 'exchange' && line.method === 'GET' && line.path.endsWith('/export'))
  return found?.kind === 'exchange' ? JSON.parse(Buffer.from(found.answer ?? '', 'base64').toString()) : undefined
}

/** What the resources of a state are, without times and ciphertexts. */
function summary(state: unknown): unknown {
  type Resource = { urn: string; id?: string; delete?: boolean; inputs?: Record<string, unknown> }
  const { deployment } = (state ?? {}) as {
    deployment?: { resources?: Resource[]; pending_operations?: { type: string; resource: Resource }[] }
  }
  const describe = (each: Resource) => [each.urn, each.id, each.delete, Object.keys(each.inputs ?? {})]
  return [(deployment?.resources ?? []).map(describe), (deployment?.pending_operations ?? []).map(each => [each.type, each.resource.urn])]
}

async function readState(): Promise<unknown> {
  const stack = optionOf(args, 'stack')
  const response = await fetch(`${url}/api/stacks/${stack}/export`, { headers: { authorization: `token ${accessToken}` } })
  if (!response.ok) throw new Error(`export of ${stack}: status ${response.status}`)
  return await response.json()
}

function readOption(name: string): string | undefined {
  const path = optionOf(args, name)
  return path === undefined ? undefined : readFileSync(path, 'utf8')
}
