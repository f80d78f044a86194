/** `bin/oarlock`: which Node it runs, and that it becomes that process. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'

const repository = join(import.meta.dirname, '..')
const directory = mkdtempSync(join(tmpdir(), 'oarlock-launcher-'))
after(() => rmSync(directory, { recursive: true, force: true }))

/** A checkout whose command line reports how it was started; `exit N` exits with N, and `wait` waits for a signal. */
function makeCheckout(name: string, { pinned }: { pinned: boolean }): string {
  const root = join(directory, name)
  mkdirSync(join(root, 'src', 'cli'), { recursive: true })
  mkdirSync(join(root, 'node_modules'))
  cpSync(join(repository, 'bin'), join(root, 'bin'), { recursive: true })
  writeFileSync(join(root, 'package.json'), '{ "type": "module" }')
  if (pinned) {
    mkdirSync(join(root, 'node_modules', 'node', 'bin'), { recursive: true })
    symlinkSync(process.execPath, join(root, 'node_modules', 'node', 'bin', 'node'))
  }
  writeFileSync(
    join(root, 'src', 'cli', 'main.ts'),
    `const args: string[] = process.argv.slice(2)
process.emitWarning('sqlite is experimental', 'ExperimentalWarning')
process.emitWarning('old', 'DeprecationWarning')
if (args[0] === 'wait') {
  setInterval(() => {}, 1_000)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => { console.log(signal); process.exit(7) })
}
console.log(JSON.stringify({ pid: process.pid, args, ranBy: process.env.RAN_BY }))
if (args[0] === 'exit') process.exit(Number(args[1]))`,
  )
  return root
}

/** A directory for PATH with a `node` that runs the real one after the shell commands \`before\`. */
function makePath(name: string, before: string, ...flags: string[]): string {
  const path = join(directory, name)
  mkdirSync(path)
  const quoted = [process.execPath, ...flags].map(text => `'${text}'`).join(' ')
  writeFileSync(join(path, 'node'), `#!/bin/sh\n${before}\nexec ${quoted} "$@"\n`)
  chmodSync(join(path, 'node'), 0o755)
  return path
}

function start(launcher: string, args: string[], { path = process.env.PATH, cwd = directory } = {}) {
  const { NODE_NO_WARNINGS: _, RAN_BY: __, NODE_OPTIONS: ___, ...env } = process.env
  const child = spawn(launcher, args, { cwd, env: { ...env, PATH: path }, stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', text => (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', text => (output.stderr += text))
  const ended = once(child, 'close').then(([code, signal]) => ({ code: code as number | null, signal, ...output }))
  return { child, ended, output }
}

const checkout = makeCheckout('a checkout', { pinned: true })
const unpinned = makeCheckout('unpinned', { pinned: false })
const launcher = join(checkout, 'bin', 'oarlock')
const otherNode = makePath('other node', 'RAN_BY=path; export RAN_BY')

test('becomes the process that was started: same id, arguments, exit code, and no warning of Node', async () => {
  const { child, ended } = start(launcher, ['exit', '3', 'two words', '', '*'])
  const { code, stdout, stderr } = await ended
  deepEqual([code, stderr], [3, ''])
  deepEqual(JSON.parse(stdout), { pid: child.pid, args: ['exit', '3', 'two words', '', '*'] })
})

test('runs the pinned Node, whatever node is on PATH', async () => {
  equal(JSON.parse((await start(launcher, [], { path: otherNode }).ended).stdout).ranBy, undefined)
})

test('runs the node on PATH where none is pinned', async () => {
  const { stdout } = await start(join(unpinned, 'bin', 'oarlock'), [], { path: otherNode }).ended
  equal(JSON.parse(stdout).ranBy, 'path')
})

test('reports a node on PATH that is too old', async () => {
  const fake = join(directory, 'old-version.cjs')
  writeFileSync(
    fake,
    "Object.defineProperty(process.versions, 'node', { value: '20.1.0' }); Object.defineProperty(process, 'version', { value: 'v20.1.0' })",
  )
  const { code, stdout, stderr } = await start(join(unpinned, 'bin', 'oarlock'), [], { path: makePath('old node', ':', '--require', fake) })
    .ended
  deepEqual([code, stdout], [1, ''])
  match(stderr, /^oarlock: Node\.js v20\.1\.0 is too old, 24 or newer is required: .*\n$/)
})

test('reports that there is no Node at all', async () => {
  const { code, stderr } = await start(join(unpinned, 'bin', 'oarlock'), [], { path: join(directory, 'nothing') }).ended
  equal(code, 1)
  match(stderr, /^oarlock: Node\.js was not found: install Node\.js 24 or newer/)
})

test('follows symbolic links, relative and absolute, from any working directory', async () => {
  const links = join(directory, 'node modules', '.bin')
  mkdirSync(links, { recursive: true })
  symlinkSync(join('..', '..', 'a checkout', 'bin', 'oarlock'), join(links, 'oarlock'))
  symlinkSync(join(links, 'oarlock'), join(directory, 'link'))
  for (const [path, cwd] of [
    [join(links, 'oarlock'), directory],
    ['./oarlock', links],
    ['./link', directory],
    ['./oarlock', join(checkout, 'bin')],
    ['bin/oarlock', checkout],
  ] as const) {
    const { code, stderr } = await start(path, ['exit', '5'], { cwd }).ended
    deepEqual([code, stderr], [5, ''], `${path} in ${cwd}`)
  }
})

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  test(`${signal} reaches the command`, async () => {
    const { child, ended, output } = start(launcher, ['wait'])
    while (!output.stdout.includes('\n')) await once(child.stdout, 'data')
    child.kill(signal)
    const { code, stdout } = await ended
    equal(code, 7)
    match(stdout, new RegExp(`\n${signal}\n`))
  })
}

test('a readlink and a node earlier on PATH do not decide which Node runs when a pinned one exists', async () => {
  const evil = join(directory, 'evil')
  mkdirSync(evil)
  for (const name of ['readlink', 'node']) {
    writeFileSync(join(evil, name), `#!/bin/sh\necho evil-${name} >&2\nexit 9\n`)
    chmodSync(join(evil, name), 0o755)
  }
  symlinkSync(join(checkout, 'bin', 'oarlock'), join(directory, 'linked'))
  const { code, stderr } = await start(join(directory, 'linked'), ['exit', '0'], { path: `${evil}:${process.env.PATH}` }).ended
  deepEqual([code, stderr], [0, ''])
})

test('links whose target starts with a dash or ends in a newline are followed exactly', async () => {
  for (const [index, name] of ['-o', 'oarlock\n'].entries()) {
    const folder = join(checkout, 'bin')
    cpSync(join(folder, 'oarlock'), join(folder, name))
    const link = join(folder, `link-${index}`)
    symlinkSync(name, link)
    const { code } = await start(link, ['exit', '5']).ended
    equal(code, 5)
    rmSync(join(folder, name))
    rmSync(link)
  }
})

test('an empty element of PATH does not run a node of the current directory', async () => {
  const here = makePath('here', 'echo from-here')
  const unpinned = makeCheckout('unpinned here', { pinned: false })
  const { code, stdout, stderr } = await start(join(unpinned, 'bin', 'oarlock'), ['exit', '0'], { path: ':/nonexistent', cwd: here }).ended
  equal(code, 1)
  equal(stdout, '')
  match(stderr, /Node\.js was not found/)
})
