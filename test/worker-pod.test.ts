/**
 * Worker Pods without a kubelet: for each Pod that the controller creates, the test does what a kubelet does, and starts `oarlock worker` with the
 * environment and the files of the Pod.
 */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { labels, type StackSpec, systemNamespace, workerPoolResource, workerResource, workersNamespace } from '../src/api/index.ts'
import { type Client, configMapResource, leaseResource, namespaceResource, secretResource } from '../src/kubernetes/client/index.ts'
import { describeResource, type KubeObject } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { StackFixture } from './support/stacks.ts'

type PodBody = {
  spec: {
    serviceAccountName?: string
    containers: {
      env: { name: string; value?: string; valueFrom?: { fieldRef: { fieldPath: string } } }[]
      volumeMounts: { name: string; mountPath: string }[]
    }[]
    volumes: { name: string; projected?: { sources: { serviceAccountToken?: { path: string; expirationSeconds: number } }[] } }[]
  }
}
const podResource = describeResource<PodBody>({ group: '', version: 'v1', kind: 'Pod', plural: 'pods', scope: 'Namespaced' })
const shellStack = (script: string): Pick<StackSpec, 'engine' | 'source' | 'command'> => ({
  ...{ engine: 'command', source: { inline: { files: { a: '' } } } },
  command: { apply: ['sh', '-c', script] },
})
const launcher = join(import.meta.dirname, '..', 'bin', 'oarlock.js')

describe('worker Pods', () => {
  let oarlock: OarlockProcess
  let admin: Client
  let stacks: StackFixture
  const dataDir = makeDataDir()
  const started: ChildProcess[] = []

  before(async () => {
    oarlock = await startOarlock(dataDir)
    admin = oarlock.client
    await admin.resource(namespaceResource).create({ metadata: { name: 'shop' } })
    stacks = new StackFixture(admin, 'shop')
    const env = [{ name: 'OARLOCK_LABELS', value: 'gpu=a100' }]
    const template = { spec: { containers: [{ name: 'worker', image: 'oarlock:test', env }] } }
    await admin.resource(workerPoolResource).create({ metadata: { name: 'pods' }, spec: { mode: 'Pod', max: 1, template } })
  })
  after(async () => {
    for (const child of started) child.kill('SIGKILL')
    await oarlock?.stop()
    removeDirectory(dataDir)
  })

  const nextPod = async () =>
    await eventually(async () => {
      const { items } = await admin.resource(podResource).listAll({ namespace: systemNamespace, labelSelector: `${labels.pool}=pods` })
      return items.find(({ metadata }) => !seen.has(metadata.uid))
    }, 'a Pod')
  const seen = new Set<string>()

  /** Starts the program of the Pod. Resolves with its exit code. */
  async function startPod(pod: KubeObject<PodBody>): Promise<{ exited: Promise<number | null> }> {
    const { name, namespace = '', uid } = pod.metadata
    seen.add(uid)
    const { serviceAccountName, containers, volumes } = pod.spec
    const [container] = containers
    const home = join(dataDir, name)
    mkdirSync(home)
    const mount = container!.volumeMounts.find(each => each.name === 'oarlock-credential')!
    const sources = volumes.find(each => each.name === mount.name)?.projected?.sources ?? []
    const { path, expirationSeconds } = sources.flatMap(source => source.serviceAccountToken ?? [])[0]!
    const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name, uid }
    const response = await admin.request({
      method: 'POST',
      path: `/api/v1/namespaces/${namespace}/serviceaccounts/${serviceAccountName}/token`,
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds, boundObjectRef } },
    })
    writeFileSync(join(home, path), ((await response.json()) as { status: { token: string } }).status.token)
    const { data } = await admin.resource(configMapResource).get('kube-root-ca.crt', { namespace })
    writeFileSync(join(home, 'ca.crt'), data?.['ca.crt'] ?? '')
    const env = Object.fromEntries(
      container!.env.map(({ name, value, valueFrom }) => [
        name,
        valueFrom?.fieldRef.fieldPath === 'metadata.uid' ? uid : value?.replace(mount.mountPath, home),
      ]),
    )
    const directories = { OARLOCK_RUNS_DIR: join(home, 'runs'), OARLOCK_CACHE_DIR: join(home, 'cache') }
    const child = spawn(process.execPath, [launcher, 'worker'], {
      stdio: 'ignore',
      env: { PATH: process.env.PATH, ...env, ...directories },
    })
    started.push(child)
    return { exited: once(child, 'exit').then(([code]) => code as number | null) }
  }

  test('a worker registers with the token of its Pod, brings a Stack with a Secret to Ready, and needs no credential of its own', async () => {
    const { items: before } = await admin.resource(secretResource).listAll()
    await admin.resource(secretResource).create({ metadata: { name: 'login', namespace: 'shop' }, stringData: { password: 'of-web' } })
    const checked = join(dataDir, 'checked')
    await stacks.create('web', {
      ...shellStack(`test "$password" = of-web && until [ -e ${checked} ]; do sleep 0.1; done`),
      pool: 'pods',
      placement: { workerLabels: { gpu: 'a100' } },
      env: [{ name: 'password', secretKeyRef: { name: 'login', key: 'password' } }],
    })
    const pod = await nextPod()
    const { exited } = await startPod(pod)
    const { name, uid } = pod.metadata
    const run = await stacks.untilRun('web', 'the start', ({ status }) => status?.phase === 'Applying', 60_000)
    deepEqual([run.spec.workerName, run.spec.workerPod], [name, { namespace: systemNamespace, uid }])
    // It registers with its Lease, and writes its Worker 2 s later.
    const { spec, metadata } = await eventually(async () => {
      const worker = await admin.resource(workerResource).get(name)
      return worker.status?.phase === 'Busy' && worker
    }, 'the status of the worker')
    deepEqual(spec.pod, { namespace: systemNamespace, serviceAccountName: 'oarlock-worker', uid })
    equal(metadata.labels?.gpu, 'a100')
    equal((await admin.resource(leaseResource).get(name, { namespace: systemNamespace })).spec?.holderIdentity, uid)
    writeFileSync(checked, '')
    await stacks.untilReady('web')
    equal(await exited, 0)
    const { items } = await admin.resource(secretResource).listAll()
    const own = items.filter(({ metadata }) => !before.some(each => each.metadata.uid === metadata.uid)).map(each => each.metadata.name)
    deepEqual(
      own.filter(each => !['login', 'web-outputs'].includes(each)),
      [],
    )
    ok(!items.some(each => each.metadata.namespace === workersNamespace && each.metadata.name.includes(name)))
  })

  test('the worker of a deleted Pod stops its engine: its token is rejected', async () => {
    await stacks.create('long', { ...shellStack('trap "exit 0" INT; while :; do sleep 0.2; done'), pool: 'pods', timeout: '1h' })
    const pod = await nextPod()
    const { exited } = await startPod(pod)
    await stacks.untilRun('long', 'the start', ({ status }) => status?.phase === 'Applying', 60_000)
    await admin.resource(podResource).delete(pod.metadata.name, { namespace: systemNamespace, gracePeriodSeconds: 0 })
    equal(await exited, 3)
    await stacks.untilRun('long', 'the loss', ({ status }) => status?.phase === 'Lost', 60_000)
  })
})
