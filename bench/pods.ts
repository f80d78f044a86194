/**
 * `--rounds N` (default 20): from the change of a Stack to Ready, with the worker in a Pod of its own, in a Warm Pod and in a process.
 * `--idle`: requests of the controllers and stores to kube-apiserver while `--stacks N` (default 1000) are Ready, which are made
 * Ready by `--rate N` Runs a second (default 30); `--observe S` seconds (default 120).
 */
import type { Bench } from './run.ts'

export async function bench(args: string[]): Promise<Bench> {
  if (args.includes('--idle')) return await (await import('./cluster/idle-load.ts')).idleLoad(args)
  return await (await import('./cluster/pod-latency.ts')).podLatency(args)
}
