/** @kubernetes/client-node: client-node.mjs has its steps and expectations. */
import { deepEqual } from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { runProgram } from '../support/run-program.ts'
import { clientPath, skipWithoutClient, startServerForClients } from './clients.ts'

const steps = ['namespace', 'informer', 'deployment', 'custom resources', 'access reviews']

describe('@kubernetes/client-node', { skip: skipWithoutClient('client-node') }, () => {
  test('objects, an informer, apply, custom resources and access reviews', async () => {
    const server = await startServerForClients()
    try {
      const library = join(clientPath('client-node'), 'node_modules', '@kubernetes', 'client-node', 'dist', 'index.js')
      const program = join(import.meta.dirname, 'client-node.mjs')
      const { code, stdout, stderr } = await runProgram(process.execPath, [program, server.kubeconfig, library])
      deepEqual({ code, steps: stdout.trim().split('\n') }, { code: 0, steps }, stderr)
    } finally {
      await server.close()
    }
  })
})
