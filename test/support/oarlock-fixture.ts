import { equal } from 'node:assert/strict'
import { after, before } from 'node:test'
import type { Client } from '../../src/kubernetes/client/index.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './oarlock-process.ts'
import { type ProgramResult, runOarlock } from './run-program.ts'
import { StackFixture } from './stacks.ts'

/** One `oarlock up`, and the command line that a user runs against it. `process`, `client` and `kubeconfig` exist from the first test on. */
export type OarlockFixture = {
  readonly dataDir: string
  readonly process: OarlockProcess
  readonly client: Client
  readonly kubeconfig: string
  readonly stacks: StackFixture
  /** Runs a command in namespace `default`, unless the arguments name another one. */
  oarlock(...args: string[]): Promise<ProgramResult>
  /** The same; fails unless it exits with 0. */
  succeeds(...args: string[]): Promise<ProgramResult>
}

export type OarlockFixtureOptions = {
  readonly args?: readonly string[]
  /** Of `oarlock up`. A function is called before its start. */
  readonly env?: NodeJS.ProcessEnv | (() => Promise<NodeJS.ProcessEnv> | NodeJS.ProcessEnv)
}

/** Starts one `oarlock up` for the tests of the surrounding `describe`; after the last one it must exit with 0. */
export function useOarlock({ args = [], env = {} }: OarlockFixtureOptions = {}): OarlockFixture {
  const dataDir = makeDataDir()
  let started: OarlockProcess | undefined
  const up = (): OarlockProcess => {
    if (!started) throw new Error('oarlock up starts before the first test')
    return started
  }
  before(async () => {
    started = await startOarlock(dataDir, [...args], typeof env === 'function' ? await env() : env)
  })
  after(async () => {
    const exitCode = await started?.stop()
    removeDirectory(dataDir)
    equal(exitCode, 0)
  })
  const oarlock = async (...command: string[]): Promise<ProgramResult> => {
    const hasNamespace = command.some(each => ['-n', '--namespace', '-A', '--all-namespaces'].includes(each))
    return await runOarlock([...command, ...(hasNamespace ? [] : ['-n', 'default'])], { env: { KUBECONFIG: up().kubeconfig } })
  }
  return {
    dataDir,
    get process() {
      return up()
    },
    get client() {
      return up().client
    },
    get kubeconfig() {
      return up().kubeconfig
    },
    stacks: new StackFixture(() => up().client),
    oarlock,
    succeeds: async (...command) => {
      const result = await oarlock(...command)
      equal(result.code, 0, result.text)
      return result
    },
  }
}
