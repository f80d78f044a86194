/**
 * Runs the real CLI behind a proxy and appends the command with its conversation to a file: `recording-cli.ts OPTIONS ARGUMENT…`. `record-runs.ts` has a Run
 * execute it in place of the CLI.
 */
import { spawn } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type CommandControl, optionOf, type RecordedCommand } from './command-recording.ts'
import { RecordingProxy } from './recording-proxy.ts'

export type RecordingCliOptions = { readonly binary: string; readonly output: string; readonly controls: readonly CommandControl[] }

const { PULUMI_BACKEND_URL, PULUMI_ACCESS_TOKEN = '' } = process.env
const [optionsText = '', ...args] = process.argv.slice(2)
const { binary, output, controls }: RecordingCliOptions = JSON.parse(optionsText)

if (PULUMI_BACKEND_URL === undefined) {
  const child = spawn(binary, args, { stdio: 'inherit' })
  child.once('close', code => process.exit(code ?? 1))
} else {
  const read = (name: string) => {
    const path = optionOf(args, name)
    return path !== undefined && existsSync(path) ? readFileSync(path, 'utf8') : undefined
  }
  const [config, plan] = [read('config-file') ?? '', read('plan')]
  const proxy = new RecordingProxy(PULUMI_BACKEND_URL)
  const url = await proxy.listen()
  const child = spawn(binary, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, PULUMI_BACKEND_URL: url } })
  const ended = new Promise<number | null>(resolve => child.once('close', resolve))
  const control = controls.find(each => each.command === args[0])
  if (control)
    proxy.breakAt({
      ...{ path: /\/journalentries$/, body: new RegExp(control.body), count: 1, when: control.action === 'kill' ? 'after' : 'wait' },
      reach: async () => {
        if (control.action === 'kill') {
          child.kill('SIGKILL')
          await ended
        } else {
          writeFileSync(control.reached ?? '', '')
          while (!existsSync(control.proceed ?? '')) await sleep(20)
        }
      },
    })
  const texts = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (chunk: Buffer) => {
      texts[name] += chunk
      process[name].write(chunk)
    })
  const exitCode = await ended
  const savedPlan = read('save-plan')
  const command: RecordedCommand = {
    ...{ kind: 'command', args, accessToken: PULUMI_ACCESS_TOKEN, config, exitCode, ...texts, lines: await proxy.close() },
    ...(plan !== undefined && { plan }),
    ...(savedPlan !== undefined && { savedPlan }),
  }
  appendFileSync(output, `${JSON.stringify(command)}\n`)
  if (exitCode === null) process.kill(process.pid, 'SIGKILL')
  process.exit(exitCode ?? 1)
}
