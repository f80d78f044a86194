import { equal } from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { ApiServer } from '../../kubernetes/server/index.ts'
import type { Address } from '../address.ts'
import { previousPort, startOnPreviousPort } from './api-port.ts'

const kubeconfig = (server: string) => `clusters:\n  - name: oarlock\n    cluster:\n      server: ${server}\n`

for (const [name, text, want] of [
  ['the port of the server', kubeconfig('"https://127.0.0.1:7466"'), 7466],
  ['undefined for a URL without a port', kubeconfig('https://localhost'), undefined],
  ['undefined for broken YAML', 'clusters: [', undefined],
  ['undefined for an empty file', '', undefined],
  ['undefined without a file', undefined, undefined],
] as const) {
  test(`previousPort() returns ${name}`, async t => {
    const directory = mkdtempSync(join(tmpdir(), 'oarlock-port-'))
    t.after(() => rmSync(directory, { recursive: true }))
    const path = join(directory, 'kubeconfig')
    if (text !== undefined) writeFileSync(path, text)
    equal(await previousPort(path), want)
  })
}

test('takes any free port when the previous one is in use', async t => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-port-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'kubeconfig')
  writeFileSync(path, kubeconfig('https://127.0.0.1:7466'))
  const tried: number[] = []
  const start = async ({ port }: Address) => {
    tried.push(port)
    if (port === 7466) throw Object.assign(new Error('in use'), { code: 'AddressInUse' })
    return {} as ApiServer
  }
  await startOnPreviousPort({ host: '127.0.0.1', port: 0 }, path, start)
  equal(tried.join(), '7466,0')
})
