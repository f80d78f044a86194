import { existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import type { RunDirectory } from '../run-directory.ts'

export type SandboxOptions = {
  /** bubblewrap. */
  bwrap: string
  directory: RunDirectory
  /** More that may be read, such as a directory of tools: absolute paths. What is not there is left out. */
  readable: readonly string[]
  /** False: no network but a loopback device of its own. */
  network: boolean
}

/** Programs and their libraries. On a merged /usr most are links into it and are made as links. */
const systemDirectories = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/nix/store']

/** What programs read to resolve names, check certificates, print times and find libraries. No key, no password. */
const systemFiles = [
  '/etc/resolv.conf',
  '/etc/hosts',
  '/etc/nsswitch.conf',
  '/etc/gai.conf',
  '/etc/services',
  '/etc/protocols',
  '/etc/localtime',
  '/etc/mime.types',
  '/etc/passwd',
  '/etc/group',
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
export type SandboxDescriptors = { info: number; block: number; seccomp: number | undefined }

/**
 * The command line of a sandbox for one Run, up to the program: an empty root with chosen binds at their own paths, own user, pid, ipc,
 * uts and mount namespaces, a private /tmp (the Run's, on disk), no capabilities, no new privileges, no further user namespaces.
 * `--die-with-parent` is left out: a worker's death must not cost the engine the chance to save its state; the supervisor ends it in time.
 */
export function sandboxArguments(options: SandboxOptions, command: string, cwd: string, descriptors: SandboxDescriptors): string[] {
  const { bwrap, directory, readable, network } = options
  const { info, block, seccomp } = descriptors
  const { work, tmp, home, scratch } = directory
  return [
    bwrap,
    ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try', '--disable-userns'],
    ...(network ? [] : ['--unshare-net']),
    ...['--cap-drop', 'ALL', '--new-session', '--hostname', 'oarlock-run'],
    ...['--info-fd', `${info}`, '--block-fd', `${block}`],
    ...(seccomp === undefined ? [] : ['--seccomp', `${seccomp}`]),
    ...['--proc', '/proc', '--dev', '/dev', '--bind', tmp, '/tmp', '--bind', tmp, '/var/tmp'],
    ...systemDirectories.flatMap(bindSystemDirectory),
    ...systemFiles.flatMap(path => bindReadable(path)),
    ...[...readable, ...programFiles(command)].flatMap(path => bindReadable(path)),
    ...[work, tmp, home, scratch].flatMap(path => ['--bind', path, path]),
    ...['--chdir', cwd, '--'],
  ]
}

function bindSystemDirectory(path: string): string[] {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found) return []
  return found.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path]
}

/** What a link points to, at the link's path: /etc/resolv.conf often leads out of /etc. */
function bindReadable(path: string): string[] {
  try {
    return ['--ro-bind', realpathSync(path), path]
  } catch {
    return []
  }
}

/** A program outside the system's directories is bound alone, with what a link to it points to; its neighbours stay unseen. */
function programFiles(command: string): string[] {
  const path = existsSync(command) ? realpathSync(command) : command
  const isSystem = (each: string) => systemDirectories.some(root => each.startsWith(`${root}/`))
  return [...new Set([command, path])].filter(each => dirname(each) !== '/' && !isSystem(each))
}
