import { equal } from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { InMemoryApi } from '../../../test/support/in-memory-api.ts'
import { respondJson } from '../../../test/support/scripted-server.ts'
import { exitCodes } from '../exit-codes.ts'
import { remove } from './delete.ts'

const path = '/apis/oarlock.dev/v1alpha1/namespaces/default/stacks/web'
const resources = [{ name: 'stacks', kind: 'Stack', namespaced: true }]

/** Deletes the Stack `web`, which disappears as soon as it has been changed, as a terminating Stack without resources to destroy does. */
async function removeDisappearing(options: { force: boolean }): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-delete-'))
  const api = await InMemoryApi.start()
  try {
    api.put(path, { spec: {} })
    api.intercept = ({ method, path: requested }, response) => {
      if (method === 'DELETE') api.remove(path)
      if (requested !== '/apis/oarlock.dev/v1alpha1') return false
      respondJson(response, { kind: 'APIResourceList', resources })
      return true
    }
    const kubeconfig = join(directory, 'kubeconfig')
    const cluster = { name: 'test', cluster: { server: api.server.url } }
    const context = { name: 'test', context: { cluster: 'test', user: 'test' } }
    const users = [{ name: 'test', user: { token: 'test' } }]
    writeFileSync(kubeconfig, JSON.stringify({ clusters: [cluster], contexts: [context], users, 'current-context': 'test' }))
    const manifest = join(directory, 'stack.json')
    writeFileSync(
      manifest,
      JSON.stringify({ apiVersion: 'oarlock.dev/v1alpha1', kind: 'Stack', metadata: { name: 'web', namespace: 'default' } }),
    )
    return await remove([], { kubeconfig, filename: [manifest], wait: true, timeout: '10s', ...options })
  } finally {
    await api.close()
    rmSync(directory, { recursive: true })
  }
}

test('a terminating Stack that is gone as soon as --force has orphaned it is deleted', async () =>
  equal(await removeDisappearing({ force: true }), 0))

test('without --force, a Stack that does not exist is not found', async () =>
  equal(await removeDisappearing({ force: false }), exitCodes.notFound))
