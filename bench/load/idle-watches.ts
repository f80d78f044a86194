/**
 * Opens watches and holds them: reads one `IdleOrder` as JSON from argv[2], prints `open`, and holds until its input ends.
 * Over HTTP/2 many share one connection, as with client-go; over HTTP/1.1 each has its own.
 */
import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import { collection } from './generator.ts'
import { type Endpoint, RawConnection } from './raw-connection.ts'

export type IdleOrder = { endpoint: Endpoint; namespace: string; watches: number /** 0: HTTP/1.1, each its own. */; perConnection: number }

const atOnce = 50

async function openSession({ host, port, ca }: Endpoint): Promise<ClientHttp2Session> {
  const session = connect(`https://${host}:${port}`, { servername: 'localhost', ...(ca ? { ca } : { rejectUnauthorized: false }) })
  await once(session, 'remoteSettings')
  return session
}

async function watch(session: ClientHttp2Session, path: string, token: string): Promise<void> {
  const stream = session.request({ ':path': path, authorization: `Bearer ${token}`, accept: 'application/json' })
  const [headers] = await once(stream, 'response')
  if (headers[':status'] !== 200) throw new Error(`a watch was answered with ${headers[':status']}`)
  stream.resume()
}

async function main({ endpoint, namespace, watches, perConnection }: IdleOrder): Promise<void> {
  const path = `${collection(namespace)}?watch=1&allowWatchBookmarks=true&resourceVersion=`
  const first = await RawConnection.open(endpoint)
  const list = await first.request('GET', `${collection(namespace)}?limit=1`)
  const from = path + JSON.parse(list.body.toString()).metadata.resourceVersion
  if (perConnection === 0) {
    for (let at = 0; at < watches; at += atOnce) {
      const opened = await Promise.all(Array.from({ length: Math.min(atOnce, watches - at) }, () => RawConnection.open(endpoint)))
      await Promise.all(opened.map(connection => new Promise<void>(resolve => connection.stream(from, () => resolve()))))
    }
  } else {
    for (let at = 0; at < watches; at += perConnection) {
      const session = await openSession(endpoint)
      await Promise.all(Array.from({ length: Math.min(perConnection, watches - at) }, () => watch(session, from, endpoint.token)))
    }
  }
  console.log('open')
  await once(process.stdin.resume(), 'end')
}

if (import.meta.main) {
  await main(JSON.parse(process.argv[2] as string))
  process.exit()
}
