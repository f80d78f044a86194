import { execFile } from 'node:child_process'
import { existsSync, lstatSync } from 'node:fs'
import { dirname } from 'node:path'
import { SpawnError, type WrappedCommand } from '../process/index.ts'
import { launcherPath, quoteForShell } from './launcher.ts'

/** A directory that programs of a Run see, read-only, at a directory of the Run. Both paths are absolute. */
export type ReadOnlyMount = { readonly source: string; readonly target: string }

/**
 * Checks that each target is a directory of the Run, reached through no symlink: a program of the Run may have replaced one, and a mount is
 * made by the worker's user. Called before each program; no other program of the Run may be running that could replace one meanwhile.
 * @throws {SpawnError}
 */
export function checkMountPoints(mounts: readonly ReadOnlyMount[], root: string, command: string): void {
  for (const { target } of mounts) {
    for (let path = target; path !== root; path = dirname(path)) {
      if (path === dirname(path)) throw new RangeError(`the target of a mount must be below ${root}, got ${target}`)
      if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) continue
      const message = `${JSON.stringify(command)} was not started: ${path}, where dependencies are mounted, is not a directory any more; a program of this Run has replaced it`
      throw new SpawnError('SpawnFailed', command, message)
    }
  }
}

/** The arguments of bubblewrap. */
export const bindMounts = (mounts: readonly ReadOnlyMount[]): string[] =>
  mounts.flatMap(({ source, target }) => ['--ro-bind', source, target])

/** The steps of the launcher of a program without a sandbox, in {@link inMountNamespace}. */
export const mountSteps = (mounts: readonly ReadOnlyMount[]): string[] =>
  mounts.flatMap(({ source, target }) => [
    `mount --bind ${quoteForShell(source)} ${quoteForShell(target)}`,
    `mount -o remount,bind,ro,nosuid,nodev ${quoteForShell(target)}`,
  ])

/** Starts the launcher in a mount namespace of its own. Nothing else is separate: it keeps its process ID, its user and its capabilities. */
export function inMountNamespace(
  launched: Pick<WrappedCommand, 'command' | 'args' | 'env'>,
): Pick<WrappedCommand, 'command' | 'args' | 'env'> {
  return { ...launched, command: unshare, args: [...namespaceArguments, launched.command, ...launched.args] }
}

const unshare = '/usr/bin/unshare'
/** `slave`: what is mounted on the machine meanwhile is visible, and nothing is mounted there. */
const namespaceArguments = ['--mount', '--propagation', 'slave', '--']

let probe: Promise<boolean> | undefined

/** Whether a program without a sandbox can get mounts: the worker is root and may mount, which most containers forbid. */
export function canMountWithoutSandbox(): Promise<boolean> {
  probe ??= (async () => {
    if (process.platform !== 'linux' || process.getuid?.() !== 0 || !existsSync(unshare)) return false
    const script = [...mountSteps([{ source: '/etc', target: '/etc' }]), '! touch /etc/.oarlock-probe 2>/dev/null'].join(' && ')
    return await new Promise<boolean>(resolve => {
      execFile(unshare, [...namespaceArguments, '/bin/sh', '-c', script], { timeout: 10_000, env: { PATH: launcherPath } }, error =>
        resolve(!error),
      )
    })
  })()
  return probe
}
