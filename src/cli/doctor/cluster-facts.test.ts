/** Against the embedded API server, which serves neither policies nor volumes; `test/doctor-peer.slow.test.ts` has a kube-apiserver. */
import { deepEqual, match } from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeCertificate } from '../../../test/support/make-certificate.ts'
import { systemNamespace } from '../../api/index.ts'
import { discovery } from '../../app/index.ts'
import { namespaceResource } from '../../kubernetes/client/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { readClusterFacts } from './cluster-facts.ts'
import { clusterFindings } from './cluster-findings.ts'

test('of a server without Oarlock only that is a problem, and of an address by another CA that the published one is expected', async () => {
  await using api = await startTestServer({ kinds: [] })
  const { client } = api
  const before = clusterFindings(await readClusterFacts(client))
  deepEqual(
    before.filter(({ state }) => state === 'problem').map(({ what }) => what),
    ['Oarlock'],
  )
  match(before.find(({ what }) => what === 'Oarlock')?.detail ?? '', /^not installed: the server lacks the CRDs/)

  const directory = mkdtempSync(join(tmpdir(), 'oarlock-doctor-'))
  const [served, published] = ['served', 'published'].map(name => {
    mkdirSync(join(directory, name))
    return makeCertificate(join(directory, name))
  })
  const server = createServer({ key: served!.key, cert: served!.cert }).listen(0, '127.0.0.1')
  try {
    await once(server, 'listening')
    await client.resource(namespaceResource).apply({ metadata: { name: systemNamespace } }, { force: true })
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    const { publishEndpoint } = await discovery()
    await publishEndpoint(client, 'stores', { url, caCertificate: published!.cert })
    const stores = clusterFindings(await readClusterFacts(client)).find(({ what }) => what === 'address stores')
    match(stores?.detail ?? '', /is not by the CA in ca\.crt of ConfigMap oarlock-system\/oarlock-endpoint-stores: [A-Z_]+$/)
    match(stores?.fix ?? '', /--tls-ca-file/)
  } finally {
    server.close()
    rmSync(directory, { recursive: true, force: true })
  }
})
