/** Engines and common languages work in a sandbox: with its system call filter, its users, its file systems. With the real programs. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { createProcessRunner, createRunDirectory, probeIsolation, RunIsolation } from '../workspace/index.ts'
import { engineTestEnv } from './engine-harness.testing.ts'
import { findExecutable } from './find-executable.ts'
import { opentofuFlavor, terraformFlavor } from './terraform/flavor.ts'
import { createTerraformEngine } from './terraform/terraform.ts'

const base = mkdtempSync(join(tmpdir(), 'oarlock-programs-'))
after(() => rmSync(base, { recursive: true, force: true }))
const sandbox = await probeIsolation('Sandbox')

type Case = {
  name: string
  program: string
  files: Record<string, string>
  commands: string[][]
  env?: Record<string, string>
  prints: string
}
const cases: Case[] = [
  {
    name: 'node: threads, children, a server, files, network interfaces',
    program: process.execPath,
    files: {
      'main.mjs': `
        import { Worker } from 'node:worker_threads'; import { execFileSync } from 'node:child_process'; import { createServer } from 'node:http'
        import { mkdtempSync, watch, writeFileSync } from 'node:fs'; import { networkInterfaces, tmpdir, userInfo } from 'node:os'
        const thread = await new Promise(done => new Worker("require('worker_threads').parentPort.postMessage('thread')", { eval: true }).on('message', done))
        const server = createServer((_, response) => response.end('server')).listen(0, '127.0.0.1')
        await new Promise(done => server.on('listening', done))
        const text = await (await fetch('http://127.0.0.1:' + server.address().port)).text()
        server.close(); server.closeAllConnections()
        writeFileSync(mkdtempSync(tmpdir() + '/x') + '/y', 'z')
        console.log(thread, text, execFileSync('echo', ['child']).toString().trim(), userInfo().username, 'lo' in networkInterfaces())`,
    },
    commands: [['main.mjs']],
    prints: 'thread server child oarlock true',
  },
  {
    name: 'python: threads, processes with shared semaphores, a socket, sqlite',
    program: '/usr/bin/python3',
    files: {
      'main.py': `
import multiprocessing, socket, sqlite3, subprocess, threading
def square(n): return n * n
if __name__ == '__main__':
    t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()
    with multiprocessing.Pool(2) as pool: print(sum(pool.map(square, range(4))))
    s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); c.close()
    d = sqlite3.connect('x.db'); d.execute('create table t (a)'); d.commit()
    print(subprocess.check_output(['echo', 'child'], text=True).strip())`,
    },
    commands: [['main.py']],
    prints: 'thread 14 child',
  },
  {
    name: 'go: compiles and runs a program',
    program: 'go',
    files: {
      'go.mod': 'module x\n',
      'main.go': 'package main\nfunc main() { c := make(chan int); go func() { c <- 42 }(); println(<-c) }\n',
    },
    commands: [['run', '.']],
    env: { GOFLAGS: '-mod=mod', GOTOOLCHAIN: 'local', GOPROXY: 'off' },
    prints: '42',
  },
  {
    name: 'java: threads, a socket, TLS',
    program: '/usr/bin/java',
    files: {
      'Main.java': `import java.net.*; import javax.net.ssl.SSLContext;
        public class Main { public static void main(String[] a) throws Exception {
          var t = new Thread(() -> System.out.println("thread")); t.start(); t.join();
          try (var s = new ServerSocket(0, 1, InetAddress.getLoopbackAddress()); var c = new Socket(s.getInetAddress(), s.getLocalPort())) { }
          System.out.println(SSLContext.getDefault().getProtocol()); } }`,
    },
    commands: [['Main.java']],
    prints: 'thread Default',
  },
  {
    name: 'git: commit and clone',
    program: '/usr/bin/git',
    files: { file: 'x' },
    commands: [
      ['init', '-q', '-b', 'main'],
      ['add', 'file'],
      ['-c', 'user.email=a@b', '-c', 'user.name=c', 'commit', '-q', '-m', 'first'],
      ['clone', '-q', '.', 'copy'],
      ['-C', 'copy', 'log', '--format=%s'],
    ],
    prints: 'first',
  },
  {
    name: 'ansible: a playbook',
    program: '/usr/bin/ansible-playbook',
    files: {
      'play.yml': `
- hosts: localhost
  gather_facts: true
  tasks:
    - command: echo child
      register: out
    - copy: { content: "{{ out.stdout }} {{ ansible_system }}", dest: result }`,
      'show.yml': `
- hosts: localhost
  gather_facts: false
  tasks:
    - debug: { msg: "{{ lookup('file', 'result') }}" }`,
    },
    commands: [
      ['-i', 'localhost,', '-c', 'local', 'play.yml'],
      ['-i', 'localhost,', '-c', 'local', 'show.yml'],
    ],
    env: { LC_ALL: 'C.UTF-8' },
    prints: 'child Linux',
  },
]

for (const { name, program, files, commands, env, prints } of cases) {
  const found = await findExecutable(program.split('/').at(-1)!, 'NO_OVERRIDE', {
    ...engineTestEnv(),
    PATH: program.includes('/') ? join(program, '..') : process.env.PATH,
  })
  const skip = !sandbox.available ? sandbox.reason : found.path === undefined && `${program} is not installed`
  test(name, { skip }, async t => {
    const lines = await runSandboxed(t, found.path!, files, commands, env)
    assert.ok(lines.join(' ').includes(prints), lines.join('\n'))
  })
}

for (const flavor of [terraformFlavor, opentofuFlavor]) {
  const env = engineTestEnv()
  const detected = await createTerraformEngine(flavor, env).detect(env)
  const skip = !sandbox.available ? sandbox.reason : !detected.found && `${flavor.title} was not found: ${detected.reasons.join(', ')}`
  test(`${flavor.title}: init, plan, apply with a provisioner`, { skip }, async t => {
    if (!detected.found) return
    const source = `resource "terraform_data" "x" {
      provisioner "local-exec" { command = "echo provisioned > made" }
    }
    output "made" { value = "applied" }`
    const commands = [['init', '-input=false'], ['plan', '-out=p'], ['apply', 'p'], ['output']]
    const lines = await runSandboxed(t, detected.path, { 'main.tf': source }, commands)
    assert.ok(lines.includes('made = "applied"'), lines.join('\n'))
  })
}

/** Executes the commands of one program in a new Run's directory that contains `files`. Returns what they printed. */
async function runSandboxed(
  t: TestContext,
  program: string,
  files: Record<string, string>,
  commands: string[][],
  env: Record<string, string> = {},
) {
  const runUid = randomUUID()
  const directory = await createRunDirectory(join(base, 'runs'), runUid)
  // A program outside of /usr with its files, such as /opt/go/bin/go.
  const installation = dirname(dirname(realpathSync(program)))
  const options = {
    level: 'Sandbox' as const,
    network: 'None' as const,
    limits: {},
    runUid,
    directory,
    readable: [installation],
    onExceeded: () => {},
  }
  const isolation = new RunIsolation({ ...(sandbox.available && sandbox), ...options })
  isolation.addProgram(program)
  t.after(async () => {
    await isolation.close()
    await directory.remove()
  })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory.work, name), text)
  const run = createProcessRunner({ runUid, ...directory, path: '/usr/local/bin:/usr/bin:/bin', wrapCommand: isolation.wrapCommand })
  const lines: string[] = []
  const onLine = (line: string) => void lines.push(line)
  for (const args of commands) {
    const { exitCode } = await run({
      ...{ command: program, args, cwd: directory.work, env, signal: new AbortController().signal },
      ...{ onStdoutLine: onLine, onStderrLine: onLine },
    })
    assert.equal(exitCode, 0, `${args.join(' ')}\n${lines.join('\n')}`)
  }
  return lines
}
