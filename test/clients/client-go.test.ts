/** A program on client-go, as operators in Go are: see client-go/main.go for what it does and expects. */
import { deepEqual } from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runProgram } from '../support/run-program.ts'
import { clientPath, skipWithoutClient, startServerForClients } from './clients.ts'

const steps = ['discovery', 'informer', 'conflict', 'apply', 'protobuf', 'custom resources', 'events', 'leader election']

describe('client-go', { skip: skipWithoutClient('client-go') }, () => {
  test('informers, apply, scale, custom resources, events and leader election', async () => {
    const server = await startServerForClients()
    try {
      const { code, stdout, stderr } = await runProgram(clientPath('client-go'), ['-kubeconfig', server.kubeconfig])
      // It logs about its leader election on stderr.
      deepEqual({ code, steps: stdout.trim().split('\n') }, { code: 0, steps }, stderr)
    } finally {
      await server.close()
    }
  })
})
