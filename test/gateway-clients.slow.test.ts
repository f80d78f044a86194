/** Clients through a gateway before four partitions: what the tests of `test/clients` expect of one server holds there. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Kubectl } from './clients/kubectl.ts'
import type { GatewayTarget } from './conformance/gateway-target.ts'
import { eventually } from './support/eventually.ts'

// Read by test/clients/clients.ts when it is loaded.
process.env.OARLOCK_CLIENTS_AGAINST = 'gateway'
const { skipWithoutClient } = await import('./clients/clients.ts')
const { kubectlFor } = await import('./clients/kubectl.ts')
const { startGatewayTarget } = await import('./conformance/gateway-target.ts')

for (const name of ['kubectl', 'kubectl-custom-resources', 'helm', 'client-go', 'client-node', 'python'])
  await import(`./clients/${name}.slow.test.ts`)

describe('kubectl with the namespaces of two Tenants in two partitions', { skip: skipWithoutClient('kubectl') }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-clients-'))
  let target: GatewayTarget
  let kubectl: Kubectl
  const config = (namespace: string, name: string, value = '1') => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace, labels: { app: 'boat' } },
    data: { value },
  })
  const apply = async (...items: object[]) => await kubectl.output('apply -f -', JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  before(async () => {
    target = await startGatewayTarget()
    const kubeconfig = join(directory, 'kubeconfig')
    writeFileSync(kubeconfig, target.kubeconfigText, { mode: 0o600 })
    kubectl = kubectlFor({ kubeconfig, directory })
    const namespaces = ['acme', 'umbrella'].map(name => ({
      ...{ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { 'oarlock.dev/tenant': name } } },
    }))
    await apply(...namespaces)
    await apply(...['a', 'b', 'c'].flatMap(name => [config('acme', name), config('umbrella', name)]))
  })
  after(async () => {
    await target?.close()
    rmSync(directory, { recursive: true, force: true })
  })
  const all = ['acme/a', 'acme/b', 'acme/c', 'umbrella/a', 'umbrella/b', 'umbrella/c']
  const namesIn = (text: string) =>
    text
      .trim()
      .split('\n')
      .map(line => line.split(/ +/).slice(0, 2).join('/'))
      .sort()

  test('get -A lists both, in one request and in chunks of two', async () => {
    deepEqual(namesIn(await kubectl.output('get configmaps -A -l app=boat --no-headers')), all)
    const chunks = await kubectl.run('get configmaps -A -l app=boat --no-headers --chunk-size=2 -v=8')
    deepEqual(namesIn(chunks.stdout), all)
    ok((chunks.stderr.match(/[?&]continue=/g) ?? []).length >= 2, chunks.stderr)
    deepEqual((await kubectl.output('get namespaces -l oarlock.dev/tenant -o name')).trim().split('\n'), [
      'namespace/acme',
      'namespace/umbrella',
    ])
  })

  test('get -A -w prints the changes of both, in order', async () => {
    const args = [
      'get',
      'configmaps',
      '-A',
      '-l',
      'app=boat',
      '-w',
      '--no-headers',
      '-o',
      'custom-columns=:metadata.namespace,:metadata.name,:data.value',
    ]
    const child = spawn('kubectl', args, { env: { ...process.env, ...kubectl.env }, stdio: ['ignore', 'pipe', 'inherit'] })
    try {
      let text = ''
      child.stdout.setEncoding('utf8').on('data', chunk => {
        text += chunk
      })
      const lines = () => text.split('\n').slice(0, -1)
      await eventually(() => lines().length === all.length, 'the objects that exist')
      const changes = Array.from({ length: 6 }, (_, index) => (index % 2 ? 'umbrella' : 'acme'))
      for (const [index, namespace] of changes.entries()) await apply(config(namespace, 'a', `new-${index}`))
      await eventually(() => lines().length === all.length + changes.length, 'every change')
      deepEqual(
        lines()
          .slice(all.length)
          .map(line => line.trim().split(/ +/).join(' ')),
        changes.map((namespace, index) => `${namespace} a new-${index}`),
      )
    } finally {
      child.kill()
      await once(child, 'close')
    }
  })

  test('wait and delete with a selector over both', async () => {
    const waited = await kubectl.output(
      'wait -A --for=jsonpath={.data.value}=1 configmaps -l app=boat --field-selector metadata.name=b --timeout=10s',
    )
    equal(waited, 'configmap/b condition met\nconfigmap/b condition met\n')
    await kubectl.output('delete configmaps -A -l app=boat --timeout=20s')
    equal(await kubectl.output('get configmaps -A -l app=boat -o name'), '')
  })

  test('create generates the name of a Namespace', async () => {
    const metadata = { generateName: 'made-', labels: { 'oarlock.dev/tenant': 'umbrella' } }
    const created = await kubectl.output('create -o name -f -', JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata }))
    match(created, /^namespace\/made-[a-z0-9]{5}\n$/)
  })

  test('auth can-i and api-resources are those of the namespace', async () => {
    await kubectl.output('create role reader -n umbrella --verb get --resource configmaps')
    await kubectl.output('create serviceaccount robot -n umbrella')
    await kubectl.output('create rolebinding robot -n umbrella --role reader --serviceaccount umbrella:robot')
    const token = (await kubectl.output('create token robot -n umbrella')).trim()
    equal(await kubectl.output(`auth can-i get configmaps -n umbrella --token ${token}`), 'yes\n')
    equal((await kubectl.run(`auth can-i get configmaps -n acme --token ${token}`)).stdout, 'no\n')
  })

  test('the default StorageClass of home is set in a partition', async () => {
    const name = 'standard'
    const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' }
    await apply({ apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata: { name, annotations }, provisioner: 'example.com/disk' })
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
    const claim = JSON.stringify({ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'disk', namespace: 'acme' }, spec })
    await eventually(async () => {
      const args = 'create --dry-run=server -o jsonpath={.spec.storageClassName} -f -'
      return (await kubectl.output(args, claim)) === name
    }, 'the class to be copied')
  })
})
