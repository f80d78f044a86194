import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'

/** The TCP ports on which a process or one of its descendants listens, on any address. Linux only. */
export function listeningPorts(pid: number): number[] {
  const portsByInode = new Map<string, number>()
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6'])
    for (const line of readText(table).split('\n').slice(1)) {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/)
      if (state === listenState) portsByInode.set(inode, Number.parseInt(local.slice(local.lastIndexOf(':') + 1), 16))
    }
  const inodes = [pid, ...descendantsOf(pid)].flatMap(socketsOf)
  return [...new Set(inodes.flatMap(inode => portsByInode.get(inode) ?? []))].sort((a, b) => a - b)
}

const listenState = '0A'

function descendantsOf(pid: number): number[] {
  const children = readdirSync('/proc').filter(name => /^\d+$/.test(name) && parentOf(name) === pid)
  return children.flatMap(child => [Number(child), ...descendantsOf(Number(child))])
}

function parentOf(pid: string): number | undefined {
  return Number(/^PPid:\s+(\d+)/m.exec(readText(`/proc/${pid}/status`))?.[1])
}

function socketsOf(pid: number): string[] {
  const directory = `/proc/${pid}/fd`
  return listDirectory(directory).flatMap(name => /^socket:\[(\d+)\]$/.exec(readLink(`${directory}/${name}`))?.[1] ?? [])
}

/** A process may end meanwhile. */
const orElse = <T>(read: () => T, fallback: T): T => {
  try {
    return read()
  } catch {
    return fallback
  }
}
const readText = (path: string) => orElse(() => readFileSync(path, 'utf8'), '')
const readLink = (path: string) => orElse(() => readlinkSync(path), '')
const listDirectory = (path: string) => orElse(() => readdirSync(path), [])

export type PortResponse = { readonly status: number; readonly text: string }

/** The response of a listener on loopback; undefined if it does not speak this protocol. */
export function getFrom(
  scheme: 'http' | 'https',
  port: number,
  path: string,
  { method = 'GET', headers = {} }: { method?: string; headers?: Record<string, string> } = {},
): Promise<PortResponse | undefined> {
  return new Promise(resolve => {
    const send = scheme === 'http' ? httpRequest : httpsRequest
    const options = { host: '127.0.0.1', port, path, method, headers, rejectUnauthorized: false, agent: false }
    const sent = send(options, response => {
      let text = ''
      response.setEncoding('utf8').on('data', chunk => (text += chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
      response.on('error', () => resolve(undefined))
    })
    sent.on('error', () => resolve(undefined))
    sent.end()
  })
}

/** What a listener may answer without a credential. The certificate authority is what a join token pins. */
const publicPaths = ['/healthz', '/livez', '/readyz', '/startupz', '/version', '/join/ca']

/** Paths that some listener serves, and some that servers often have. */
const paths = (namespace: string, stack: string) => [
  ...publicPaths,
  ...['/', '/?token=wrong', '/index.html', '/metrics', '/queue', '/configz', '/debug/pprof/', '/logs', '/backup', '/join'],
  ...['/api', '/apis', '/api/v1/namespaces', '/apis/oarlock.dev/v1alpha1/stacks', '/openapi/v2', '/openapi/v3'],
  ...['/.well-known/openid-configuration', '/openid/v1/jwks', '/readyz/verbose', '/healthz/../metrics'],
  ...['/console/api/session', '/console/api/stream', '/console/api/links', '/console/api/plans/a/b'],
  ...[`/state/${namespace}/${stack}`, `/state/${namespace}/${stack}/versions`, `/logs/${namespace}/${stack}-1`],
]

/**
 * What the listeners of these ports answer without a credential although only health, version and the certificate authority are public: `PORT METHOD PATH STATUS`. A response of
 * any status that contains the name of the Stack is one too, and so is a port that speaks neither HTTP nor HTTPS, whose content is unknown.
 */
export async function openWithoutCredential(ports: readonly number[], namespace: string, stack: string): Promise<string[]> {
  const found: string[] = []
  for (const port of ports) {
    const scheme = (await getFrom('https', port, '/livez')) ? 'https' : 'http'
    if (!(await getFrom(scheme, port, '/livez'))) found.push(`${port} speaks neither HTTP nor HTTPS`)
    const requests = paths(namespace, stack).flatMap(path => ['GET', 'POST'].map(method => ({ method, path })))
    for (const { method, path } of requests) {
      const response = await getFrom(scheme, port, path, { method })
      const isPublic = publicPaths.includes(path) && method === 'GET'
      // `/` redirects to the console.
      const isAnswered = response !== undefined && response.status < 400 && response.status !== 302 && !isPublic
      const text = response?.text.replaceAll(path, '') ?? ''
      if (isAnswered || text.includes(stack)) found.push(`${port} ${method} ${path} ${response?.status} ${response?.text.slice(0, 80)}`)
    }
  }
  return found
}
