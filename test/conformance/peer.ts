import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePorts } from '../support/free-ports.ts'
import { createPool, groupsOf, sendRequest, type Target } from './target.ts'

const directory = process.env.OARLOCK_PEER_DIR ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'oarlock', 'peer')
const etcd = join(directory, 'etcd')
const apiserver = join(directory, 'kube-apiserver')
const startTimeoutMs = 60_000

/** The reason why the peer cannot run; undefined if it can. */
export function peerMissing(): string | undefined {
  const missing = [etcd, apiserver].filter(path => !existsSync(path))
  return missing.length > 0 ? `${missing.join(' and ')} not found: run scripts/build-peers.sh (needs Go)` : undefined
}

export type Peer = Target & {
  /** The process IDs of etcd and kube-apiserver. */
  pids: number[]
}

export type PeerOptions = {
  /** True for measurements: etcd syncs every write to disk. Default: false. */
  fsync?: boolean
  /** The feature gate of `shardSelector`; default: true. */
  shardedListAndWatch?: boolean
  /** PEM of the authority of front proxies, of which `gateway` may name users. Default: none may. */
  frontProxyCa?: string
}

/** Starts etcd and kube-apiserver on free ports, in a temporary directory. `close` ends both and removes the directory. */
export async function startPeer({ fsync = false, shardedListAndWatch = true, frontProxyCa }: PeerOptions = {}): Promise<Peer> {
  const missing = peerMissing()
  if (missing) throw new Error(missing)
  const dir = mkdtempSync(join(tmpdir(), 'oarlock-peer-'))
  const processes: ChildProcess[] = []
  let output = ''
  const start = (command: string, args: string[]) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], cwd: dir })
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output = (output + text).slice(-20_000)
      })
    processes.push(child)
    return child
  }
  const close = async () => {
    for (const child of processes.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      // kube-apiserver waits for open watches for up to a minute; its data is not needed any more.
      const timer = setTimeout(() => child.kill('SIGKILL'), 3_000)
      await ended
      clearTimeout(timer)
    }
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 })
  }
  try {
    const [clientPort, peerPort, securePort] = await freePorts(3)
    const etcdUrl = `http://127.0.0.1:${clientPort}`
    const peerUrl = `http://127.0.0.1:${peerPort}`
    start(etcd, [
      `--data-dir=${join(dir, 'etcd')}`,
      `--listen-client-urls=${etcdUrl}`,
      `--advertise-client-urls=${etcdUrl}`,
      `--listen-peer-urls=${peerUrl}`,
      `--initial-advertise-peer-urls=${peerUrl}`,
      `--initial-cluster=default=${peerUrl}`,
      ...(fsync ? [] : ['--unsafe-no-fsync']),
      '--log-level=warn',
    ])
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    writeFileSync(join(dir, 'sa.key'), privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 })
    writeFileSync(join(dir, 'sa.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
    const people = Object.entries(groupsOf)
    const tokens = { ...Object.fromEntries(people.map(([name]) => [name, `peer-${name}-token`])), wrong: 'no-such-token' }
    const lines = people.map(([name, group], i) => `peer-${name}-token,${name},${i + 1},${group}\n`)
    writeFileSync(join(dir, 'tokens.csv'), lines.join(''), { mode: 0o600 })
    const server = start(apiserver, [
      `--etcd-servers=${etcdUrl}`,
      '--bind-address=127.0.0.1',
      // Published in default/kubernetes, and never called; kube-apiserver publishes no loopback address.
      '--advertise-address=192.0.2.1',
      `--secure-port=${securePort}`,
      `--cert-dir=${join(dir, 'certs')}`,
      `--token-auth-file=${join(dir, 'tokens.csv')}`,
      '--authorization-mode=RBAC',
      '--service-cluster-ip-range=10.96.0.0/16',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${join(dir, 'sa.pub')}`,
      `--service-account-signing-key-file=${join(dir, 'sa.key')}`,
      // No kube-controller-manager runs that would create the `default` service account that each Pod needs.
      '--disable-admission-plugins=ServiceAccount',
      '--max-requests-inflight=0',
      '--max-mutating-requests-inflight=0',
      '--enable-priority-and-fairness=false',
      // Alpha in 1.36; it only enables `shardSelector`.
      `--feature-gates=ShardedListAndWatch=${shardedListAndWatch}`,
      ...(frontProxyCa === undefined ? [] : frontProxyFlags(join(dir, 'front-proxy-ca.crt'), frontProxyCa)),
    ])
    const url = `https://127.0.0.1:${securePort}`
    const pool = createPool(url)
    const target: Peer = {
      pids: processes.map(child => child.pid as number),
      url,
      tokens,
      pool,
      async close() {
        await pool.destroy()
        await close()
      },
    }
    const deadlineMs = Date.now() + startTimeoutMs
    for (;;) {
      if (server.exitCode !== null) throw new Error(`kube-apiserver exited with code ${server.exitCode}:\n${output}`)
      const ready = await sendRequest(target, {
        method: 'GET',
        path: '/readyz',
        headers: { authorization: `Bearer peer-admin-token` },
      }).catch(() => undefined)
      if (ready?.code === 200) return { ...target, caCertificate: readFileSync(join(dir, 'certs', 'apiserver.crt'), 'utf8') }
      if (Date.now() > deadlineMs) throw new Error(`kube-apiserver was not ready within ${startTimeoutMs} ms: ${ready?.text}\n${output}`)
      await sleep(100)
    }
  } catch (error) {
    await close()
    throw error
  }
}

function frontProxyFlags(path: string, certificate: string): string[] {
  writeFileSync(path, certificate)
  return [
    `--requestheader-client-ca-file=${path}`,
    '--requestheader-allowed-names=gateway',
    '--requestheader-username-headers=X-Remote-User',
    '--requestheader-uid-headers=X-Remote-Uid',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
  ]
}
