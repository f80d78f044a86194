/** The official Python client: client_python.py has its steps and expectations. */
import { deepEqual } from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { runProgram } from '../support/run-program.ts'
import { clientPath, skipWithoutClient, startServerForClients } from './clients.ts'

const steps = ['namespace', 'config map, watched', 'deployment', 'custom resources', 'access reviews']

describe('the Python client', { skip: skipWithoutClient('python') }, () => {
  test('objects, watches, scale, custom resources and access reviews', async () => {
    const server = await startServerForClients()
    try {
      const program = join(import.meta.dirname, 'client_python.py')
      const env = { PYTHONPATH: clientPath('python'), PYTHONDONTWRITEBYTECODE: '1' }
      const { code, stdout, stderr } = await runProgram('python3', ['-W', 'ignore', program, server.kubeconfig], { env })
      deepEqual({ code, stderr, steps: stdout.trim().split('\n') }, { code: 0, stderr: '', steps })
    } finally {
      await server.close()
    }
  })
})
