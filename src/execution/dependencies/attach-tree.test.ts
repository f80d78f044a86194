import { deepEqual, equal, match, rejects, throws } from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { IsolationLevel, Network } from '../../api/index.ts'
import { sha256 } from '../../kubernetes/util/index.ts'
import { killRunProcesses } from '../workspace/index.ts'
import { base, networkProblem, open, skip } from '../workspace/isolation/isolated-run.testing.ts'
import { attachTree, linkChecker } from './attach-tree.ts'
import { DependencyStore } from './store/dependency-store.ts'

const isRoot = process.getuid?.() === 0
let stores = 0

async function openStore() {
  const directory = join(base, `store-${stores++}`)
  return new DependencyStore({ directory, domain: 'test' })
}

const place = { base: 'source', path: 'node_modules' } as const

/** A Run whose program executes `install` and leaves its node_modules to the store. */
async function installed(t: TestContext, level: IsolationLevel, install: string, { network = 'Host' as Network, name = 'x' } = {}) {
  const store = await openStore()
  const run = await open(t, level, { network })
  const { exitCode, lines } = await run.run(install)
  equal(exitCode, 0, lines.join('\n'))
  await killRunProcesses(run.runUid)
  const paths = { sourceRoot: run.directory.work, scratch: run.directory.scratch }
  const tree = await store.add({
    ...{ digest: sha256(name), inputs: [], manager: 'npm', runName: 'r', installSeconds: 1, files: run.directory.files, produced: [] },
    transfer: level === 'Sandbox' && network !== 'Host' ? 'Move' : 'Copy',
    trees: [{ place, path: join(run.directory.work, 'node_modules'), checkLink: linkChecker(paths, place) }],
  })
  t.after(tree.release)
  const file = join(DependencyStore.treePath(tree, 0), 'a/index.js')
  return { store, run, tree, content: () => readFileSync(file, 'utf8') }
}

const attached = async (t: TestContext, level: IsolationLevel, tree: Awaited<ReturnType<typeof installed>>['tree']) => {
  const run = await open(t, level)
  const { directory, isolation } = run
  const way = await attachTree(tree, { sourceRoot: directory.work, scratch: directory.scratch, files: directory.files, isolation })
  return { ...run, way }
}

const install = 'mkdir -p node_modules/a && echo original > node_modules/a/index.js && ln -s ../shared node_modules/shared'

/** Each of them changes the tree, or what is shown in its place, if it succeeds. */
const attacks = [
  'echo changed > node_modules/a/index.js',
  'echo changed >> node_modules/a/index.js',
  'rm -rf node_modules/a',
  'mv node_modules/a node_modules/b',
  'touch node_modules/new',
  'chmod 0777 node_modules/a/index.js && echo changed > node_modules/a/index.js',
  'truncate -s 0 node_modules/a/index.js',
  'ln node_modules/a/index.js "$TMPDIR/link" && echo changed > "$TMPDIR/link"',
  'ln node_modules/a/index.js ./link && echo changed > ./link',
  'mount -o remount,rw,bind node_modules && echo changed > node_modules/a/index.js',
  'umount node_modules && test ! -e node_modules/a',
  'unshare --mount --map-root-user sh -c "mount -o remount,rw,bind node_modules && echo changed > node_modules/a/index.js"',
  "python3 -c \"import os; fd = os.open('node_modules/a/index.js', os.O_RDONLY); os.write(os.open(f'/proc/self/fd/{fd}', os.O_WRONLY), b'changed')\"",
  'python3 -c "import os; os.utime(\'node_modules/a/index.js\', (1, 1))"',
  'mv node_modules moved',
]

test('a sandboxed Run gets a tree as a read-only mount, and cannot change it in any way', { skip }, async t => {
  const { tree, content } = await installed(t, 'Sandbox', install)
  const { run, way } = await attached(t, 'Sandbox', tree)
  equal(way, 'BindMount')
  deepEqual((await run('cat node_modules/a/index.js')).lines, ['original'])
  for (const attack of attacks) {
    const { exitCode } = await run(`export PATH=/usr/sbin:/usr/bin:/bin; (${attack}) 2>/dev/null`)
    equal(exitCode === 0, false, attack)
    equal(content(), 'original\n', attack)
  }
  deepEqual((await run('cat node_modules/a/index.js')).lines, ['original'])
})

test('links of a tree to local packages lead to the source of the Run that uses it', { skip }, async t => {
  const { tree } = await installed(t, 'Sandbox', install)
  for (const text of ['one', 'two']) {
    const { run, directory } = await attached(t, 'Sandbox', tree)
    mkdirSync(join(directory.work, 'shared'))
    writeFileSync(join(directory.work, 'shared/index.js'), text)
    deepEqual((await run('cat node_modules/shared/index.js')).lines, [text])
  }
})

test('a Run without a sandbox, whose worker is root, gets a read-only mount that its programs alone see', {
  skip: isRoot ? false : 'needs root',
}, async t => {
  const { tree, content } = await installed(t, 'Process', install)
  const { run, way, directory } = await attached(t, 'Process', tree)
  if (way !== 'BindMount') return t.skip('this machine forbids mounts')
  const { lines } = await run(
    'exec 2>&1; cat node_modules/a/index.js; echo changed > node_modules/a/index.js; echo $?; id -u; echo $HOME',
    undefined,
    { HOME: '/h' },
  )
  equal(lines[0], 'original')
  match(lines.join('\n'), /[Rr]ead-only file system/)
  deepEqual(lines.slice(-2), ['0', '/h'])
  equal(content(), 'original\n')
  equal(existsSync(join(directory.work, 'node_modules/a')), false)
})

test('a Run without mounts gets a copy of its own', async t => {
  const { tree, content } = await installed(t, 'Process', install)
  const { directory, run } = await open(t, 'Process')
  const isolation = { canMount: async () => false, mount: () => {}, markSourceChanged: () => {} }
  const way = await attachTree(tree, { sourceRoot: directory.work, scratch: directory.scratch, files: directory.files, isolation })
  match(way, /^(Copy|Reflink)$/)
  equal(readlinkSync(join(directory.work, 'node_modules/shared')), '../shared')
  deepEqual((await run('echo changed > node_modules/a/index.js && cat node_modules/a/index.js')).lines, ['changed'])
  equal(content(), 'original\n')
})

test('a program that replaces the mount point, or a directory above it, by a symlink prevents the next program', { skip }, async t => {
  const { tree } = await installed(t, 'Sandbox', install)
  const store = { ...tree, record: { ...tree.record, trees: [{ base: 'source', path: 'packages/p/node_modules' } as const] } }
  for (const attack of ['mv packages old && ln -s /etc packages', 'mv packages old && ln -s old packages']) {
    const { run } = await attached(t, 'Sandbox', store)
    equal((await run(attack)).exitCode, 0)
    await rejects(
      run('true'),
      /packages.*, where dependencies are mounted, is not a directory any more; a program of this Run has replaced it/,
    )
  }
})

test('a process that an install left behind, and a descriptor that it kept, change nothing in a sandbox', {
  skip: networkProblem,
}, async t => {
  const late = `${install}; setsid sh -c 'exec 9>>node_modules/a/index.js; sleep 1; echo changed >&9; echo changed > node_modules/a/index.js' >/dev/null 2>&1 &`
  const { content, tree } = await installed(t, 'Sandbox', `${late} sleep 0.3`, { network: 'Private' })
  await delay(1_300)
  equal(content(), 'original\n')
  await tree.release()
})

test('a process that an install left behind without a sandbox, and which evades detection, has only its own files', async t => {
  const late = `${install}; env -i setsid sh -c 'exec 9>>node_modules/a/index.js; sleep 1; echo changed >&9; echo done > late' >/dev/null 2>&1 &`
  const { content, run } = await installed(t, 'Process', `${late} sleep 0.3`)
  await delay(1_500)
  equal(content(), 'original\n')
  // If the process was found, that is as good.
  if (existsSync(join(run.directory.work, 'late')))
    match(readFileSync(join(run.directory.work, 'node_modules/a/index.js'), 'utf8'), /changed/)
})

test('a link may lead to the tree, the source or a known program, and an absolute one becomes relative', () => {
  const check = linkChecker(
    { sourceRoot: '/run/work', scratch: '/run/scratch' },
    { base: 'source', path: 'app/.venv' },
    (path, link) => path === 'bin/x' && link === '/usr/bin/python3',
  )
  const follow = (target: string) => check({ path: 'bin/x', target })
  equal(follow('python3'), 'python3')
  equal(follow('../../../shared'), '../../../shared')
  equal(follow('/run/work/shared'), '../../../shared')
  equal(follow('/usr/bin/python3'), '/usr/bin/python3')
  for (const target of ['/etc/passwd', '../../../../other', '/run/workspace', '/usr/bin/python3x', '../../../..'])
    throws(() => follow(target), /is outside of the source/, target)
})

test('a source that has a file where dependencies belong is rejected', async t => {
  const { tree } = await installed(t, 'Process', install)
  const { directory, isolation } = await open(t, 'Process')
  symlinkSync('/tmp', join(directory.work, 'node_modules'))
  await rejects(
    attachTree(tree, { sourceRoot: directory.work, scratch: directory.scratch, files: directory.files, isolation }),
    /node_modules of the source is not a directory, but dependencies are installed there/,
  )
})
