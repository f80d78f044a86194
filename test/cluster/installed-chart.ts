import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { stringify } from 'yaml'
import { Cluster } from './cluster.ts'
import { helmMissing, Installation } from './installation.ts'
import { buildOarlockImage, imageMissing } from './oarlock-image.ts'
import { clusterMissing } from './programs.ts'

const run = promisify(execFile)
const chart = join(import.meta.dirname, '..', '..', 'charts/oarlock')
/** On two slow cores, where other tests run at the same time. */
const waitTimeout = '400s'

/** The reason why the chart cannot be installed in a cluster on this machine; undefined if it can. */
export const installedChartMissing = (): string | undefined => clusterMissing() ?? imageMissing() ?? helmMissing()

/** Values of stores and join service in a cluster without storage classes. */
export const storageless = { volume: { storageClass: '' } }

/** A cluster with the chart, and a namespace `shop` for Stacks. */
export class InstalledChart {
  readonly cluster: Cluster
  readonly #installation: Installation

  private constructor(cluster: Cluster) {
    this.cluster = cluster
    this.#installation = new Installation(cluster)
  }

  /**
   * @param values in addition to those that a cluster without registry and storage classes needs.
   * @param images further OCI archives that the nodes get. @param nodes default 1.
   */
  static async start(values: object, images: readonly string[] = [], nodes = 1): Promise<InstalledChart> {
    const installed = new InstalledChart(await Cluster.start({ nodes, images: [buildOarlockImage(), ...images] }))
    try {
      await installed.#install(values)
      return installed
    } catch (error) {
      const state = await installed.kubectl('get', 'pods,apiservices,events', '-A', '-o', 'wide').catch(String)
      await installed.close()
      throw new Error(`${(error as Error).message}\n${state}`, { cause: error })
    }
  }

  async kubectl(...args: string[]): Promise<string> {
    return await this.#installation.kubectl(...args)
  }

  async apply(...objects: readonly object[]): Promise<void> {
    // Server-side: some CRDs are larger than the annotation of the other way may be.
    await this.#send(['apply', '--server-side', '-f', '-'], objects.map(object => `---\n${stringify(object)}`).join(''))
  }

  async close(): Promise<void> {
    await this.cluster.close().finally(() => this.#installation.remove())
  }

  async #send(args: string[], input: string): Promise<void> {
    const env = { ...process.env, KUBECONFIG: this.cluster.kubeconfig }
    const child = run('kubectl', args, { env, maxBuffer: 2 ** 26 })
    child.child.stdin?.end(input)
    await child
  }

  async #install(values: object): Promise<void> {
    const own = { image: { pullPolicy: 'Never' }, stores: storageless, joinService: storageless, workerNamespaces: ['shop'] }
    await this.#installation.prepare({ labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } })
    const file = this.#installation.valuesFile('values', { ...own, ...values })
    await this.#installation.helm('install', 'oarlock', chart, `--values=${file}`, '--wait', `--timeout=${waitTimeout}`)
  }
}
