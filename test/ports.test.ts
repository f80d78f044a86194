/** docs/ports.md against the options of the commands. `open-ports.test.ts` and `roles.slow.test.ts` compare it with the sockets of running processes. */
import { deepEqual, equal } from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { makeProgram } from '../src/cli/program.ts'
import { type DocumentedPort, documentedPorts } from './support/documented-ports.ts'

test('docs/ports.md has every option of a command with an address to listen on, and its default', async () => {
  const program = await makeProgram(undefined, () => undefined)
  const declared: DocumentedPort[] = program.commands.flatMap(command =>
    command.options
      .filter(option => option.flags.includes('<host:port>'))
      .map(option => ({ command: command.name(), option: option.long ?? '', defaultAddress: option.defaultValue as string | undefined })),
  )
  const sorted = (ports: readonly DocumentedPort[]) => ports.map(port => JSON.stringify(port)).sort()
  deepEqual(sorted(documentedPorts), sorted(declared))
})

test('no module opens a TCP listener that docs/ports.md does not have', () => {
  const opens = globSync('src/**/*.ts')
    .filter(file => !/\.test(ing)?\.ts$/.test(file))
    .filter(file => /server\.listen\((?!path\b|join\()/.test(readFileSync(file, 'utf8')))
  deepEqual(opens.sort(), [
    'src/app/endpoints/http-listener.ts', // --health-address of oarlock up, controller, pool
    'src/app/gateway/gateway-listener.ts', // --listen of oarlock gateway
    'src/app/listener/tls-listener.ts', // --listen of oarlock stores, join-service, controller; --external-metrics
    'src/app/worker/health-thread.ts', // --health-address of oarlock worker
    'src/execution/pulumi-backend/listen.ts', // of a worker with a Run of engine pulumi, on loopback
    'src/kubernetes/controller/probe-server.ts', // of operators that use oarlock/controller
    'src/kubernetes/server/listen.ts', // --listen of oarlock up, serve
  ])
})

test('every default is a loopback address', () => {
  for (const { command, defaultAddress } of documentedPorts)
    if (defaultAddress !== undefined) equal(defaultAddress.split(':')[0], '127.0.0.1', command)
})
