/** The leader of two controllers is killed or stopped with Runs under way, on the embedded server or on a real kube-apiserver. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Client, createClient } from '../../src/kubernetes/client/index.ts'
import { startPeer } from '../../test/conformance/peer.ts'
import { Failover, type FailoverOutcome, failoverLeaseMs, takeoverBudgetMs } from '../../test/support/failover.ts'
import { peerKubeconfig } from '../../test/support/peer-kubeconfig.ts'
import { RoleProcesses } from '../../test/support/role-process.ts'
import type { Bench } from '../run.ts'
import { argument, inDirectory, spread } from './chain.ts'

/** `--times N` for each signal (default 20), `--runs N` under way (default 20), `--peer` for a real kube-apiserver. */
export async function bench(args: string[]): Promise<Bench> {
  const times = Number(argument(args, 'times', '20'))
  const runs = Number(argument(args, 'runs', '20'))
  const onPeer = args.includes('--peer')
  const rows = await inDirectory(async base => {
    const { client, kubeconfig, stop } = onPeer ? await startKubernetes() : await startEmbedded(base)
    const failover = await Failover.start(client, base, kubeconfig)
    try {
      const result: Record<string, string | number>[] = []
      for (const signal of ['SIGKILL', 'SIGSTOP', 'SIGTERM'] as const) {
        const outcomes: FailoverOutcome[] = []
        for (let i = 0; i < times; i++) {
          outcomes.push(await failover.trial(signal, runs))
          process.stderr.write(`\r${signal} ${i + 1}/${times} `)
        }
        result.push(rowOf(signal, outcomes))
      }
      return result
    } finally {
      await failover.close()
      await client.close()
      await stop()
    }
  })
  return {
    title: `Failover of the controllers on ${onPeer ? 'kube-apiserver' : 'the embedded server'}`,
    about: `Two oarlock controller processes, Lease of ${failoverLeaseMs / 1_000} s; the leader gets the signal ${times} times with ${runs} Runs under way. Takeover: another process holds the Lease. Bar: Lease + 2 s (SIGTERM: 2 s), and zero in the last three columns.`,
    rows,
    failed: rows.some(row => Number(row.max) > budgetSeconds(String(row.signal)) || zeroColumns.some(column => Number(row[column]) > 0)),
  }
}

const zeroColumns = ['Runs twice', 'late writes that changed an object', 'old leader did not exit'] as const

/** A leader that is stopped gracefully gives up its Lease. */
const budgetSeconds = (signal: string): number => (signal === 'SIGTERM' ? 2 : takeoverBudgetMs / 1_000)

function rowOf(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGTERM', outcomes: readonly FailoverOutcome[]): Record<string, string | number> {
  const sum = (key: 'duplicates' | 'lateWrites') => outcomes.reduce((total, each) => total + each[key], 0)
  const takeover = spread(outcomes.map(each => each.takeoverMs / 1_000))
  const ready = spread(outcomes.map(each => each.readyMs / 1_000))
  const isExpected = ({ exitCode }: FailoverOutcome) => exitCode === { SIGKILL: undefined, SIGSTOP: 1, SIGTERM: 0 }[signal]
  return {
    signal,
    'takeover p50, s': takeover.p50,
    max: takeover.max,
    'all Ready p50, s': ready.p50,
    'max, s': ready.max,
    [zeroColumns[0]]: sum('duplicates'),
    [zeroColumns[1]]: sum('lateWrites'),
    [zeroColumns[2]]: outcomes.filter(each => !isExpected(each)).length,
  }
}

type Server = { client: Client; kubeconfig: string; stop(): Promise<void> }

async function startEmbedded(base: string): Promise<Server> {
  const roles = new RoleProcesses(base)
  const api = await roles.start('api', ['serve', '--data', '.', '--listen', '127.0.0.1:0'], /kubeconfig/)
  const path = join(api.directory, 'kubeconfig')
  return { client: await createClient({ kubeconfig: path }), kubeconfig: readFileSync(path, 'utf8'), stop: () => roles.stopAll() }
}

async function startKubernetes(): Promise<Server> {
  const peer = await startPeer({ fsync: true })
  const client = await createClient({ cluster: { server: peer.url, token: peer.tokens.admin, insecureSkipTlsVerify: true } })
  return { client, kubeconfig: peerKubeconfig(peer), stop: () => peer.close() }
}
