import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Run, runResource, stackResource, systemNamespace } from '../../src/api/index.ts'
import { readLeader } from '../../src/app/discovery/index.ts'
import { describeResource } from '../../src/kubernetes/object/index.ts'
import type { Cluster } from '../cluster/cluster.ts'
import { type Installation, waitTimeout } from '../cluster/installation.ts'
import type { ClusterNode } from '../cluster/node.ts'
import { eventually } from './eventually.ts'
import { type LedgerLine, readLedger, record } from './ledger.ts'
import { isReady } from './stacks.ts'

type PodBody = { spec: { nodeName: string }; status: { phase: string; containerStatuses?: { name: string; containerID?: string }[] } }
const podResource = describeResource<PodBody>({ group: '', version: 'v1', kind: 'Pod', plural: 'pods', scope: 'Namespaced' })
const namespace = 'shop'
const ownChart = join(import.meta.dirname, '..', '..', 'charts/oarlock')
/** Path of the directory with ledgers, in worker Pods. */
const ledgers = '/ledgers'
const recoveryTimeoutMs = 240_000

/** @returns the arguments of `helm upgrade` in docs/install-kubernetes.md. */
export function documentedUpgrade(): string[] {
  const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs/install-kubernetes.md'), 'utf8')
  const line = /^helm (upgrade oarlock charts\/oarlock .*?)(?:\s+#.*)?$/m.exec(page)?.[1]
  if (!line?.includes('--reset-then-reuse-values'))
    throw new Error(`docs/install-kubernetes.md has no line of helm upgrade that keeps values: ${line}`)
  return line.split(' ')
}

/** Resources of a Stack in a chain, and how long each takes to create. */
export type Chain = { readonly resources: number; readonly seconds: number }
const shortChain: Chain = { resources: 6, seconds: 1 }

/** What a fault did to a Stack whose resources were being created. */
export type FaultOutcome = {
  /** From the fault until it was dealt with: the next Run executes, another controller leads, the kubelet reports again. */
  readonly recoveredMs: number
  /** From the fault until the Stack was Ready. */
  readonly readyMs: number
  readonly counts: LedgerCounts
}

export type LedgerCounts = {
  /** Resources that were created completely 1 s before the fault, and once more by a later Run. */
  readonly again: number
  /** Resources that were never created completely. */
  readonly lost: number
  readonly runs: number
}

/** Stacks whose resources record in a ledger when their creation begins and ends, on an installation whose worker Pods have the directory of ledgers. */
export class ClusterFaults {
  readonly cluster: Cluster
  readonly installation: Installation

  constructor(cluster: Cluster, installation: Installation) {
    this.cluster = cluster
    this.installation = installation
  }

  /** Installs the chart, with a pool of OneShot workers. */
  async install(image: string, options: { chart?: string; values?: object } = {}): Promise<void> {
    const { chart = ownChart } = options
    const [repository, tag] = image.split(':')
    const volume = { volume: { storageClass: '' } }
    const values = {
      ...{ image: { repository, tag, pullPolicy: 'Never' }, stores: volume, joinService: volume, workerNamespaces: [namespace] },
      pools: { default: { spec: { lifecycle: 'OneShot', min: 0, max: 4 }, podSpec: this.#podSpec(image) } },
      ...options.values,
    }
    const file = this.installation.valuesFile('values', values)
    await this.installation.prepare()
    await this.installation.helm('install', 'oarlock', chart, `--values=${file}`, '--wait', `--timeout=${waitTimeout}`)
  }

  /** Upgrades by the line of the documentation, to the chart of this checkout. Only the image is given; all other values are those of the installation. */
  async upgrade(image: string): Promise<void> {
    const [repository, tag] = image.split(':')
    const file = this.installation.valuesFile('image', {
      image: { repository, tag },
      pools: { default: { podSpec: this.#podSpec(image) } },
    })
    const line = documentedUpgrade().map(word => (word === 'charts/oarlock' ? ownChart : word))
    await this.installation.helm(...line, `--values=${file}`, `--timeout=${waitTimeout}`)
  }

  /** The `podSpec` of a pool whose worker has the ledgers. A list in it replaces that of the chart. */
  #podSpec(image: string): object {
    const restricted = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } }
    const directories = { home: '/home/oarlock', tmp: '/tmp', ledgers }
    const volumeMounts = Object.entries(directories).map(([name, mountPath]) => ({ name, mountPath }))
    return {
      containers: [{ name: 'worker', image, imagePullPolicy: 'Never', args: ['worker'], securityContext: restricted, volumeMounts }],
      volumes: [
        { name: 'home', emptyDir: {} },
        { name: 'tmp', emptyDir: {} },
        { name: 'ledgers', hostPath: { path: join(this.installation.directory, 'ledgers') } },
      ],
    }
  }

  /** Creates or changes a Stack: all resources of `generation` are created, those of the one before are destroyed. */
  async applyStack(name: string, generation: number, { resources, seconds }: Chain = shortChain, pool = 'default'): Promise<void> {
    const note = (what: string, index: number) => record(`${ledgers}/${name}`, what, `${generation}.${index}`)
    const resource = (index: number) => `resource "terraform_data" "r${index}" {
  ${index > 0 ? `depends_on = [terraform_data.r${index - 1}]` : ''}
  triggers_replace = "${generation}"
  provisioner "local-exec" {
    command = "${note('begin', index)}; sleep ${seconds}; ${note('done', index)}"
  }
}
`
    const files = { 'main.tf': Array.from({ length: resources }, (_, index) => resource(index)).join('') }
    const spec = { engine: 'opentofu' as const, pool, source: { inline: { files } }, retry: { initial: '500ms', max: '2s', limit: 1_000 } }
    await this.cluster.client.resource(stackResource).apply({ metadata: { name, namespace }, spec }, { force: true })
  }

  /** Waits until `count` resources of the generation have been created. @returns the Run that creates them. */
  async inProgress(name: string, generation: number, count = 2): Promise<Run> {
    const ofGeneration = () => this.ledger(name).filter(({ item }) => item.startsWith(`${generation}.`))
    await eventually(
      () => ofGeneration().filter(({ what }) => what === 'done').length >= count,
      `${name} to be in progress`,
      recoveryTimeoutMs,
    )
    const { runUid } = ofGeneration().at(-1) as LedgerLine
    const run = (await this.runsOf(name)).find(({ metadata }) => metadata.uid === runUid)
    if (!run) throw new Error(`Run ${runUid} of ${name} does not exist`)
    return run
  }

  async runsOf(stack: string): Promise<Run[]> {
    const { items } = await this.cluster.client.resource(runResource).listAll({ namespace, labelSelector: `oarlock.dev/stack=${stack}` })
    return items.sort((a, b) => a.spec.epoch - b.spec.epoch)
  }

  async untilReady(name: string): Promise<void> {
    const stacks = this.cluster.client.resource(stackResource)
    try {
      await eventually(async () => isReady(await stacks.get(name, { namespace })), `${name} to be Ready`, recoveryTimeoutMs)
    } catch (error) {
      const state = await this.installation.kubectl('get', 'stacks,runs,workers,pods', '-A', '-o', 'wide')
      throw new Error(`${(error as Error).message}\n${state}`, { cause: error })
    }
  }

  /** Also of a worker: the Pod of the same name. */
  async podOf(name: string): Promise<{ node: ClusterNode; pid: number }> {
    const { spec, status } = await this.cluster.client.resource(podResource).get(name, { namespace: systemNamespace })
    const node = this.cluster.nodes.find(each => each.name === spec.nodeName)
    const id = status.containerStatuses?.[0]?.containerID?.replace('containerd://', '')
    const container = node?.containers().find(each => each.id === id)
    if (!node || !container) throw new Error(`Pod ${name} has no running container`)
    return { node, pid: container.pid }
  }

  /** SIGKILL of all processes of the worker's Pod: worker, supervisor and engine. */
  async killWorker(run: Run): Promise<number> {
    const { pid } = await this.podOf(run.spec.workerName as string)
    const faultMs = Date.now()
    for (const each of processesWith(pid)) kill(each)
    const { name } = run.metadata
    const stack = run.spec.stackRef.name
    await eventually(
      async () => (await this.runsOf(stack)).some(next => next.spec.epoch > run.spec.epoch && next.status?.startedAt !== undefined),
      `the Run after ${name} to start`,
      recoveryTimeoutMs,
    )
    return Date.now() - faultMs
  }

  async leader(): Promise<string> {
    return (await readLeader(this.cluster.client))?.identity ?? ''
  }

  /** SIGKILL of the controller that leads. */
  async killLeader(): Promise<number> {
    const leader = await this.leader()
    const pods = await this.cluster.client.resource(podResource).listAll({ namespace: systemNamespace })
    const pod = pods.items.find(({ metadata }) => leader.startsWith(metadata.name))
    if (!pod) throw new Error(`no Pod of the leader ${leader}`)
    const { pid } = await this.podOf(pod.metadata.name)
    const faultMs = Date.now()
    kill(pid)
    await eventually(async () => !['', leader].includes(await this.leader()), 'another controller to lead', recoveryTimeoutMs)
    return Date.now() - faultMs
  }

  /** SIGKILL of the kubelet of the worker's node, which starts again after 3 s. */
  async killKubelet(run: Run): Promise<number> {
    const { node } = await this.podOf(run.spec.workerName as string)
    const kubelet = node.program('kubelet')
    const faultMs = Date.now()
    await kubelet.kill()
    await sleep(3_000)
    kubelet.restart()
    await kubelet.ready(() => this.cluster.reportsAfter(node.name, faultMs))
    return Date.now() - faultMs
  }

  /** Kills something in the middle of an apply of the Stack and waits until the Stack is Ready. */
  async trial(name: string, generation: number, what: 'worker' | 'leader' | 'kubelet', atResource = 2): Promise<FaultOutcome> {
    await this.applyStack(name, generation)
    const run = await this.inProgress(name, generation, atResource)
    const faultMs = Date.now()
    const recoveredMs =
      what === 'leader' ? await this.killLeader() : await (what === 'worker' ? this.killWorker(run) : this.killKubelet(run))
    await this.untilReady(name)
    return { recoveredMs, readyMs: Date.now() - faultMs, counts: this.count(name, generation, faultMs) }
  }

  count(name: string, generation: number, faultMs: number, { resources }: Chain = shortChain): LedgerCounts {
    const lines = this.ledger(name).filter(({ item }) => item.startsWith(`${generation}.`))
    const done = lines.filter(({ what }) => what === 'done')
    // Its state is stored when the engine has reported the resource, at most 1 s later.
    const safe = done.filter(({ atMs }) => atMs <= faultMs - 1_000)
    const isAgain = ({ what, item, runUid, atMs }: LedgerLine) =>
      what === 'begin' && safe.some(each => each.item === item && each.runUid !== runUid && each.atMs <= atMs)
    return {
      again: lines.filter(isAgain).length,
      lost: resources - new Set(done.map(({ item }) => item)).size,
      runs: new Set(lines.map(({ runUid }) => runUid)).size,
    }
  }

  ledger(name: string): LedgerLine[] {
    return readLedger(join(this.installation.directory, 'ledgers', name))
  }
}

/** Processes in the process namespace of `pid`, except its process 1. */
function processesWith(pid: number): number[] {
  const own = readlinkSync(`/proc/${pid}/ns/pid`)
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(each => {
      try {
        return readlinkSync(`/proc/${each}/ns/pid`) === own && !/^NSpid:.*\t1$/m.test(readFileSync(`/proc/${each}/status`, 'utf8'))
      } catch {
        // It has ended.
        return false
      }
    })
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
