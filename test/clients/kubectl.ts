import { equal } from 'node:assert/strict'
import { join } from 'node:path'
import { type ProgramResult, runProgram } from '../support/run-program.ts'

export type Kubectl = {
  /** Runs kubectl with arguments that are separated by spaces. */
  run(args: string, input?: string): Promise<ProgramResult>
  /** As {@link run}; returns stdout. Fails the test if the exit code is not 0. */
  output(args: string, input?: string): Promise<string>
  /** The environment in which kubectl runs. */
  readonly env: NodeJS.ProcessEnv
}

/** kubectl for one server, with a discovery cache in `directory`. */
export function kubectlFor({ kubeconfig, directory }: { kubeconfig: string; directory: string }): Kubectl {
  const env = { KUBECONFIG: kubeconfig, KUBECACHEDIR: join(directory, 'kubectl-cache'), KUBECTL_EXTERNAL_DIFF: 'diff -u' }
  const run = (args: string, input = '') => runProgram('kubectl', args.split(' '), { input, env })
  return {
    env,
    run,
    async output(args, input) {
      const { code, stdout, stderr } = await run(args, input)
      equal(code, 0, `kubectl ${args}: ${stderr}${stdout}`)
      return stdout
    },
  }
}
