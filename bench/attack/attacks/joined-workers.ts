/** A joined worker, or who wants to join, and a client of the Unix socket that local workers use. */
import { joinTokens } from '../../../src/app/index.ts'
import { secretResource } from '../../../src/kubernetes/client/index.ts'
import { actForOthers } from '../act-for-others.ts'
import type { Attack } from '../attack.ts'
import { sendForbidden } from '../forbidden-requests.ts'
import { joinToken } from '../join-token.ts'
import { type Target, victimNamespace } from '../target.ts'

const own = '/apis/oarlock.dev/v1alpha1'

async function join(target: Target, token: string, name?: string): Promise<{ worker: string; credential: string }> {
  const { bootstrapWorker } = await joinTokens()
  return await bootstrapWorker(target.url, target.certificate, token, { ...(name !== undefined && { name }) })
}

const joinedActs: Attack = {
  name: 'joined-worker-acts-for-others',
  actor: 'joined worker',
  promise: 'Workers',
  async attempt(target, control) {
    const { worker, credential } = await join(target, await joinToken(target, '--uses', '1'), 'spy')
    const gained = await actForOthers(target, credential, worker, control)
    const paths = [
      `/api/v1/namespaces/${victimNamespace}/secrets/login`,
      `${own}/namespaces/${victimNamespace}/stacks`,
      `${own}/runs`,
      `${own}/workers`,
      '/api/v1/namespaces',
    ]
    const reads = paths.map(path => ({ what: `GET ${path}`, method: 'GET', path }))
    return [...gained, ...(await sendForbidden(target, credential, reads, control))]
  },
}

const reusedToken: Attack = {
  name: 'join-token-used-twice',
  actor: 'joined worker',
  promise: 'Workers',
  async attempt(target, control) {
    const token = await joinToken(target, '--uses', '1')
    const joined = await Promise.allSettled(Array.from({ length: 16 }, (_, index) => join(target, token, `copy${index}`)))
    const count = joined.filter(({ status }) => status === 'fulfilled').length
    control(count > 0, 'no worker joined')
    return count > 1 ? [`${count} workers joined with a token for one`] : []
  },
}

const forgedJoin: Attack = {
  name: 'join-with-a-forged-request',
  actor: 'anonymous',
  promise: 'Workers',
  async attempt(target, control) {
    const valid = await joinToken(target, '--uses', '1')
    const [prefix, id, secret = '', hash] = valid.split('.')
    const bodies: object[] = [
      { token: [prefix, id, secret.replace(/.$/, 'A').replace(/^./, 'B'), hash].join('.') },
      { token: [prefix, id, '', hash].join('.') },
      { token: [prefix, '../../x', secret, hash].join('.') },
      { token: { $ne: '' } },
      { token: [valid] },
      { token: valid, name: 'oarlock-controller' },
      { token: valid, name: '../../default' },
      { token: valid, name: 'a'.repeat(300) },
      { token: valid, labels: { 'oarlock.dev/pool': 'victim' } },
      { token: valid, labels: { gpu: 'yes' } },
    ]
    const gained: string[] = []
    for (const body of bodies) {
      const { status } = await target.send('POST', '/join', { body })
      if (status < 400) gained.push(`joined with ${JSON.stringify(body).slice(0, 60)}`)
    }
    const { status } = await target.send('POST', '/join', { body: { token: valid, name: 'valid-name' } })
    control(status === 200, `a valid request is answered with ${status}`)
    return gained
  },
}

const revoked: Attack = {
  name: 'revoked-worker',
  actor: 'joined worker',
  promise: 'Revocation',
  async attempt(target, control) {
    const { worker, credential } = await join(target, await joinToken(target), 'revoked')
    const path = `${own}/workerpools/edge`
    const { status } = await target.send('GET', path, { token: credential })
    const { status: renewed } = await target.send('POST', '/join/renew', { token: credential, body: {} })
    control(status === 200 && renewed === 200, `before, the credential is answered with ${status}, and renewed with ${renewed}`)
    await target.admin.resource(secretResource).delete(`worker-credential-${worker}`, { namespace: 'oarlock-workers' })
    const gained: string[] = []
    if ((await target.send('GET', path, { token: credential })).status < 400) gained.push('a revoked credential is accepted')
    if ((await target.send('POST', '/join/renew', { token: credential, body: {} })).status < 400)
      gained.push('a revoked credential is renewed')
    return gained
  },
}

const unixSocket: Attack = {
  name: 'unix-socket-without-a-token',
  actor: 'anonymous',
  promise: 'Anonymous access',
  async attempt(target, control) {
    const gained: string[] = []
    for (const path of ['/api/v1/secrets', '/backup', `/state/${victimNamespace}/web`, `${own}/stacks`]) {
      const socketPath = `${target.dataDir}/api.sock`
      const { status } = await target.send('GET', path, { socketPath })
      const { status: allowed } = await target.send('GET', path, { socketPath, token: target.operatorToken })
      control(allowed === 200, `the operator gets ${allowed} for ${path}`)
      if (status < 400) gained.push(`GET ${path}: ${status}`)
    }
    return gained
  },
}

export const joinedWorkerAttacks: readonly Attack[] = [joinedActs, reusedToken, forgedJoin, revoked, unixSocket]
