import { spawn } from 'node:child_process'
import { accessSync, constants, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isExecutable } from '../process/index.ts'
import type { RunDirectory } from '../run-directory.ts'
import { launcherPath } from './launcher.ts'
import type { SandboxAccount } from './sandbox-account.ts'

/** The name server in a private network, at which slirp4netns forwards to that of the machine. */
const nameServer = '10.0.2.3'

/** Why no private network can be created here; undefined if it can. */
export function privateNetworkProblem(slirp4netns: string | undefined): string | undefined {
  if (slirp4netns === undefined) return 'slirp4netns was not found in PATH; install it: apt-get install slirp4netns'
  if (!launcherPath.split(':').some(directory => isExecutable(join(directory, 'ip'))))
    return `ip was not found in ${launcherPath}; install it: apt-get install iproute2`
  try {
    accessSync('/dev/net/tun', constants.R_OK | constants.W_OK)
    return undefined
  } catch (error) {
    const reason =
      (error as NodeJS.ErrnoException).code === 'ENOENT'
        ? 'does not exist; load the kernel module tun'
        : 'is not accessible; its mode is usually 0666'
    return `/dev/net/tun ${reason}`
  }
}

/**
 * The machine's loopback addresses have no route in a private network. `--disable-host-loopback` of slirp4netns covers 10.0.2.2 only: it would
 * forward a packet to 127.0.0.1, which any program can send out of tap0 (SO_BINDTODEVICE). Loopback within the sandbox works: the kernel
 * looks up its local addresses first. For a packet bound to tap0 it looks for a neighbor instead, and slirp4netns does not answer for one.
 */
const noLoopbackRoute = 'ip route add prohibit 127.0.0.0/8'

/**
 * The command that starts bubblewrap in a new network namespace. Another user than root needs a user namespace that owns it, with a root of
 * its own for slirp4netns, whose ids bubblewrap maps back.
 */
export function inNetworkNamespace(account: SandboxAccount | undefined, argv: readonly string[]): string[] {
  const shell = ['/bin/sh', '-c', `${noLoopbackRoute} && exec "$@"`, 'oarlock-network']
  return ['unshare', ...(account ? [] : ['--user', '--map-root-user']), '--net', '--', ...shell, ...argv]
}

/** Writes the Run's resolv.conf: the machine's name server may listen on its loopback interface only. Returns its path. */
export function writeResolverFile(directory: RunDirectory): string {
  const path = join(directory.root, 'resolv.conf')
  const kept = readText('/etc/resolv.conf').match(/^(search|domain|options)\s.*$/gm) ?? []
  writeFileSync(path, [`nameserver ${nameServer}`, ...kept, ''].join('\n'))
  return path
}

/**
 * Connects the network namespace of a process to the network of this machine, without access to its loopback interface. Resolves when the network
 * is there, to a function that disconnects it. `env` marks the program as one of the Run, so that it is killed with it.
 * @throws {Error} with what slirp4netns printed.
 */
export async function connectNetwork(slirp4netns: string, pid: number, env: Record<string, string>): Promise<() => Promise<void>> {
  const options = ['--configure', '--mtu=65520', '--disable-host-loopback', '--enable-sandbox', '--enable-seccomp', '--ready-fd=3']
  const child = spawn(slirp4netns, [...options, `${pid}`, 'tap0'], { env, detached: true, stdio: ['ignore', 'ignore', 'pipe', 'pipe'] })
  let printed = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    printed = `${printed}${text}`.slice(-500)
  })
  const exited = new Promise<void>(resolve => child.once('close', () => resolve()).once('error', () => resolve()))
  const isReady = await Promise.race([
    new Promise<boolean>(resolve => child.stdio[3]!.once('data', () => resolve(true))),
    exited.then(() => false),
  ])
  if (!isReady) throw new Error(`slirp4netns: ${printed.trim().replaceAll('\n', '; ') || 'it ended without an error'}`)
  return async () => {
    child.kill('SIGKILL')
    await exited
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
