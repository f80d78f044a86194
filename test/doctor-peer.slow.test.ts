/** `oarlock doctor --kubeconfig` against a real kube-apiserver (`scripts/build-peers.sh`), without the parts of Oarlock and with them. */
import { deepEqual, doesNotMatch, equal, match, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { workerPoolResource } from '../src/api/index.ts'
import { installOarlock } from '../src/app/controllers/install.ts'
import { publishEndpoint } from '../src/app/discovery/index.ts'
import { createJoinToken } from '../src/app/join/index.ts'
import type { Finding } from '../src/cli/doctor/finding.ts'
import { type Client, createClient, leaseResource, namespaceResource } from '../src/kubernetes/client/index.ts'
import { describeResource } from '../src/kubernetes/object/index.ts'
import { type Peer, peerMissing, startPeer } from './conformance/peer.ts'
import { makeCertificate } from './support/make-certificate.ts'
import { peerKubeconfig } from './support/peer-kubeconfig.ts'
import { runOarlock } from './support/run-program.ts'

const resource = (group: string, kind: string, plural: string, scope: 'Cluster' | 'Namespaced') =>
  describeResource<object>({ group, version: 'v1', kind, plural, scope })
const policyResource = resource('admissionregistration.k8s.io', 'ValidatingAdmissionPolicy', 'validatingadmissionpolicies', 'Cluster')
const roleResource = resource('rbac.authorization.k8s.io', 'ClusterRole', 'clusterroles', 'Cluster')
const classResource = resource('storage.k8s.io', 'StorageClass', 'storageclasses', 'Cluster')
const claimResource = resource('', 'PersistentVolumeClaim', 'persistentvolumeclaims', 'Namespaced')

describe('oarlock doctor of a cluster', { skip: peerMissing() ?? false, timeout: 300_000 }, () => {
  let peer: Peer
  let client: Client
  let server: Server
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-doctor-'))
  const kubeconfig = join(directory, 'kubeconfig')
  before(async () => {
    peer = await startPeer()
    client = await createClient({ cluster: { server: peer.url, token: peer.tokens.admin!, insecureSkipTlsVerify: true } })
    writeFileSync(kubeconfig, peerKubeconfig(peer))
  })
  after(async () => {
    server?.close()
    await client?.close()
    await peer?.close()
    rmSync(directory, { recursive: true, force: true })
  })
  const doctor = async (file = kubeconfig) => {
    const { code, stdout, text } = await runOarlock(['doctor', '--kubeconfig', file, '-o', 'json'])
    doesNotMatch(text, new RegExp(String(peer.tokens.admin)))
    const findings = new Map((JSON.parse(stdout) as Finding[]).map(finding => [finding.what, finding]))
    const states = Object.fromEntries([...findings].map(([what, { state }]) => [what, state]))
    return { code, findings, states }
  }

  test('names what an empty cluster lacks, with the commands that install it, in 80 columns', async () => {
    const { code, findings, states } = await doctor()
    equal(code, 1)
    deepEqual(states, {
      'server version': 'ok',
      clock: 'ok',
      Oarlock: 'problem',
      'your rights': 'ok',
      storage: 'warning',
      nodes: 'ok',
    })
    for (const { state, needed, fix } of findings.values()) if (state !== 'ok') ok(needed && fix)
    const { stdout } = await runOarlock(['doctor', '--kubeconfig', kubeconfig])
    match(stdout, /^✗ Oarlock {10}not installed: the server lacks the CRDs/m)
    // A word of a command or a path is not divided.
    for (const line of stdout.split('\n')) ok(line.length <= 80 || !line.trim().includes(' '), line)
  })

  test('reports what a user may not read as not known', async () => {
    const config = JSON.parse(peerKubeconfig(peer))
    config.users[0].user.token = peer.tokens.alice
    const file = join(directory, 'alice')
    writeFileSync(file, JSON.stringify(config))
    const { findings, states } = await doctor(file)
    equal(states['server version'], 'ok')
    match(findings.get('CRDs')!.detail, /^not known: this user may not read it$/)
    match(findings.get('your rights')!.detail, /you may not: create customresourcedefinitions.apiextensions.k8s.io/)
  })

  test('accepts an installation, and names what was removed from it or changed', async () => {
    await installOarlock(client)
    const installed = await doctor()
    deepEqual([installed.states.CRDs, installed.states['roles, policies'], installed.states.accounts], ['ok', 'ok', 'ok'])

    const policies = (await client.resource(policyResource).list()).items as {
      metadata: { name: string }
      spec?: { failurePolicy?: string }
    }[]
    const policy = policies.find(({ spec }) => spec?.failurePolicy === 'Fail')
    await client.resource(policyResource).patch(policy!.metadata.name, { spec: { failurePolicy: 'Ignore' } } as object, { type: 'merge' })
    await client.resource(roleResource).delete('oarlock:controller')
    await client.resource(roleResource).create({ metadata: { name: 'oarlock:worker-inputs' }, rules: [] } as never)
    const { code, findings, states } = await doctor()
    equal(code, 1)
    match(
      findings.get('roles, policies')!.detail,
      /1 of \d+ missing: ClusterRole\/oarlock:controller; 1 differ: ValidatingAdmissionPolicy\//,
    )
    equal(states.accounts, 'problem')
    match(findings.get('accounts')!.detail, /oarlock-controller may not /)
    await installOarlock(client)
    const { states: repaired } = await doctor()
    deepEqual([repaired['roles, policies'], repaired.accounts], ['ok', 'ok'])
  })

  test('follows the addresses, Leases, storage, pools and tokens of an installation', async () => {
    const { cert: certificate, key } = makeCertificate(directory)
    server = createServer({ cert: certificate, key }, (_, response) => response.end()).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `https://localhost:${(server.address() as AddressInfo).port}`
    await publishEndpoint(client, 'stores', { url, caCertificate: certificate })
    await publishEndpoint(client, 'join', { url: 'https://localhost:1', caCertificate: certificate })
    const now = Date.now()
    const lease = (name: string, namespace: string, renewedMs: number) =>
      client.resource(leaseResource).apply(
        {
          metadata: { name, namespace },
          spec: { holderIdentity: name, leaseDurationSeconds: 15, renewTime: new Date(renewedMs).toISOString().replace('Z', '000Z') },
        },
        { force: true },
      )
    await lease('oarlock-controller', 'oarlock-system', now)
    await client.resource(namespaceResource).apply({ metadata: { name: 'kube-node-lease' } }, { force: true })
    await lease('n1', 'kube-node-lease', now)
    await lease('n2', 'kube-node-lease', now + 60_000)
    await lease('pool-1-a', 'oarlock-system', now - 600_000)
    await client.resource(classResource).create({
      metadata: { name: 'fast', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      provisioner: 'example.com/fast',
    } as never)
    await client.resource(workerPoolResource).create({ metadata: { name: 'broken' }, spec: { mode: 'Process' } } as never)
    const conditions = [
      {
        type: 'Ready',
        status: 'False',
        reason: 'ImagePullFailed',
        message: 'no such image',
        lastTransitionTime: new Date(now).toISOString(),
      },
    ]
    await client
      .resource(workerPoolResource)
      .patch('broken', { status: { conditions } } as object, { type: 'merge', subresource: 'status' })
    await createJoinToken(client, certificate, { pool: 'broken', ttlMs: 3_600_000 })
    for (const name of ['oarlock-system', 'oarlock-workers']) {
      const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
      await client.resource(namespaceResource).patch(name, { metadata: { labels } }, { type: 'merge' })
    }
    const { findings, states } = await doctor()
    const detail = (what: string) => findings.get(what)?.detail ?? ''
    deepEqual([states['address stores'], states.controllers, states.storage, states['Pod Security']], ['ok', 'ok', 'ok', 'ok'])
    match(detail('address join'), /is not reached from here: ECONNREFUSED/)
    match(detail('nodes'), /^the clock of n2 is \d+ s ahead$/)
    equal(states.nodes, 'problem')
    match(detail('workers'), /^pool-1-a has not renewed for 10 min$/)
    match(detail('pool broken'), /^ImagePullFailed: no such image$/)
    match(detail('join tokens'), /of pool broken expires in \d+ min$/)

    await client.resource(claimResource).create({
      metadata: { name: 'stores', namespace: 'oarlock-system' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    } as never)
    match((await doctor()).findings.get('storage')!.detail, /^claim oarlock-system\/stores is Pending$/)
  })
})
