/** What a sandbox reaches in each network, with real sockets. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { existsSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { findRunProcesses, SpawnError } from '../process/index.ts'
import { base, networkProblem, open, skip } from './isolated-run.testing.ts'

const perl = existsSync('/usr/bin/perl')

/** Starts a server on every address of this machine. */
async function startServer(t: TestContext): Promise<{ port: number; own: string | undefined }> {
  const server = createServer((_, response) => response.end('hello'))
  await new Promise<void>(resolve => server.listen(0, '0.0.0.0', resolve))
  t.after(() => server.close())
  return { port: (server.address() as AddressInfo).port, own: ownAddress() }
}

function ownAddress(): string | undefined {
  const addresses = Object.values(networkInterfaces()).flatMap(each => each ?? [])
  return addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address
}

const connectTo = (...peers: string[]) =>
  `for p in ${peers.join(' ')}; do perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(PeerAddr => $ARGV[0], Timeout => 5) ? "reached\\n" : "not reached\\n"' $p; done`

test('Sandbox: network None reaches nothing, network Host the loopback interface of the machine', {
  skip: skip || (!perl && 'no perl'),
}, async t => {
  const { port } = await startServer(t)
  const none = await open(t, 'Sandbox', { network: 'None' })
  assert.deepEqual([(await none.run(connectTo(`127.0.0.1:${port}`))).lines, none.isolation.effective.network], [['not reached'], 'None'])
  const host = await open(t, 'Sandbox', { network: 'Host' })
  assert.deepEqual([(await host.run(connectTo(`127.0.0.1:${port}`))).lines, host.isolation.effective.network], [['reached'], 'Host'])
})

test('Sandbox: network Private reaches other addresses, but no loopback port of the machine, nor sockets without a path', {
  skip: networkProblem || (!perl && 'no perl'),
}, async t => {
  const { port, own } = await startServer(t)
  const abstract = `oarlock-${randomUUID()}`
  const local = createServer((_, response) => response.end('hello'))
  await new Promise<void>(resolve => local.listen(`\0${abstract}`, resolve))
  t.after(() => local.close())
  const { run, runUid, isolation } = await open(t, 'Sandbox', { network: 'Private' })
  assert.equal(isolation.effective.network, 'Private')
  // 10.0.2.2 is the gateway, at which slirp4netns would offer the loopback interface of the machine.
  const { lines } = await run(connectTo(`127.0.0.1:${port}`, `10.0.2.2:${port}`, ...(own ? [`${own}:${port}`] : [])))
  assert.deepEqual(lines, ['not reached', 'not reached', ...(own ? ['reached'] : [])])
  const unix = `perl -MSocket -e 'socket(my $s, 1, 1, 0); print connect($s, pack("S a*", 1, "\\0${abstract}")) ? "reached\\n" : "not reached\\n"'`
  assert.deepEqual((await run(unix)).lines, ['not reached'])
  const host = await open(t, 'Sandbox', { network: 'Host' })
  assert.deepEqual((await host.run(unix)).lines, ['reached'])
  assert.deepEqual((await run('grep -c "^nameserver 10.0.2.3$" /etc/resolv.conf')).lines, ['1'])
  assert.deepEqual(findRunProcesses(runUid), [], 'slirp4netns ended with the program')
})

/** How a program without privileges selects an interface: SO_BINDTODEVICE, SO_BINDTOIFINDEX, IP_UNICAST_IF. */
const interfaceOptions = '[1, 25, "tap0"], [1, 62, pack("i", $index)], [0, 50, pack("N", $index)]'

test('Sandbox: network Private routes no loopback address to the machine, whatever interface a program selects', {
  skip: networkProblem || (!perl && 'no perl'),
}, async t => {
  const received: string[] = []
  const last = Promise.withResolvers<void>()
  const udp = createSocket('udp4', text => {
    received.push(`${text}`)
    if (`${text}` === 'last') last.resolve()
  })
  await new Promise<void>(resolve => udp.bind(0, '0.0.0.0', resolve))
  t.after(() => udp.close())
  const tcp = createTcpServer(socket => {
    received.push(`connection to ${socket.localAddress}`)
    socket.on('error', () => {}).end('hello')
  })
  await new Promise<void>(resolve => tcp.listen(0, '0.0.0.0', resolve))
  t.after(() => tcp.close())
  const own = ownAddress()
  if (own === undefined) return t.skip('the machine has only loopback addresses')
  const { run, directory } = await open(t, 'Sandbox', { network: 'Private' })
  const address = (port: number, host: string) => `pack_sockaddr_in(${port}, inet_aton(${host}))`
  const [udpPort, tcpPort] = [udp.address().port, (tcp.address() as AddressInfo).port]
  // Both servers get what was sent in its order, so nothing else arrives after the last.
  const script = `use Socket; use IO::Handle; use Fcntl;
    socket(my $u, 2, 2, 0); my $request = pack('a16 x24', 'tap0'); ioctl($u, 0x8933, $request); my $index = unpack('x16 i', $request);
    send($u, 'first', 0, ${address(udpPort, `'${own}'`)});
    for my $to ('127.0.0.1', '127.0.0.2', '127.255.255.254') { for my $o (${interfaceOptions}) {
      socket(my $s, 2, 2, 0); setsockopt($s, $$o[0], $$o[1], $$o[2]) or print "option $$o[1]: $!\n";
      send($s, "to $to, option $$o[1]", 0, ${address(udpPort, '$to')});
      socket(my $c, 2, 1, 0); setsockopt($c, $$o[0], $$o[1], $$o[2]); fcntl($c, F_SETFL, O_NONBLOCK);
      connect($c, ${address(tcpPort, '$to')}); push @open, $c } }
    socket(my $c, 2, 1, 0); connect($c, ${address(tcpPort, `'${own}'`)}) and print <$c>;
    send($u, 'last', 0, ${address(udpPort, `'${own}'`)});`
  writeFileSync(join(directory.work, 'send.pl'), script)
  assert.deepEqual((await run('perl send.pl')).lines, ['hello'])
  await last.promise
  assert.deepEqual(received.sort(), [`connection to ${own}`, 'first', 'last'])
})

test('Sandbox: a network that cannot be connected fails the start, with the reason', { skip: networkProblem }, async t => {
  const broken = join(base, 'slirp4netns')
  writeFileSync(broken, '#!/bin/sh\necho no device >&2; exit 1\n', { mode: 0o755 })
  const { run, runUid, directory } = await open(t, 'Sandbox', { network: 'Private', slirp4netns: broken })
  await assert.rejects(
    run('touch started'),
    (error: unknown) => error instanceof SpawnError && /slirp4netns: no device/.test(error.message),
  )
  assert.equal(existsSync(join(directory.work, 'started')), false)
  assert.deepEqual(findRunProcesses(runUid), [])
})

test('Sandbox: a Unix socket of the worker’s user cannot be reached, at either network', {
  skip: skip || (!perl && 'no perl'),
}, async t => {
  const path = join(base, 'api.sock')
  const server = createServer((_, response) => response.end('hello'))
  await new Promise<void>(resolve => server.listen(path, resolve))
  t.after(() => server.close())
  const script = `perl -MIO::Socket::UNIX -e 'print IO::Socket::UNIX->new("${path}") ? "reached\\n" : "not reached\\n"'`
  for (const network of ['Host', 'None'] as const)
    assert.deepEqual((await (await open(t, 'Sandbox', { network })).run(script)).lines, ['not reached'])
  assert.deepEqual((await (await open(t, 'Process')).run(script)).lines, ['reached'])
})
