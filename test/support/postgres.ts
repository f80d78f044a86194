/** A PostgreSQL server of Debian in a temporary directory, reached over a port of the loopback interface. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, chownSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from './free-ports.ts'

const binaries = globSync('/usr/lib/postgresql/*/bin').sort().at(-1)

/** Why no server can be started here; undefined if one can. */
export const postgresMissing: string | undefined = binaries ? undefined : 'PostgreSQL was not found: apt-get install postgresql'

/** PostgreSQL does not run as root. */
function account(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {}
  const { stdout } = spawnSync('getent', ['passwd', 'postgres'], { encoding: 'utf8' })
  const [, , uid, gid] = stdout.split(':')
  return { uid: Number(uid), gid: Number(gid) }
}

export class Postgres {
  readonly url: string
  readonly #directory: string
  readonly #process: ChildProcess
  readonly #exited: Promise<unknown>

  private constructor(url: string, directory: string, process: ChildProcess) {
    this.url = url
    this.#directory = directory
    this.#process = process
    this.#exited = once(process, 'exit')
  }

  static async start(): Promise<Postgres> {
    const directory = mkdtempSync(join(tmpdir(), 'oarlock-postgres-'))
    const user = account()
    const password = randomBytes(12).toString('hex')
    writeFileSync(join(directory, 'password'), password)
    chmodSync(directory, 0o700)
    if (user.uid !== undefined && user.gid !== undefined)
      for (const path of [directory, join(directory, 'password')]) chownSync(path, user.uid, user.gid)
    const data = join(directory, 'data')
    const options = [
      '-D',
      data,
      '-U',
      'postgres',
      '--auth=scram-sha-256',
      `--pwfile=${join(directory, 'password')}`,
      '--no-sync',
      '-E',
      'UTF8',
    ]
    const made = spawnSync(join(binaries as string, 'initdb'), options, { ...user, encoding: 'utf8', cwd: directory, env: { LC_ALL: 'C' } })
    if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`)
    const [port] = await freePorts(1)
    const settings = ['listen_addresses=127.0.0.1', `port=${port}`, 'unix_socket_directories=', 'fsync=off', 'max_connections=40']
    const child = spawn(join(binaries as string, 'postgres'), ['-D', data, ...settings.flatMap(setting => ['-c', setting])], {
      ...user,
      cwd: directory,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const server = new Postgres(`postgresql://postgres:${password}@127.0.0.1:${port}/postgres`, directory, child)
    let log = ''
    const ready = Promise.withResolvers<void>()
    child.stderr?.setEncoding('utf8').on('data', text => {
      log += text
      if (log.includes('database system is ready to accept connections')) ready.resolve()
    })
    void server.#exited.then(() => ready.reject(new Error(`postgres ended: ${log}`)))
    await ready.promise
    return server
  }

  async stop(): Promise<void> {
    this.#process.kill('SIGINT')
    await this.#exited
    rmSync(this.#directory, { recursive: true, force: true })
  }
}
