/** The audit log of `oarlock stores`: the options and the format of the API server's. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Agent, fetch } from 'undici'
import { eventually } from './support/eventually.ts'
import { makeDataDir, removeDirectory } from './support/oarlock-process.ts'
import { accountKubeconfig, type RoleProcess, RoleProcesses, startApiRole } from './support/role-process.ts'

test('stores record who reads and writes states, and neither logs of Runs nor requests without a valid credential', async () => {
  const base = makeDataDir()
  const roles = new RoleProcesses(base)
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } })
  const { client, ca } = await startApiRole(roles)
  try {
    const kubeconfig = await accountKubeconfig(client, 'oarlock-stores', ca)
    const token = /"token":"([^"]+)"/.exec(kubeconfig)?.[1] ?? ''
    const start = async (name: string, ...args: string[]) => {
      const file = roles.file(name, 'kubeconfig', kubeconfig)
      return await roles.start(name, ['stores', '--listen', '127.0.0.1:0', '--kubeconfig', file, '--data', '.', ...args], /^ready: /m)
    }
    const send = async (stores: RoleProcess, method: string, path: string, credential: string) => {
      const headers = { authorization: `Bearer ${credential}`, 'user-agent': 'auditor' }
      const body = method === 'POST' ? '{}' : undefined
      return (await fetch(`${stores.printed('stores')}${path}`, { method, headers, body, dispatcher })).status
    }
    const stores = await start('stores')
    const path = join(stores.directory, 'audit', 'audit.log')
    const events = () =>
      readFileSync(path, 'utf8')
        .split('\n')
        .filter(line => line !== '')
        .map(line => JSON.parse(line))
    equal(await send(stores, 'GET', '/state/shop/web', 'no-such-token'), 401)
    equal(await send(stores, 'GET', '/logs/shop/web-1', token), 403)
    equal(await send(stores, 'GET', '/state/shop/web', token), 403)
    equal(await send(stores, 'POST', '/state/shop/web', token), 403)
    const logged = await eventually(events, found => found.length === 2)
    deepEqual(
      logged.map(({ kind, level, verb, requestURI, user, userAgent, responseStatus }) => [
        ...[kind, level, verb, requestURI, user.username, userAgent, responseStatus.code],
      ]),
      ['get', 'post'].map(verb => [
        ...['Event', 'Metadata', verb, '/state/shop/web', 'system:serviceaccount:oarlock-system:oarlock-stores', 'auditor', 403],
      ]),
    )
    match(logged[0].annotations['authorization.k8s.io/decision'], /^forbid$/)
    equal(readFileSync(path, 'utf8').includes(token), false)
    equal(statSync(path).mode & 0o777, 0o600)
    equal(await stores.stop(), 0)

    const silent = await start('stores', '--no-audit-log')
    equal(await send(silent, 'GET', '/state/shop/web', token), 403)
    equal(await silent.stop(), 0)
    equal(events().length, 2)
  } finally {
    await dispatcher.close()
    await client.close()
    await roles.stopAll()
    removeDirectory(base)
  }
})
