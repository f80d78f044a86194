import { existsSync, lstatSync, readdirSync, readlinkSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Network } from '../../../api/index.ts'
import type { Command } from '../process/index.ts'
import type { RunDirectory } from '../run-directory.ts'
import { launchProgram, quoteForShell } from './launcher.ts'
import { bindMounts, type ReadOnlyMount } from './read-only-mounts.ts'
import type { SandboxAccount } from './sandbox-account.ts'
import { inNetworkNamespace } from './sandbox-network.ts'

/** bubblewrap, for a worker that is root the ids of its sandboxed programs, and if it is installed slirp4netns. */
export type Sandbox = { bwrap: string; account?: SandboxAccount; slirp4netns?: string | undefined }

export type SandboxOptions = {
  sandbox: Sandbox
  directory: RunDirectory
  /** Absolute paths that may be read in addition, such as a directory of tools. Missing paths are ignored. */
  readable: readonly string[]
  /** The size of /dev/shm. */
  sharedMemoryBytes: number
  /** None: no network except a private loopback device. */
  network: Network
  /** For network Private: its /etc/resolv.conf. */
  resolverFile: string | undefined
  hostname: string
  /** In directories that the program may write. */
  mounts: readonly ReadOnlyMount[]
}

/** Programs and their libraries. With a merged /usr most of them are symlinks into it, and are created as symlinks. */
const systemDirectories = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/nix/store']

/** Files that programs need to resolve names, verify certificates, print times and find libraries. They contain no keys and no passwords. */
const systemFiles = [
  '/etc/resolv.conf',
  '/etc/hosts',
  '/etc/nsswitch.conf',
  '/etc/gai.conf',
  '/etc/services',
  '/etc/protocols',
  '/etc/localtime',
  '/etc/mime.types',
  '/etc/ld.so.cache',
  '/etc/ld.so.conf',
  '/etc/ld.so.conf.d',
  '/etc/alternatives',
  '/etc/ca-certificates',
  '/etc/pki/tls/certs',
  '/etc/pki/ca-trust',
  '/etc/ssl/certs',
  '/etc/ssl/cert.pem',
  '/etc/ssl/openssl.cnf',
]

/** File descriptors that the process runner opens for bubblewrap. */
export type SandboxDescriptors = { args: number; info: number; block: number; seccomp: number }

/**
 * Starts a program of one Run in an empty root with selected bind mounts at their original paths, separate pid, ipc, uts and mount
 * namespaces, a private /tmp (in the Run's directory), without capabilities and without new privileges. Without `--die-with-parent`: when the
 * worker crashes, the engine can still save its state; the supervisor stops it in time. `argv` starts bubblewrap, `options` are what it reads
 * from descriptor `args`. The environment of the program is among them: bubblewrap itself runs outside of the sandbox.
 */
export function sandboxCommand(
  run: SandboxOptions,
  command: Command,
  descriptors: SandboxDescriptors,
): { argv: string[]; options: string[] } {
  const { sandbox, directory, readable, network, resolverFile, sharedMemoryBytes, mounts, hostname } = run
  const { args, info, block, seccomp } = descriptors
  const program = programAs(sandbox.account, command)
  // Below a system directory a bind mount would replace a symlink by its target: java, for one, finds its libraries next to its path.
  const further = readable.filter(path => !isVisible(path, directory, []))
  const visible = [...systemFiles, ...javaConfiguration(), ...further].filter(path => existsSync(path))
  const writable = writableDirectories(directory)
  const options = [
    ...namespaceOptions(sandbox.account),
    ...(network === 'None' ? ['--unshare-net'] : []),
    ...['--new-session', '--hostname', hostname],
    ...['--info-fd', `${info}`, '--block-fd', `${block}`, '--seccomp', `${seccomp}`],
    ...kernelFileSystems(sharedMemoryBytes),
    ...['--bind', directory.tmp, '/tmp', '--bind', directory.tmp, '/var/tmp'],
    ...systemDirectories.flatMap(bindSystemDirectory),
    // bubblewrap would create a parent directory with the mode of what is bound in it, and without its owner.
    ...[...new Set([...visible, ...writable].map(path => dirname(path)))].flatMap(path => ['--perms', '0755', '--dir', path]),
    ...visible.flatMap(path => bindReadable(path)),
    ...(resolverFile === undefined ? [] : ['--ro-bind', resolverFile, '/etc/resolv.conf']),
    ...accountFiles(directory).flatMap(({ source, path }) => ['--ro-bind', source, path]),
    ...writable.flatMap(path => ['--bind', path, path]),
    ...['--ro-bind', directory.inputs, directory.inputs],
    ...bindMounts(mounts),
    // Its memory is limited by nothing else.
    ...['--remount-ro', '/'],
    ...[
      '--chdir',
      sandbox.account ? '/' : command.cwd,
      '--clearenv',
      ...Object.entries(program.env).flatMap(([name, value]) => ['--setenv', name, value]),
    ],
  ]
  const argv = [sandbox.bwrap, '--args', `${args}`, '--', program.command, ...program.args]
  return { argv: network === 'Private' ? inNetworkNamespace(sandbox.account, argv) : argv, options }
}

/** The directories of a Run that its programs may write. */
export const writableDirectories = ({ work, tmp, home, scratch }: RunDirectory): string[] => [work, tmp, home, scratch]

/** The arguments of bubblewrap that execute /bin/true with the namespaces and the ids of every sandbox. */
export function probeArguments({ account }: Sandbox): string[] {
  const program = programAs(account, { command: '/bin/true', args: [], cwd: '/', env: {} })
  return [
    ...namespaceOptions(account),
    '--new-session',
    '--ro-bind',
    '/',
    '/',
    ...kernelFileSystems(4096),
    '--',
    program.command,
    ...program.args,
  ]
}

/**
 * A worker other than root gets a user namespace that maps its own id only, without further user namespaces. Root needs none, and in one its
 * programs could not get the ids of another account; they keep what is needed to change their ids until they did.
 */
function namespaceOptions(account: SandboxAccount | undefined): string[] {
  return [
    ...['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try', '--cap-drop', 'ALL'],
    ...(account
      ? ['CAP_SETUID', 'CAP_SETGID', 'CAP_SETPCAP'].flatMap(capability => ['--cap-add', capability])
      : ['--unshare-user', '--disable-userns', '--uid', `${process.getuid!()}`, '--gid', `${process.getgid!()}`]),
  ]
}

/**
 * Starts the program with the ids of the account. Its environment, such as LD_PRELOAD, applies only after the change, and only then its
 * directory can be entered.
 */
function programAs(account: SandboxAccount | undefined, command: Command): Pick<Command, 'command' | 'args' | 'env'> {
  if (!account) return command
  const ids = ['--reuid', `${account.uid}`, '--regid', `${account.gid}`, '--clear-groups']
  const noCapabilities = ['--ambient-caps=-all', '--inh-caps=-all', '--bounding-set=-all']
  const { command: shell, args, env } = launchProgram([`cd ${quoteForShell(command.cwd)}`], command)
  return { command: '/usr/bin/setpriv', args: [...ids, ...noCapabilities, '--', shell, ...args], env }
}

/** As container runtimes do it: nothing below /proc/sys and its like can be written, and nothing of the machine can be read there. */
function kernelFileSystems(sharedMemoryBytes: number): string[] {
  const existing = (paths: string[]) => paths.map(path => `/proc/${path}`).filter(path => existsSync(path))
  return [
    ...['--proc', '/proc', '--dev', '/dev'],
    ...['--perms', '1777', '--size', `${sharedMemoryBytes}`, '--tmpfs', '/dev/shm', '--remount-ro', '/dev'],
    ...existing(['sys', 'bus', 'fs', 'irq']).flatMap(path => ['--ro-bind', path, path]),
    ...existing(['acpi', 'asound', 'scsi']).flatMap(path => ['--tmpfs', path, '--remount-ro', path]),
    ...existing(['interrupts', 'kcore', 'keys', 'latency_stats', 'sched_debug', 'sysrq-trigger', 'timer_list']).flatMap(path => [
      ...['--ro-bind', '/dev/null', path],
    ]),
  ]
}

/** Files of the sandbox's own, which name its user only. ssh and others need a name for their uid. */
const accountFiles = ({ root }: RunDirectory) => [
  { source: join(root, 'passwd'), path: '/etc/passwd' },
  { source: join(root, 'group'), path: '/etc/group' },
]

/** Writes the files of the Run that its sandboxes bind, outside of the directories that they may write. */
export function writeAccountFiles({ account }: Sandbox, directory: RunDirectory): void {
  const uid = account?.uid ?? process.getuid!()
  const gid = account?.gid ?? process.getgid!()
  const files = { passwd: `oarlock:x:${uid}:${gid}::${directory.home}:/bin/sh\n`, group: `oarlock:x:${gid}:\n` }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory.root, name), text)
}

function bindSystemDirectory(path: string): string[] {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return []
  return found.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path]
}

/** Binds the target of a symlink at the path of the symlink: /etc/resolv.conf often points out of /etc. */
function bindReadable(path: string): string[] {
  try {
    return ['--ro-bind', realpathSync(path), path]
  } catch {
    return []
  }
}

/** Debian's packages of Java have links to this directory in /usr; without it no TLS connection works. */
function javaConfiguration(): string[] {
  const names = readdirSync('/etc').filter(name => /^java-\d+-openjdk$/.test(name))
  return names.map(name => join('/etc', name))
}

/** Whether the sandbox of a Run shows this path: below a system directory, one of its own directories, or one of `readable`. */
export function isVisible(path: string, directory: RunDirectory, readable: readonly string[]): boolean {
  const roots = [...systemDirectories, ...writableDirectories(directory), ...readable]
  return roots.some(root => path === root || path.startsWith(root.endsWith('/') ? root : `${root}/`))
}
