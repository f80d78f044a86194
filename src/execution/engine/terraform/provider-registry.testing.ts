import { createHash } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { builtProvider, packageChecksum, packageOf, platform, type TestProvider } from './provider-mirror.testing.ts'

/** OpenTofu's own: only this one may serve packages without a signature, and only to OpenTofu. */
export const testRegistryHost = 'registry.opentofu.org'

export type TestRegistry = {
  /** Of an engine: selects this registry for {@link testRegistryHost}. */
  configuration: string
  /** The same as a network mirror for every registry, which has to use TLS. */
  mirrorConfiguration: string
  /** Requests for archives so far, by type and version, such as `time 0.14.2`. */
  downloads(): Record<string, number>
  /** Requests for the list of versions so far. */
  queries(): number
  /** Serves further versions. */
  add(provider: TestProvider): void
  close(): Promise<void>
}

export type TestRegistryOptions = {
  /** Default: `time` as scripts/build-providers.sh builds it. */
  providers?: readonly TestProvider[]
  /** Called before an archive is sent; `failed`: the registry does not find it. */
  beforeDownload?: () => unknown
  /** Of all connections together, for archives. Default: not limited. */
  bytesPerSecond?: number
  /** Default: no TLS. */
  certificate?: { key: string; cert: string }
}

const pieceBytes = 256 * 1024

/** A registry on the loopback interface, which counts what it is asked for. */
export async function startRegistry(options: TestRegistryOptions = {}): Promise<TestRegistry> {
  const served = (options.providers ?? [builtProvider('time')]).map(withArchive)
  const [os = '', arch = ''] = platform.split('_')
  const downloads: Record<string, number> = {}
  let queries = 0
  /** When all pieces that were sent are through. */
  let freeAtMs = 0
  const answer = (url: string, method: string | undefined): unknown => {
    for (const { type, version, archive, shasum, checksum } of served) {
      const prefix = `/v1/providers/hashicorp/${type}`
      const versions = served.filter(each => each.type === type)
      if (url === `${prefix}/versions`) {
        queries++
        return { versions: versions.map(each => ({ version: each.version, protocols: ['5.0'], platforms: [{ os, arch }] })) }
      }
      const filename = `terraform-provider-${type}_${version}_${platform}.zip`
      if (url === `${prefix}/${version}/download/${os}/${arch}`) {
        const sums = `/sums/${type}/${version}`
        const files = { download_url: `/archive/${type}/${version}`, shasums_url: sums, shasums_signature_url: sums }
        return { protocols: ['5.0'], os, arch, filename, shasum, ...files, signing_keys: { gpg_public_keys: [] } }
      }
      const mirrored = /^\/mirror\/[^/]+\/hashicorp\/([^/]+)\/([^/]+)\.json$/.exec(url)
      if (mirrored?.[1] === type && mirrored[2] === 'index') {
        queries++
        return { versions: Object.fromEntries(versions.map(each => [each.version, {}])) }
      }
      const mirroredArchive = { url: `/archive/${type}/${version}`, hashes: [checksum] }
      if (mirrored?.[1] === type && mirrored[2] === version) return { archives: { [platform]: mirroredArchive } }
      const other = `${'0'.repeat(64)}  terraform-provider-${type}_${version}_darwin_arm64.zip\n`
      if (url === `/sums/${type}/${version}`) return Buffer.from(`${shasum}  ${filename}\n${other}`)
      if (url !== `/archive/${type}/${version}`) continue
      const name = `${type} ${version}`
      // Terraform asks for the size first.
      if (method !== 'HEAD') downloads[name] = (downloads[name] ?? 0) + 1
      return archive
    }
    return undefined
  }
  const respond: RequestListener = async (request, response) => {
    const url = request.url ?? ''
    const body = answer(url, request.method)
    const isBinary = Buffer.isBuffer(body)
    if (url.startsWith('/archive') && (await options.beforeDownload?.()) === 'failed') {
      response.writeHead(404).end()
      return
    }
    response.writeHead(body === undefined ? 404 : 200, isBinary ? {} : { 'content-type': 'application/json' })
    if (isBinary && options.bytesPerSecond !== undefined) {
      for (let at = 0; at < body.byteLength && !response.destroyed; at += pieceBytes) {
        freeAtMs = Math.max(freeAtMs, performance.now()) + (1_000 * pieceBytes) / options.bytesPerSecond
        await delay(freeAtMs - performance.now())
        response.write(body.subarray(at, at + pieceBytes))
      }
      response.end()
    } else response.end(isBinary ? body : JSON.stringify(body))
  }
  const { certificate } = options
  const server = certificate ? createTlsServer(certificate, respond) : createServer(respond)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = `${certificate ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    configuration: `host "${testRegistryHost}" {\n  services = { "providers.v1" = "${address}/v1/providers/" }\n}\n`,
    mirrorConfiguration: `provider_installation {\n  network_mirror { url = "${address}/mirror/" }\n}\n`,
    downloads: () => ({ ...downloads }),
    queries: () => queries,
    add: provider => void served.push(withArchive(provider)),
    close: async () => {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

/** Computed once: requests of many engines are answered at the same time. */
function withArchive(provider: TestProvider) {
  const archive = packageOf(provider)
  return { ...provider, archive, shasum: createHash('sha256').update(archive).digest('hex'), checksum: packageChecksum(provider) }
}
