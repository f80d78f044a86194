/** `npm run partitions`: what it prints, and that what it writes for Prometheus reads the metrics of every process. */
import { equal, match, ok } from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Agent, fetch } from 'undici'
import { eventually } from './support/eventually.ts'
import { freePorts } from './support/free-ports.ts'

type Target = { readonly name: string; readonly url: string; readonly token: string; readonly ca: string | undefined }

describe('npm run partitions', { timeout: 240_000 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-example-partitions-'))
  let child: ChildProcess
  let output = ''
  let port = 0
  const start = async (...more: string[]) => {
    output = ''
    const script = join(import.meta.dirname, '..', 'examples', 'partitions', 'run.ts')
    const args = ['--port', String(port), '--data', directory, '--tenants', '2', '--resources', '2', '--workers', '1', '--hollow', '20']
    child = spawn(process.execPath, [script, ...args, ...more], { stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', text => (output += text))
    await eventually(() => /Ctrl-C stops everything/.test(output) || child.exitCode !== null, 'the fleet', 180_000)
  }
  const until = (text: string) => eventually(() => output.includes(text), text, 60_000)
  /** Of the process whose data directory this is. */
  const pidOf = (role: string) =>
    readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')
      .trim()
      .split(' ')
      .map(Number)
      .find(pid => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(role)) ?? 0
  before(async () => {
    ;[port = 0] = await freePorts(1)
    await start()
  })
  after(async () => {
    if (child?.exitCode === null) {
      child.kill('SIGTERM')
      await once(child, 'exit')
    }
    rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  })

  test('two Tenants run the sample fleet on different partitions', () => {
    match(output, /tenant-1 6\/6, tenant-2 6\/6/)
    for (const line of output.split('\n')) ok(!line.includes('undefined'), line)
  })

  test('Prometheus can read the metrics of every process', async () => {
    const targets = targetsOf(readFileSync(join(directory, 'prometheus.yaml'), 'utf8'))
    equal(
      targets.map(({ name }) => name).join(' '),
      'gateway home t1 t2 r1 r2 stores-t1 controller-t1 stores-t2 controller-t2 controller-home',
    )
    for (const { name, url, token, ca } of targets) {
      const agent = new Agent({ connect: { ca } })
      const response = await fetch(url, { dispatcher: agent, headers: { authorization: `Bearer ${token}` } })
      equal(response.status, 200, name)
      match(await response.text(), /^process_cpu_seconds_total /m, name)
      await agent.close()
    }
  })

  test('it starts a process again that fails, and one that has ended normally when it is asked to', async () => {
    process.kill(pidOf('controller-t1'), 'SIGKILL')
    await until('controller-t1 was ended by SIGKILL; starting it again in 1 s')
    await until('controller-t1 is started again')
    const [, home = ''] = /kill (\d+) .*home ends/.exec(output) ?? []
    equal(Number(home), pidOf('home'))
    process.kill(Number(home), 'SIGTERM')
    await until(`home has ended. Start it again with: kill -USR2 ${child.pid}`)
    child.kill('SIGUSR2')
    await until('home is started again')
    ok(pidOf('home') > 0)
  })

  test('it stops everything and exits with 0', async () => {
    child.kill('SIGINT')
    const [code] = (await once(child, 'exit')) as [number]
    equal(code, 0, output)
  })

  test('with --keep it continues with the data, and does not take what an earlier run has printed for its own', async () => {
    await start('--keep', '--once')
    if (child.exitCode === null) await once(child, 'exit')
    equal(child.exitCode, 0, output)
    match(output, /tenant-1 6\/6, tenant-2 6\/6/)
    for (const line of output.split('\n')) ok(line.includes(directory) || line.length <= 80, line)
  })
})

/** Of the file's own form: one job with one target each. */
function targetsOf(text: string): Target[] {
  return text
    .split(/^ {2}- job_name: /m)
    .slice(1)
    .map(job => {
      const read = (pattern: RegExp) => pattern.exec(job)?.[1]
      const ca = read(/ca_file: "([^"]+)"/)
      return {
        name: read(/^(\S+)/) ?? '',
        url: `${ca === undefined ? 'http' : 'https'}://${read(/targets: \["([^"]+)"\]/)}/metrics`,
        token: readFileSync(read(/credentials_file: "([^"]+)"/) ?? '', 'utf8').trim(),
        ca: ca === undefined ? undefined : readFileSync(ca, 'utf8'),
      }
    })
}
