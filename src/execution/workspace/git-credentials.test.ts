import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { makeCertificate } from '../../../test/support/make-certificate.ts'
import { skipWithout } from '../../../test/support/run-program.ts'
import { fetchSource, type GitCredentials, resolveRevision, SourceError } from './index.ts'

const commit = 'c'.repeat(40)

/** A bare repository that a web server can serve as files. Returns its commit. */
function createRepository(path: string, files: Record<string, string>): string {
  const work = `${path}-work`
  mkdirSync(work, { recursive: true })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(work, name), text)
  const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null' }
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], { cwd: work, env, encoding: 'utf8' }).trim()
  git('init', '-q', '-b', 'main')
  git('add', '-A')
  git('commit', '-q', '-m', 'change')
  git('clone', '-q', '--bare', work, path)
  git(`--git-dir=${path}`, 'update-server-info')
  return git('rev-parse', 'HEAD')
}

function serveFile(path: string, response: ServerResponse): void {
  try {
    const content = readFileSync(path)
    response.writeHead(200).end(content)
  } catch {
    response.writeHead(404).end()
  }
}

describe('credentials over https', { skip: skipWithout('openssl') }, () => {
  const base = mkdtempSync(join(tmpdir(), 'oarlock-https-'))
  const cacheDir = join(base, 'cache')
  const seen: { host: string; authorization: string | undefined }[] = []
  const originalCaInfo = process.env.GIT_SSL_CAINFO
  let server: Server
  let port = 0

  before(async () => {
    const { path, cert, key } = makeCertificate(base)
    process.env.GIT_SSL_CAINFO = path
    server = createServer({ key, cert }, (request: IncomingMessage, response) => {
      const { host = '', authorization } = request.headers
      const isAda = authorization === `Basic ${Buffer.from('ada:s3cret-token').toString('base64')}`
      seen.push({ host, authorization })
      if (request.url?.startsWith('/moved') && host.startsWith('127.')) {
        response.writeHead(302, { location: `https://localhost:${port}${request.url}` }).end()
      } else if (isAda && request.url?.startsWith('/private.git')) {
        serveFile(join(base, new URL(request.url, 'https://x').pathname), response)
      } else if (isAda && request.url?.startsWith('/good')) {
        response.writeHead(200, { 'content-type': 'application/x-git-upload-pack-advertisement' })
        const line = (text: string) => (text.length + 4).toString(16).padStart(4, '0') + text
        response.end(`${line('# service=git-upload-pack\n')}0000${line(`${commit} HEAD\0\n`)}${line(`${commit} refs/heads/main\n`)}0000`)
      } else response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end('no s3cret-token')
    })
    await once(server.listen(0, '0.0.0.0'), 'listening')
    port = (server.address() as AddressInfo).port
  })
  after(() => {
    if (originalCaInfo === undefined) delete process.env.GIT_SSL_CAINFO
    else process.env.GIT_SSL_CAINFO = originalCaInfo
    server.closeAllConnections()
    server.close()
    rmSync(base, { recursive: true, force: true })
  })

  const resolve = (path: string, credentials?: GitCredentials) =>
    resolveRevision(
      { git: { url: `https://127.0.0.1:${port}/${path}`, branch: 'main' } },
      { allowPaths: [], signal: new AbortController().signal, cacheDir, credentials },
    )
  const ada = { username: 'ada', password: 's3cret-token' }

  async function rejected(action: Promise<unknown>): Promise<void> {
    await assert.rejects(action, error => {
      assert.ok(error instanceof SourceError)
      assert.equal(error.reason, 'SourceAuthFailed', error.message)
      assert.match(error.message, /check the Secret named in spec\.source\.git\.secretRef/)
      assert.doesNotMatch(error.message, /s3cret/, 'invariant 9')
      return true
    })
  }

  test('git gets the credentials when the server asks for them', async () => assert.equal(await resolve('good', ada), commit))
  test('missing and wrong credentials fail with an error that names the remedy and no secret', async () => {
    await rejected(resolve('good'))
    await rejected(resolve('good', { ...ada, password: 's3cret-but-wrong' }))
  })
  test('a credential helper does not run, even if the cache is in a repository that names one', async () => {
    const outer = join(base, 'outer')
    const used = join(base, 'helper-used')
    execFileSync('git', ['init', '-q', outer])
    writeFileSync(join(base, 'helper'), `#!/bin/sh\n: > ${used}\nprintf 'username=ada\\npassword=s3cret-token\\n'\n`, { mode: 0o755 })
    execFileSync('git', ['config', 'credential.helper', join(base, 'helper')], { cwd: outer })
    const url = `https://127.0.0.1:${port}/good`
    const options = { allowPaths: [], signal: new AbortController().signal, cacheDir: join(outer, 'cache') }
    const plain = await promisify(execFile)('git', ['ls-remote', url], { cwd: outer })
    assert.match(plain.stdout, new RegExp(commit))
    assert.ok(existsSync(used), 'plain git did not run it')
    rmSync(used)
    await rejected(resolveRevision({ git: { url, branch: 'main' } }, options))
    assert.equal(existsSync(used), false)
  })
  test('a repository that one Stack has fetched is not served from the cache to a Stack without its credentials', async () => {
    const commit = createRepository(join(base, 'private.git'), { 'main.tf': 'private' })
    let count = 0
    const fetch = async (credentials?: GitCredentials) => {
      const options = { allowPaths: [], signal: new AbortController().signal, cacheDir, credentials }
      const source = { git: { url: `https://127.0.0.1:${port}/private.git`, commit } }
      const { directory } = await fetchSource(source, commit, join(base, 'fetched', `${++count}`), options)
      return readFileSync(join(directory, 'main.tf'), 'utf8')
    }
    assert.equal(await fetch(ada), 'private')
    await rejected(fetch())
    await rejected(fetch({ username: 'bob', password: 's3cret-of-bob' }))
    await rejected(fetch({ sshPrivateKey: 's3cret-token' }))
    seen.length = 0
    assert.equal(await fetch(ada), 'private')
    assert.deepEqual(seen, [], 'the owner of the credentials is served from the cache')
    rmSync(join(cacheDir, 'git'), { recursive: true })
  })
  test('git sends no password to another host after a redirect', async () => {
    seen.length = 0
    await rejected(resolve('moved', ada))
    assert.ok(seen.some(({ host }) => host.startsWith('localhost')))
    assert.deepEqual(
      seen.filter(({ host, authorization }) => host.startsWith('localhost') && authorization),
      [],
    )
  })
  test('no credentials remain on disk', () => assert.deepEqual(readdirSync(cacheDir), []))
})
