/** A program on client-go: client-go/main.go has its steps and expectations. */
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
      // It logs leader election on stderr.
      deepEqual({ code, steps: stdout.trim().split('\n') }, { code: 0, steps }, stderr)
    } finally {
      await server.close()
    }
  })
})
