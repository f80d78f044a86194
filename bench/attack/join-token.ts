import { runOarlock } from '../../test/support/run-program.ts'
import type { Target } from './target.ts'

/** A token with which workers join the pool `edge`. */
export async function joinToken(target: Target, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runOarlock(['token', 'create', '--pool', 'edge', ...args, '--kubeconfig', target.kubeconfig])
  if (code !== 0) throw new Error(stderr)
  return stdout.trim()
}
