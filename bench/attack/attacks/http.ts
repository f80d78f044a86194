/** Requests that a client library would not send: a foreign web page, ambiguous framing, and many of them. */
import { connect as connectTcp, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import type { Attack } from '../attack.ts'
import { attackerNamespace, type Target, victimNamespace } from '../target.ts'

const rebinding: Attack = {
  name: 'dns-rebinding',
  actor: 'anonymous',
  promise: 'Other web pages',
  async attempt(target, control) {
    const names = [
      '127.0.0.1.evil.example',
      'localhost.evil.example',
      'evil.example',
      '127.0.0.1@evil.example',
      '[::1].evil.example',
      '127.0.0.1:80.evil.example',
      'evil.example:127.0.0.1',
      'localhost%00.evil.example',
      '127.evil.example',
      '::1.evil.example',
    ]
    const gained: string[] = []
    // With the credential, as a browser that has it would send it.
    const token = target.operatorToken
    for (const host of names)
      for (const path of ['/queue', '/metrics']) {
        const { status } = await target.sendToHealthAddress('GET', path, { token, headers: { host } }).catch(() => ({ status: 400 }))
        if (status < 400) gained.push(`Host: ${host} reads ${path}`)
      }
    for (const path of ['/queue', '/metrics']) {
      const { status } = await target.sendToHealthAddress('GET', path, { token })
      control(status === 200, `with the right name, ${path} is answered with ${status}`)
    }
    return gained
  },
}

const crossSite: Attack = {
  name: 'cross-site-requests',
  actor: 'anonymous',
  promise: 'Other web pages',
  async attempt(target, control) {
    const headers = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site', cookie: 'session=1' }
    const gained: string[] = []
    const token = target.operatorToken
    for (const path of ['/queue', '/metrics']) {
      const { status } = await target.sendToHealthAddress('GET', path, { token })
      control(status === 200, `the operator gets ${status} for ${path}`)
      for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
        const { status } = await target.sendToHealthAddress(method, path, { headers, body: '{}', contentType: 'text/plain' })
        if (status < 400) gained.push(`${method} ${path}: ${status}`)
      }
      const { headers: answer, text } = await target.sendToHealthAddress('GET', path, { headers })
      if (answer['access-control-allow-origin']) gained.push(`${path} allows other origins`)
      gained.push(...target.secretsIn(text))
    }
    for (const path of ['/api/v1/namespaces', '/version']) {
      const { headers: answer } = await target.send('GET', path, { headers })
      if (answer['access-control-allow-origin']) gained.push(`${path} of the API allows other origins`)
    }
    return gained
  },
}

/** Sends bytes on one connection; resolves with what is answered within 0.4 s, or until the answer has `expected`, for at most 20 s. */
function exchange(target: Target, address: string, bytes: string, expected?: RegExp): Promise<string> {
  const { protocol, hostname, port } = new URL(address)
  const socket: Socket =
    protocol === 'https:' ? connectTls({ host: hostname, port: Number(port), ca: target.certificate }) : connectTcp(Number(port), hostname)
  return new Promise(resolve => {
    let answer = ''
    const end = () => {
      clearTimeout(timer)
      socket.destroy()
      resolve(answer)
    }
    const timer = setTimeout(end, expected ? 20_000 : 400)
    socket.setEncoding('latin1').on('data', text => {
      answer += text
      if (expected?.test(answer)) end()
    })
    socket.on('error', end).on('close', end)
    socket.once(protocol === 'https:' ? 'secureConnect' : 'connect', () => socket.write(bytes, 'latin1'))
  })
}

const smuggling: Attack = {
  name: 'request-smuggling',
  actor: 'account',
  promise: 'Permissions',
  async attempt(target, control) {
    const path = `/api/v1/namespaces/${attackerNamespace}/configmaps`
    const inner = 'GET /version HTTP/1.1\r\nHost: x\r\n\r\n'
    const start = (headers: string) =>
      `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${target.authorToken}\r\nContent-Type: application/json\r\n${headers}\r\n`
    const chunked = `0\r\n\r\n${inner}`
    const ambiguous: Record<string, string> = {
      'both lengths': `${start(`Content-Length: ${chunked.length}\r\nTransfer-Encoding: chunked\r\n`)}${chunked}`,
      'two lengths': `${start(`Content-Length: 0\r\nContent-Length: ${inner.length}\r\n`)}${inner}`,
      'list of lengths': `${start(`Content-Length: 0, ${inner.length}\r\n`)}${inner}`,
      'signed length': `${start(`Content-Length: +0\r\n`)}${inner}`,
      'hexadecimal length': `${start(`Content-Length: 0x0\r\n`)}${inner}`,
      'obsolete folding': `${start(`X: a\r\n Content-Length: ${inner.length}\r\nContent-Length: 0\r\n`)}${inner}`,
      'space before the colon': `${start(`Content-Length : 0\r\nTransfer-Encoding : chunked\r\n`)}${chunked}`,
      'unknown encoding': `${start(`Transfer-Encoding: xchunked\r\n`)}${chunked}`,
      'two encodings': `${start(`Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n`)}${chunked}`,
      'tab in the encoding': `${start(`Transfer-Encoding:\tchunked, identity\r\n`)}${chunked}`,
      'long chunk size': `${start('Transfer-Encoding: chunked\r\n')}${'F'.repeat(17)}1\r\na\r\n0\r\n\r\n${inner}`,
      'negative chunk size': `${start('Transfer-Encoding: chunked\r\n')}-1\r\n\r\n${inner}`,
      'bare line feeds': `${start('').replaceAll('\r\n', '\n')}${inner}`,
      'NUL in a header': `${start(`X: a\0b\r\nContent-Length: 0\r\n`)}${inner}`,
    }
    const valid = await exchange(target, target.url, `${start('Content-Length: 2\r\n')}{}${inner}`, /"gitVersion"/)
    control(/"gitVersion"/.test(valid), 'a second request after a valid one is not answered')
    const gained: string[] = []
    for (const [name, bytes] of Object.entries(ambiguous)) {
      const answer = await exchange(target, target.url, bytes)
      // The inner request is answered, so two servers would disagree about where the first one ends.
      if (/"gitVersion"/.test(answer)) gained.push(`${name}: the inner request was answered`)
      if (/^HTTP\/1.1 5/m.test(answer)) gained.push(`${name}: ${answer.slice(0, 40)}`)
    }
    return gained
  },
}

const connectionState: Attack = {
  name: 'credential-of-another-request',
  actor: 'account',
  promise: 'Anonymous access',
  async attempt(target, control) {
    const get = (path: string, token?: string) =>
      `GET ${path} HTTP/1.1\r\nHost: x\r\n${token ? `Authorization: Bearer ${token}\r\n` : ''}\r\n`
    const victim = `/api/v1/namespaces/${victimNamespace}/secrets/login`
    // On one connection, pipelined: the credential of a request is not that of the next one.
    const answer = await exchange(
      target,
      target.url,
      get('/version', target.operatorToken) +
        get(victim) +
        get(victim, target.authorToken) +
        get(`${victim}?x`, `${target.authorToken} ${target.operatorToken}`),
    )
    const allowed = await exchange(target, target.url, get('/version') + get(victim, target.operatorToken), /"password":"[^"]+"/)
    control(target.secretsIn(allowed).length > 0, 'the operator does not read the Secret')
    return target.secretsIn(answer)
  },
}

/** Connections on which nothing is sent: the client needs no time for handshakes, and each costs the server a descriptor. */
const openConnections = async (address: string, count: number): Promise<Socket[]> => {
  const { hostname, port } = new URL(address)
  const sockets = Array.from({ length: count }, () => connectTcp(Number(port), hostname).on('error', () => {}))
  const isSettled = (socket: Socket) => new Promise<void>(resolve => socket.once('connect', resolve).once('close', () => resolve()))
  // Those beyond the server's limit are not accepted, and wait.
  await Promise.race([Promise.all(sockets.map(isSettled)), sleep(5_000)])
  return sockets
}

const connections: Attack = {
  name: 'many-connections',
  actor: 'anonymous',
  promise: 'Availability',
  slow: true,
  async attempt(target, control) {
    const gained: string[] = []
    for (const address of [target.url, target.httpUrl]) {
      const sockets = await openConnections(address, 2_600)
      try {
        const open = sockets.filter(({ readyState }) => readyState === 'open').length
        control(open > 500, `${open} connections are open`)
        const startedAt = performance.now()
        const health = await Promise.race([
          target.send('GET', '/healthz').then(
            ({ status }) => status,
            () => 0,
          ),
          new Promise<number>(resolve => setTimeout(() => resolve(-1), 5_000)),
        ])
        const ms = performance.now() - startedAt
        if (health !== 200 || ms > 1_000)
          gained.push(`2,600 connections to ${new URL(address).protocol}: /healthz ${health} after ${Math.round(ms)} ms`)
        const { status } = await target
          .send('GET', `/api/v1/namespaces/${attackerNamespace}/configmaps`, { token: target.authorToken })
          .catch(() => ({ status: 0 }))
        if (status !== 200) gained.push(`2,600 connections to ${new URL(address).protocol}: a request of a user is answered with ${status}`)
      } finally {
        for (const socket of sockets) socket.destroy()
      }
    }
    if (!target.isRunning) gained.push('ended oarlock up')
    return gained
  },
}

const joinFlood: Attack = {
  name: 'wrong-join-tokens',
  actor: 'anonymous',
  promise: 'Availability',
  slow: true,
  async attempt(target, control) {
    const wrong = `oarlock1.${'a'.repeat(10)}.${'b'.repeat(43)}.${'c'.repeat(43)}`
    let isOver = false
    let refused = 0
    const flood = Array.from({ length: 60 }, async () => {
      while (!isOver) {
        const { status } = await target.send('POST', '/join', { body: { token: wrong } }).catch(() => ({ status: 0 }))
        if (status === 401 || status === 403) refused++
      }
    })
    try {
      const gained: string[] = []
      for (let i = 0; i < 10; i++) {
        const startedAt = performance.now()
        const { status } = await target.send('GET', `/api/v1/namespaces/${attackerNamespace}/configmaps`, { token: target.authorToken })
        const ms = Math.round(performance.now() - startedAt)
        if (status !== 200 || ms > 2_000) gained.push(`a request of a user: ${status} after ${ms} ms`)
      }
      return gained
    } finally {
      isOver = true
      await Promise.all(flood)
      control(refused > 0, 'no join token was looked up')
    }
  },
}

const costlyObjects: Attack = {
  name: 'costly-objects',
  actor: 'account',
  promise: 'Availability',
  slow: true,
  async attempt(target, control) {
    const path = `/api/v1/namespaces/${attackerNamespace}/configmaps`
    const data = Object.fromEntries(Array.from({ length: 45_000 }, (_, index) => [`k${index}`, 'v']))
    const aliases = Array.from(
      { length: 28 },
      (_, index) => `${String.fromCharCode(97 + index)}: &${index + 1} [${Array.from({ length: 9 }, () => `*${index || 1}`).join(',')}]`,
    )
    const yaml = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nx: &1 [a]\n${aliases.join('\n')}\n`
    const nested = `{a: ${'['.repeat(70_000)}`
    const quotes = `a: "${'\\u0041'.repeat(20_000)}\n${'? '.repeat(30_000)}`
    const small = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'small' }, data: { a: 'b' } }
    const { status: accepted } = await target.send('POST', `${path}?dryRun=All`, { token: target.authorToken, body: small })
    control(accepted === 201, `a small object is answered with ${accepted}`)
    const bodies: [string, string][] = [
      ['application/json', JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'costly' }, data })],
      ...[yaml, nested, quotes].map((text): [string, string] => ['application/yaml', text]),
    ]
    let isOver = false
    let slowest = 0
    const other = (async () => {
      while (!isOver) {
        const startedAt = performance.now()
        await target.send('GET', '/healthz')
        slowest = Math.max(slowest, performance.now() - startedAt)
      }
    })()
    for (const [contentType, body] of bodies)
      await target.send('POST', `${path}?dryRun=All`, { token: target.authorToken, contentType, body }).catch(() => {})
    isOver = true
    await other
    return slowest > 1_500 ? [`another client waited ${Math.round(slowest)} ms`] : []
  },
}

const nestedKeys: Attack = {
  name: 'yaml-with-nested-keys',
  actor: 'account',
  promise: 'Availability',
  async attempt(target, control) {
    // No permission is needed to ask for one's own.
    const review = 'apiVersion: authorization.k8s.io/v1\nkind: SelfSubjectAccessReview\nspec:\n'
    const send = (spec: string) =>
      target.send('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
        token: target.outsiderToken,
        contentType: 'application/yaml',
        body: review + spec,
      })
    const { status } = await send('  nonResourceAttributes: {path: /version, verb: get}\n')
    control(status === 201, `a review without such keys is answered with ${status}`)
    const startedAt = performance.now()
    await Promise.all([330, 900, 2_000].map(count => send(`${'  ? '.repeat(count)}x`).catch(() => {})))
    await target.send('GET', '/healthz')
    const ms = Math.round(performance.now() - startedAt)
    return ms > 5_000 ? [`/healthz is answered after ${ms} ms`] : []
  },
}

export const httpAttacks: readonly Attack[] = [
  rebinding,
  crossSite,
  smuggling,
  connectionState,
  connections,
  joinFlood,
  costlyObjects,
  nestedKeys,
]
