import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { oarlockResources } from '../api/index.ts'
import { startTestServer } from '../kubernetes/testing/index.ts'
import { CliError } from './cli-error.ts'
import { joinEndpoint } from './join-endpoint.ts'

test('without a join service the error names the command, and the server whose kubeconfig it needs', async () => {
  const api = await startTestServer({ kinds: oarlockResources })
  try {
    const error = await joinEndpoint(api.client).then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    const { server } = api.client
    const { message, hint } = error as CliError
    deepEqual(
      [error instanceof CliError, message, hint],
      [
        true,
        `no join service is running and ${server} is not an "oarlock up" server`,
        `start "oarlock join-service --kubeconfig FILE --data DIR" with a kubeconfig of ${server}, where it publishes its address`,
      ],
    )
  } finally {
    await api.close()
  }
})
