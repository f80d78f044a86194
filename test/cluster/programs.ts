import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { killWithUs } from '../support/kill-with-us.ts'

const directory = process.env.OARLOCK_PEER_DIR ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'oarlock', 'peer')

/** Built by scripts/build-peers.sh. */
export const built = (name: string): string => join(directory, name)
const controlPlanePrograms = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler']
const nodePrograms = ['kubelet', 'kube-proxy', 'coredns', 'pause']
/** From packages of the distribution: containerd, runc, containernetworking-plugins, nftables, iproute2, util-linux, openssl. */
const installedPrograms = ['containerd', 'ctr', 'runc', 'nft', 'ip', 'nsenter', 'unshare', 'openssl']
export const cniDirectory = ['/usr/lib/cni', '/opt/cni/bin'].find(path => existsSync(join(path, 'bridge')))

/** Also in test/allowed-skips.mjs. */
const namespacesDenied = 'no network and mount namespaces may be created'

/** The reason why a cluster cannot be started on this machine, with `others` from the same directory; undefined if it can. Without nodes it needs fewer programs. */
export function clusterMissing({
  hasNodes = true,
  others = [],
}: {
  hasNodes?: boolean
  others?: readonly string[]
} = {}): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'a cluster needs root on Linux'
  if (spawnSync('unshare', ['--net', '--mount', 'true']).status !== 0) return namespacesDenied
  const missingBuilt = [...controlPlanePrograms, ...(hasNodes ? nodePrograms : []), ...others].filter(name => !existsSync(built(name)))
  if (missingBuilt.length > 0) return `${missingBuilt.join(', ')} not found in ${directory}: run scripts/build-peers.sh (needs Go)`
  const path = `${process.env.PATH}:/usr/sbin:/sbin`.split(':')
  const missing = installedPrograms.filter(name => !path.some(each => existsSync(join(each, name))))
  if (!cniDirectory) missing.push('CNI plugins')
  return missing.length > 0
    ? `${missing.join(', ')} not found: install containerd runc containernetworking-plugins nftables iproute2 openssl`
    : undefined
}

/** A program of the cluster, whose output is in a file. */
export class Program {
  readonly #name: string
  readonly #logFile: string
  readonly #start: () => ChildProcess
  #child: ChildProcess

  /** @param command program and arguments; options of `nsenter` come before. */
  constructor(name: string, logFile: string, command: readonly string[], env: Record<string, string> = {}) {
    this.#name = name
    this.#logFile = logFile
    const [program = '', ...args] = command
    this.#start = () => {
      const log = openSync(logFile, 'a')
      const PATH = `${process.env.PATH}:/usr/sbin:/sbin`
      const child = killWithUs(spawn(program, args, { stdio: ['ignore', log, log], env: { ...process.env, PATH, ...env } }))
      closeSync(log)
      child.on('error', () => {})
      return child
    }
    this.#child = this.#start()
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  restart(): void {
    if (this.isRunning) throw new Error(`${this.#name} is running`)
    this.#child = this.#start()
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Waits for its end; after `graceMs` it is killed. */
  async stop(graceMs = 5_000): Promise<void> {
    if (!this.isRunning) return
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGTERM')
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), graceMs)
    await ended
    clearTimeout(timer)
  }

  async kill(): Promise<void> {
    if (!this.isRunning) return
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
  }

  /** The end of its output, for errors. */
  log(lines = 30): string {
    return readFileSync(this.#logFile, 'utf8').trimEnd().split('\n').slice(-lines).join('\n')
  }

  /** Waits until `probe` succeeds. @throws {Error} with the end of its log, if it exits first or takes longer than `timeoutMs`. */
  async ready(probe: () => Promise<boolean>, timeoutMs = 60_000): Promise<void> {
    const deadlineMs = Date.now() + timeoutMs
    for (;;) {
      if (!this.isRunning) throw new Error(`${this.#name} exited:\n${this.log()}`)
      if (await probe().catch(() => false)) return
      if (Date.now() > deadlineMs) throw new Error(`${this.#name} was not ready within ${timeoutMs / 1_000} s:\n${this.log()}`)
      await sleep(100)
    }
  }
}
