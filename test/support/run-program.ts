import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const launcher = join(import.meta.dirname, '..', '..', 'bin', 'oarlock.js')

export type Ended = { code: number | null; stdout: string; stderr: string /** Both, as a terminal shows them. */; text: string }

/** Runs a program to its end, without a terminal. `env` is added to that of this process; undefined takes a name away. */
export async function runProgram(
  program: string,
  args: readonly string[],
  { input = '', env = {}, cwd }: { input?: string; env?: NodeJS.ProcessEnv; cwd?: string } = {},
): Promise<Ended> {
  const child = spawn(program, args, { env: { ...process.env, NO_COLOR: '1', ...env }, cwd })
  const ended = { stdout: '', stderr: '', text: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', text => {
      ended[name] += text
      ended.text += text
    })
  }
  // A program that refuses to start does not read: that is told by its exit code.
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, ...ended }
}

export const runOarlock = (args: readonly string[], options: Parameters<typeof runProgram>[2] = {}): Promise<Ended> =>
  runProgram(process.execPath, [launcher, ...args], options)

/** What a test's `skip` takes: false when the program is on PATH, else the reason. */
export const skipWithout = (program: string): string | false =>
  (process.env.PATH ?? '').split(delimiter).some(directory => existsSync(join(directory, program))) ? false : `${program} is not on PATH`
