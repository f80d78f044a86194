import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'

type Manifest = { readonly files: Readonly<Record<string, { readonly type: string }>> }

const pageHeaders = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const

/** The files of the page, as `scripts/build-console.mjs` has built them: those under `assets/` have a hash in their names, and never change. */
export class Assets {
  readonly #directory: string
  #manifest: Promise<Manifest> | undefined
  readonly #bodies = new Map<string, Promise<Buffer>>()

  constructor(directory: string) {
    this.#directory = directory
  }

  /** Sends the file, or the page itself, which reads its own path. @param path below {@link pagePath}, without a leading slash. */
  async send(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const manifest = await this.#readManifest()
    if (!manifest) return sendText(response, 503, `the console is not built: run "npm run build" (${this.#directory} has no manifest.json)`)
    const isAsset = path.startsWith('assets/')
    const name = isAsset ? path : 'index.html'
    // Own names only: a path is no way out of the directory.
    const file = Object.hasOwn(manifest.files, name) ? manifest.files[name] : undefined
    if (!file) return sendText(response, 404, 'not found')
    const encodings = String(request.headers['accept-encoding'] ?? '')
    const encoding = /\bbr\b/.test(encodings) ? 'br' : /\bgzip\b/.test(encodings) ? 'gzip' : undefined
    const body = await this.#read(encoding === undefined ? name : `${name}.${encoding === 'br' ? 'br' : 'gz'}`)
    response.writeHead(200, {
      ...pageHeaders,
      'Content-Type': file.type,
      'Content-Length': body.length,
      'Cache-Control': isAsset ? 'public, max-age=31536000, immutable' : 'no-cache',
      Vary: 'Accept-Encoding',
      ...(encoding && { 'Content-Encoding': encoding }),
    })
    response.end(request.method === 'HEAD' ? undefined : body)
  }

  #readManifest(): Promise<Manifest | undefined> {
    this.#manifest ??= readFile(join(this.#directory, 'manifest.json'), 'utf8').then(text => JSON.parse(text) as Manifest)
    return this.#manifest.catch(() => {
      // Built meanwhile: the next request finds it.
      this.#manifest = undefined
      return undefined
    })
  }

  #read(name: string): Promise<Buffer> {
    const known = this.#bodies.get(name)
    if (known) return known
    const body = readFile(join(this.#directory, name))
    this.#bodies.set(name, body)
    body.catch(() => this.#bodies.delete(name))
    return body
  }
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { ...pageHeaders, 'Content-Type': 'text/plain; charset=utf-8' }).end(`${text}\n`)
}
