/** A program at level Sandbox that wants out: files, processes, the kernel, devices and sockets of the machine. */
import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import type { StackSpec } from '../../../src/api/index.ts'
import { GitRepository } from '../../../test/support/git-repository.ts'
import { type Attack, NotRunHere } from '../attack.ts'
import { countConnections } from '../count-connections.ts'
import type { Target } from '../target.ts'

const author = { actor: 'stack author', promise: 'Sandbox' } as const

/** Prints files as hexadecimal digits, which nothing masks. */
const hex = 'od -An -v -w256 -tx1'

async function withPerl(target: Target, script: string, environment = '') {
  if (!existsSync('/usr/bin/perl')) throw new NotRunHere('there is no perl')
  target.requireSandbox()
  return await target.runScript(`${environment} perl - <<'END'\n${script}\nEND\n`)
}

const readFiles: Attack = {
  name: 'sandbox-files',
  ...author,
  async attempt(target, control) {
    target.requireSandbox()
    const victim = target.createVictimFile()
    const named = ['pki/admin-token', 'pki/service-account.key', 'kubeconfig', 'keys/state.key'].map(path => join(target.dataDir, path))
    const { text, log } = await target.runScript(`
      cat ${[...named, victim.path].join(' ')} /proc/*/environ /proc/*/root${victim.path} /proc/*/cwd/../../*/work/* /etc/shadow /root/.ssh/* | ${hex}
      find / \\( -path /proc -o -path /sys -o -path /dev -o -path /usr -o -path /etc/java* -o -path /etc/ssl \\) -prune -o -type f -size -64k -print0 | xargs -0 cat | ${hex}`)
    const digits = log.replace(/[^0-9a-f]/g, '')
    const has = (secret: string) => digits.includes(Buffer.from(secret).toString('hex'))
    control(has('oarlock:x:'), `its own files are not read: ${log.slice(-300)}`)
    const found = target.secretsIn(text)
    if (has(victim.text)) found.push('a file of the worker')
    if (has('OARLOCK_TOKEN=')) found.push("the worker's environment")
    if (['root:*', 'root:!', 'root:$'].some(has)) found.push('/etc/shadow')
    return found
  },
}

const processes: Attack = {
  name: 'sandbox-processes',
  ...author,
  async attempt(target, control) {
    target.requireSandbox()
    const { run, log } = await target.runScript(
      `sleep 60 & kill -9 $! && echo killed its own; kill -9 ${target.pid} ${process.pid}; kill -9 -1; kill -9 1; exit 0`,
    )
    control(log.includes('killed its own'), `it kills no process of its own: ${log}`)
    if (!target.isRunning) return ['ended oarlock up']
    return run?.status?.reason === 'WorkerLost' || run?.status?.phase === 'Lost' ? ['ended the worker'] : []
  },
}

/** System calls that reach beyond a sandbox, with the numbers of x86-64 and arm64. The arguments would succeed without a filter. */
const calls: Record<string, readonly [number, number, string]> = {
  ptrace: [101, 117, '0, 0, 0, 0'],
  keyctl: [250, 219, '0, -3, 1'],
  add_key: [248, 217, '"user", "k", "x", 1, -3'],
  io_uring_setup: [425, 425, '8, "\\0" x 120'],
  userfaultfd: [323, 282, '1'],
  bpf: [321, 280, '0, "\\0" x 72, 72'],
  perf_event_open: [298, 241, '"\\0" x 128, 0, -1, -1, 0'],
  mount: [165, 40, '"none", "/tmp", "tmpfs", 0, 0'],
  unshare: [272, 97, '0x10000000'],
  unshare_network: [272, 97, '0x40000000'],
  pivot_root: [155, 41, '"/tmp", "/tmp"'],
  chroot: [161, 51, '"/tmp"'],
  memfd_create: [319, 279, '"m", 0'],
  open_tree: [428, 428, '-100, "/usr", 1'],
  fsopen: [430, 430, '"tmpfs", 0'],
  name_to_handle_at: [303, 264, '-100, "/usr", "\\0" x 136, "\\0" x 8, 0'],
  syslog: [103, 116, '10, 0, 0'],
  personality: [135, 92, '0x0040000'],
  sethostname: [170, 161, '"owned", 5'],
  shmget: [29, 194, '0, 4096, 0x3b6'],
  pidfd_open: [434, 434, '1, 0'],
  process_vm_readv: [310, 270, '1, 0, 0, 0, 0, 0'],
}

const systemCalls: Attack = {
  name: 'sandbox-system-calls',
  ...author,
  async attempt(target, control) {
    const lines = Object.entries(calls).map(([name, [x64, arm64, args]]) => {
      const number = process.arch === 'x64' ? x64 : arm64
      // Literals are read-only, and syscall writes into strings.
      return `@a = (${args}); $r = syscall(${number}, @a); print $r == -1 ? "failed " . ($! + 0) : "allowed", " ${name}\\n";`
    })
    const { log } = await withPerl(target, lines.join('\n'))
    for (const [name] of Object.entries(calls)) {
      const [, result, errno] = new RegExp(`^(allowed|failed (\\d+)) ${name}$`, 'm').exec(log) ?? []
      // Another error than EPERM and ENOSYS is about the arguments: the call itself is allowed.
      control(result === 'allowed' || errno === '1' || errno === '38', `${name}: ${result}`)
    }
    // A descriptor of another process is of use only with pidfd_getfd, which is refused; in its own namespace a program sees its own.
    return [...log.matchAll(/^allowed (\w+)/gm)].map(([, name]) => name as string).filter(name => name !== 'pidfd_open')
  },
}

const socketFamilies: Attack = {
  name: 'sandbox-socket-families',
  ...author,
  promise: 'Network',
  async attempt(target, control) {
    // Family, type, protocol: vsock, packet, AF_ALG, netlink of audit, raw IPv4, Bluetooth, XDP, TIPC, RDS, CAN, key management.
    const sockets = ['40,1,0', '17,3,768', '38,5,0', '16,3,9', '2,3,1', '31,1,3', '44,3,0', '30,1,0', '21,5,0', '29,3,1', '15,3,2']
    const { log } = await withPerl(
      target,
      `for (qw(1,1,0 ${sockets.join(' ')})) { my ($d, $t, $p) = split /,/; print "opened $_\\n" if socket(my $s, $d, $t, $p) }`,
    )
    control(log.includes('opened 1,1,0'), `a Unix socket is not opened: ${log}`)
    return [...log.matchAll(/^opened (\S+)/gm)].filter(([, name]) => name !== '1,1,0').map(([, name]) => `socket(${name})`)
  },
}

const kernelSettings: Attack = {
  name: 'sandbox-kernel-settings',
  ...author,
  async attempt(target, control) {
    target.requireSandbox()
    const settings = [
      '/proc/sys/kernel/core_pattern',
      '/proc/sys/kernel/modprobe',
      '/proc/sys/vm/overcommit_memory',
      '/proc/sys/kernel/hostname',
    ]
    const read = () => settings.map(path => (existsSync(path) ? readFileSync(path, 'utf8') : ''))
    const before = read()
    const { log } = await target.runScript(`
      echo own > own; for f in own ${settings.join(' ')}; do (cat $f > $f) 2>/dev/null && echo "wrote $f"; done
      find /proc/sys /proc/irq /proc/bus /proc/fs /proc/sysrq-trigger /sys -type f -writable 2>/dev/null | sed 's/^/wrote /'
      mount -o remount,rw /proc/sys 2>/dev/null && echo wrote remounted; umount /proc/sys 2>/dev/null && echo wrote unmounted
      for d in / /usr /usr/bin /usr/local /etc /dev /proc /run /var; do (echo x > $d/attack) 2>/dev/null && echo "wrote $d"; done; true`)
    control(log.includes('wrote own\n'), `it does not write its own file: ${log}`)
    const gained = [...log.matchAll(/^wrote (.*)$/gm)].filter(([, what]) => what !== 'own').map(([, what]) => `can write ${what}`)
    for (const [index, value] of read().entries()) if (value !== before[index]) gained.push(`changed ${settings[index]}`)
    return gained
  },
}

const devices: Attack = {
  name: 'sandbox-devices',
  ...author,
  async attempt(target, control) {
    target.requireSandbox()
    const disks = ['vda', 'sda', 'nvme0n1', 'xvda'].filter(name => existsSync(`/sys/block/${name}/dev`))
    const numbers = disks.map(name => readFileSync(`/sys/block/${name}/dev`, 'utf8').trim().replace(':', ' '))
    const { log } = await target.runScript(`
      for n in ${numbers.map(each => `'b ${each}'`).join(' ')} 'c 1 1' 'c 1 2' 'c 10 200'; do
        rm -f d; mknod d $n 2>/dev/null && head -c 16 d > out 2>/dev/null && [ -s out ] && echo "read device $n"
      done
      for d in /dev/zero /dev/mem /dev/kmem /dev/port /dev/kmsg /dev/net/tun /dev/fuse ${disks.map(each => `/dev/${each}`).join(' ')} /proc/kcore /proc/kmsg; do
        head -c 16 $d > out 2>/dev/null && [ -s out ] && echo "read device $d"
      done; true`)
    const read = [...log.matchAll(/^read device (.*)$/gm)].map(([, what]) => what as string)
    control(read.includes('/dev/zero'), `/dev/zero is not read: ${log}`)
    return read.filter(what => what !== '/dev/zero').map(what => `read device ${what}`)
  },
}

const identity: Attack = {
  name: 'sandbox-root',
  ...author,
  async attempt(target, control) {
    target.requireSandbox()
    const { log } = await target.runScript(`
      cp /bin/sh ./shell && chmod 6755 ./shell; ./shell -p -c 'id -u' | sed 's/^0$/became root/'
      for p in 'su -c id' 'sudo -n id' 'newgrp root' 'mount --bind / /tmp' 'unshare -r id'; do $p </dev/null; done
      grep -E '^(CapEff|CapPrm|CapBnd|CapInh|CapAmb):.*[1-9a-f]' /proc/self/status | sed 's/^/has /'; grep CapEff /proc/self/status`)
    control(log.includes('CapEff:\t0'), `its status is not read: ${log}`)
    const gained = [...log.matchAll(/^(became root|has Cap.*)$/gm)].map(([, what]) => what as string)
    return /uid=0\(/.test(log) ? [...gained, 'uid 0'] : gained
  },
}

const setuidFile: Attack = {
  name: 'sandbox-setuid-file',
  ...author,
  async attempt(target, control) {
    target.requireSandbox()
    // While the Run exists, another program of the machine could execute what it left; afterwards nothing of it may be there.
    const { run, log } = await target.runScript(
      'cp /bin/sh shell; chown 0:0 shell; chmod 6755 shell; cp shell $TMPDIR; cp shell $HOME; ls -l shell',
    )
    control(/^-rws/m.test(log), `it makes no setuid file: ${log}`)
    const left = run ? findFiles(join(target.dataDir, 'runs', run.metadata.uid)) : []
    return left.filter(path => (lstatSync(path).mode & 0o6000) !== 0).map(path => `left ${path}`)
  },
}

function findFiles(directory: string): string[] {
  if (!existsSync(directory)) return []
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
}

const descriptors: Attack = {
  name: 'sandbox-inherited-descriptors',
  ...author,
  async attempt(target, control) {
    target.requireSandbox()
    const { log } = await target.runScript('ls -l /proc/self/fd')
    control(/ 1 -> /.test(log), `its descriptors are not listed: ${log}`)
    // stdin, its output as two sockets, and the directory that is listed.
    const own = /^(\/dev\/null|\/proc\/\d+\/fd|socket:\[\d+\])$/
    return [...log.matchAll(/ -> (.+)$/gm)].map(([, name]) => name as string).filter(name => !own.test(name))
  },
}

const loopbackPorts: Attack = {
  name: 'sandbox-loopback-ports',
  ...author,
  promise: 'Network',
  async attempt(target, control) {
    target.requirePrivateNetwork()
    const { port, connections, close } = await countConnections('127.0.0.1')
    try {
      const ports = [port, new URL(target.url).port, new URL(target.httpUrl).port].join(' ')
      const hosts = '127.0.0.1 127.1.2.3 localhost 0.0.0.0 ::1 ::ffff:127.0.0.1 10.0.2.2 10.0.2.3 10.0.2.15 169.254.169.254'
      const { log } = await withPerl(
        target,
        `use IO::Socket::IP; my $l = IO::Socket::IP->new(LocalHost => '127.0.0.1', Listen => 5); my $c = IO::Socket::IP->new(PeerHost => '127.0.0.1', PeerPort => $l->sockport); print "reached itself\n" if $c;
         for my $h (qw(${hosts})) { for my $p (qw(${ports})) {
           my $s = IO::Socket::IP->new(PeerHost => $h, PeerPort => $p, Timeout => 0.3); print "reached $h:$p\\n" if $s; } }`,
      )
      control(log.includes('reached itself'), `it does not reach a port of its own: ${log}`)
      const gained = [...log.matchAll(/^reached (?!itself)(\S+)$/gm)].map(([, what]) => `reached ${what}`)
      return connections() > 0 ? [...gained, `${connections()} connections to a port on loopback`] : gained
    } finally {
      close()
    }
  },
}

const selectedInterface: Attack = {
  name: 'sandbox-loopback-interface',
  ...author,
  promise: 'Network',
  async attempt(target, control) {
    target.requirePrivateNetwork()
    const addresses = Object.values(networkInterfaces()).flatMap(each => each ?? [])
    const own = addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address
    if (own === undefined) throw new NotRunHere('the machine has only loopback addresses')
    const received: string[] = []
    const server = createSocket('udp4', text => void received.push(`${text}`)).bind(0, '0.0.0.0')
    await once(server, 'listening')
    const tcp = await countConnections('127.0.0.1')
    try {
      // SO_BINDTODEVICE and IP_UNICAST_IF: the network of the sandbox, not its loopback interface.
      const { log } = await withPerl(
        target,
        `use Socket; use Fcntl; socket(my $u, 2, 2, 0); my $r = pack('a16 x24', 'tap0'); ioctl($u, 0x8933, $r); my $index = unpack('x16 i', $r);
         for my $to (qw(127.0.0.1 127.0.0.2 127.255.255.254 0.0.0.0 10.0.2.2 255.255.255.255 ${own})) { for my $o ([1, 25, 'tap0'], [0, 50, pack('N', $index)]) {
           socket(my $s, 2, 2, 0); setsockopt($s, 1, 6, 1); setsockopt($s, $$o[0], $$o[1], $$o[2]) and print "selected\n";
           send($s, "$to by $$o[1]", 0, pack_sockaddr_in(${server.address().port}, inet_aton($to)));
           socket(my $c, 2, 1, 0); setsockopt($c, $$o[0], $$o[1], $$o[2]); fcntl($c, F_SETFL, O_NONBLOCK); connect($c, pack_sockaddr_in(${tcp.port}, inet_aton($to))); push @open, $c } }
         select(undef, undef, undef, 0.1)`,
      )
      control(
        received.includes(`${own} by 25`) && log.includes('selected'),
        `it does not reach another address of the machine: ${received} ${log}`,
      )
      const gained = received.filter(each => !each.startsWith(own)).map(each => `sent to ${each}`)
      return tcp.connections() > 0 ? [...gained, `${tcp.connections()} connections to a port on loopback`] : gained
    } finally {
      server.close()
      tcp.close()
    }
  },
}

const hostNetwork: Attack = {
  name: 'sandbox-host-network',
  ...author,
  promise: 'Network',
  async attempt(target, control) {
    target.requireSandbox()
    const own = await target.runScript('true')
    control(own.run?.status?.phase === 'Succeeded', `with an allowed network it is ${own.run?.status?.phase}`)
    const { run } = await target.runScript('true', { isolation: { level: 'Sandbox', network: 'Host' } })
    return run?.status?.phase === 'Succeeded' ? ['the network of the machine, although its pool does not allow it'] : []
  },
}

const unixSockets: Attack = {
  name: 'sandbox-unix-sockets',
  ...author,
  promise: 'Network',
  async attempt(target, control) {
    target.requireSandbox()
    const name = `oarlock-attack-${randomUUID()}`
    const abstract = await countConnections(`\0${name}`)
    const path = target.newPath()
    const named = await countConnections(path)
    try {
      const paths = [
        path,
        join(target.dataDir, 'api.sock'),
        '/run/docker.sock',
        '/var/run/docker.sock',
        '/run/dbus/system_bus_socket',
        '/run/systemd/private',
      ]
      const { log } = await withPerl(
        target,
        `use Socket; socket(my $l, 1, 1, 0); bind($l, sockaddr_un('own')); listen($l, 5);
         for my $p (qw(own ${paths.join(' ')})) { socket(my $s, 1, 1, 0); print "reached $p\\n" if connect($s, sockaddr_un($p)) }
         socket(my $s, 1, 1, 0); print "reached abstract\\n" if connect($s, pack("S a*", 1, "\\0${name}"));
         opendir(my $d, "/proc/net"); open(my $f, "<", "/proc/net/unix"); while (<$f>) { print "lists $_" if /oarlock/ }`,
      )
      control(log.includes('reached own'), `it does not reach a socket of its own: ${log}`)
      const gained = [...log.matchAll(/^(reached (?!own$)\S+|lists .*)$/gm)].map(([, what]) => what as string)
      if (abstract.connections() + named.connections() > 0) gained.push('connected to a socket of the machine')
      return gained
    } finally {
      abstract.close()
      named.close()
    }
  },
}

const loaderVariables: Attack = {
  name: 'launcher-environment',
  slow: true,
  ...author,
  promise: 'Launcher',
  async attempt(target, control) {
    target.requireSandbox()
    if (spawnSync('gcc', ['--version']).status !== 0) throw new NotRunHere('there is no gcc')
    const directory = join(target.allowedDirectory, target.newName('loader'))
    const marker = target.newPath()
    mkdirSync(directory)
    // Outside of the sandbox it can write there; inside the path does not exist.
    const source = `#include <stdio.h>\n__attribute__((constructor)) static void run(void) { FILE *f = fopen("${marker}", "a"); if (f) { fputs("ran\\n", f); fclose(f); } }\n`
    const compiled = spawnSync('gcc', ['-shared', '-fPIC', '-o', join(directory, 'evil.so'), '-x', 'c', '-'], { input: source })
    if (compiled.status !== 0) throw new NotRunHere(`gcc: ${compiled.stderr}`)
    const script = `echo ran >> ${marker}\n`
    new GitRepository(directory).commit({
      'env.sh': script,
      sh: `#!/bin/sh\n${script}`,
      bwrap: `#!/bin/sh\n${script}`,
      'attack.sh': 'true',
    })
    const inherited = {
      ...{
        LD_PRELOAD: './evil.so',
        LD_AUDIT: './evil.so',
        ENV: './env.sh',
        BASH_ENV: './env.sh',
        PS4: `$(${script.trim()})`,
        SHELLOPTS: 'xtrace',
      },
      ...{ NODE_OPTIONS: '--require ./env.sh', GIT_SSH_COMMAND: 'sh env.sh', GCONV_PATH: '.', LD_LIBRARY_PATH: '.' },
    }
    const searched = { PATH: '.:/usr/bin:/bin', IFS: '/', HOME: '.', TMPDIR: '.', SHELL: './sh' }
    const run = (values: Record<string, string>, isolation: NonNullable<StackSpec['isolation']> = {}) =>
      target.runStack({
        engine: 'command',
        source: { git: { url: `file://${directory}` } },
        command: { apply: ['/bin/sh', 'attack.sh'] },
        env: Object.entries(values).map(([name, value]) => ({ name, value })),
        isolation,
      })
    for (const values of [inherited, searched]) await run(values)
    const hasRun = existsSync(marker)
    await run({ LD_PRELOAD: './evil.so' }, { level: 'Process' })
    control(existsSync(marker), 'it does not run without a sandbox either')
    return hasRun ? ['code of the Stack ran outside of its sandbox'] : []
  },
}

export const sandboxAttacks: readonly Attack[] = [
  readFiles,
  processes,
  systemCalls,
  socketFamilies,
  kernelSettings,
  devices,
  identity,
  setuidFile,
  descriptors,
  loopbackPorts,
  selectedInterface,
  hostNetwork,
  unixSockets,
  loaderVariables,
]
