import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { readlinkSync } from 'node:fs'
import { killWithUs } from '../support/kill-with-us.ts'

/**
 * The network of a cluster: a namespace for the control plane with a bridge, to which the namespaces of the nodes and this machine are connected.
 * Services are addresses of 10.96.0.0/16, Pods of node N have 10.244.N.0/24.
 */
export class ClusterNetwork {
  readonly id: string
  readonly #prefix: string
  /** Each keeps a namespace. Not `ip netns`: sandboxes of other processes unmount what is below /run/netns, which is a shared mount. */
  readonly #holders: ChildProcess[] = []

  /** @param id at most 6 characters, unique on this machine. */
  constructor(id: string) {
    this.id = id
    this.#prefix = freePrefix()
    const controlPlane = this.#addNamespace()
    inside(controlPlane, 'ip link add nodes type bridge', `ip addr add ${this.controlPlaneAddress}/24 dev nodes`, 'ip link set nodes up')
    inside(controlPlane, 'sysctl -qw net.ipv4.ip_forward=1')
    run(`ip link add oar-${id} type veth peer name host netns ${controlPlane}`)
    inside(controlPlane, 'ip link set host master nodes', 'ip link set host up')
    run(`ip addr add ${this.#prefix}.254/24 dev oar-${id}`)
    run(`ip link set oar-${id} up`)
  }

  get controlPlane(): string {
    return String(this.#holders[0]?.pid)
  }

  get controlPlaneAddress(): string {
    return `${this.#prefix}.1`
  }

  /** Address of this machine, as Pods and nodes see it. */
  get hostAddress(): string {
    return `${this.#prefix}.254`
  }

  nodeAddress(number: number): string {
    return `${this.#prefix}.${10 + number}`
  }

  podSubnet(number: number): string {
    return `10.244.${number}.0/24`
  }

  /** @returns the process that keeps the network namespace of node `number`, which counts from 1. */
  addNode(number: number): string {
    const namespace = this.#addNamespace()
    inside(this.controlPlane, `ip link add n${number} type veth peer name eth0 netns ${namespace}`)
    inside(this.controlPlane, `ip link set n${number} master nodes`, `ip link set n${number} up`)
    inside(namespace, `ip addr add ${this.nodeAddress(number)}/24 dev eth0`, 'ip link set eth0 up')
    inside(namespace, `ip route add default via ${this.controlPlaneAddress}`, 'sysctl -qw net.ipv4.ip_forward=1')
    inside(this.controlPlane, `ip route add ${this.podSubnet(number)} via ${this.nodeAddress(number)}`)
    return namespace
  }

  /** Of the loopback interface. */
  addAddress(namespace: string, address: string): void {
    inside(namespace, `ip addr add ${address}/32 dev lo`)
  }

  close(): void {
    // The other end may be gone with its namespace.
    if (run('ip -o link').includes(` oar-${this.id}@`)) run(`ip link del oar-${this.id}`)
    for (const holder of this.#holders) holder.kill('SIGKILL')
  }

  #addNamespace(): string {
    const holder = killWithUs(spawn('unshare', ['--net', 'sleep', 'infinity'], { stdio: 'ignore' }))
    this.#holders.push(holder)
    const namespace = String(holder.pid)
    const own = readlinkSync('/proc/self/ns/net')
    waitUntil(`process ${namespace} to have a network namespace`, () => readlinkSync(`/proc/${namespace}/ns/net`) !== own)
    inside(namespace, 'ip link set lo up')
    return namespace
  }
}

/** Arguments before a command that is to run in a network namespace. Not `ip netns exec`, which would replace /sys and with it the cgroups. */
export const enter = (namespace: string): string[] => ['nsenter', `--target=${namespace}`, '--net']

/** Blocks this thread. @throws {Error} after 20 s. */
export function waitUntil(what: string, isDone: () => boolean): void {
  for (let attempt = 0; !isDone(); attempt++) {
    if (attempt === 2_000) throw new Error(`waited 20 s for ${what}`)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
  }
}

function freePrefix(): string {
  const used = run('ip -4 -o addr')
  for (let i = 0; i < 250; i++) if (!used.includes(`10.99.${i}.`)) return `10.99.${i}`
  throw new Error('all networks of 10.99.0.0/16 are in use on this machine')
}

function inside(namespace: string, ...commands: string[]): void {
  for (const command of commands) run(`${enter(namespace).join(' ')} ${command}`)
}

function run(command: string): string {
  const [program = '', ...args] = command.split(' ')
  const PATH = `${process.env.PATH}:/usr/sbin:/sbin`
  return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, PATH } })
}
