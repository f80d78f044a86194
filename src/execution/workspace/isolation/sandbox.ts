import { existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Command } from '../process/index.ts'
import type { RunDirectory } from '../run-directory.ts'

export type SandboxOptions = {
  directory: RunDirectory
  /** Absolute paths that may be read in addition, such as a directory of tools. Missing paths are ignored. */
  readable: readonly string[]
  /** False: no network except a private loopback device. */
  network: boolean
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
export type SandboxDescriptors = { info: number; block: number; seccomp: number }

/**
 * The options of bubblewrap for one Run: an empty root with selected bind mounts at their original paths, separate
 * user, pid, ipc, uts and mount namespaces, a private /tmp (in the Run's directory), no capabilities, no new privileges, no nested user
 * namespaces. Without `--die-with-parent`: when the worker crashes, the engine can still save its state; the supervisor stops it in time.
 * The environment of the program is among the options: bubblewrap and the dynamic loader that starts it run outside of the sandbox.
 */
export function sandboxOptions(options: SandboxOptions, { command, cwd, env }: Command, descriptors: SandboxDescriptors): string[] {
  const { directory, readable, network } = options
  const { info, block, seccomp } = descriptors
  const { work, tmp, home, scratch } = directory
  return [
    ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try', '--disable-userns'],
    ...(network ? [] : ['--unshare-net']),
    ...['--cap-drop', 'ALL', '--new-session', '--hostname', 'oarlock-run'],
    ...['--info-fd', `${info}`, '--block-fd', `${block}`, '--seccomp', `${seccomp}`],
    ...['--proc', '/proc', '--dev', '/dev', '--bind', tmp, '/tmp', '--bind', tmp, '/var/tmp'],
    ...systemDirectories.flatMap(bindSystemDirectory),
    ...systemFiles.flatMap(path => bindReadable(path)),
    ...[...readable, ...programFiles(command)].flatMap(path => bindReadable(path)),
    ...[work, tmp, home, scratch].flatMap(path => ['--bind', path, path]),
    ...['--chdir', cwd, '--clearenv', ...Object.entries(env).flatMap(([name, value]) => ['--setenv', name, value])],
  ]
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

/** A program outside of the system directories is bound alone, together with its symlink target; other files of its directory stay hidden. */
function programFiles(command: string): string[] {
  const path = existsSync(command) ? realpathSync(command) : command
  const isSystem = (each: string) => systemDirectories.some(root => each.startsWith(`${root}/`))
  return [...new Set([command, path])].filter(each => dirname(each) !== '/' && !isSystem(each))
}
