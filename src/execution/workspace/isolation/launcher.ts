import { type Command, mutatedStackVariable, runUidVariable, type WrappedCommand } from '../process/index.ts'

type Launch = Pick<WrappedCommand, 'command' | 'args' | 'env'>

/** Only system directories: the launcher runs as the worker's user, before the program is isolated. */
export const launcherPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/**
 * A command line that executes `steps` in a shell and then becomes `argv`. The program must not run without its isolation: a step that
 * fails ends the shell. Of the Run's environment the launcher has only the variables by which leftover processes are found: a variable
 * such as LD_PRELOAD would execute code of the Stack outside of its isolation.
 */
export function launch(steps: readonly string[], argv: readonly string[], runEnv: Command['env']): Launch {
  const env: Record<string, string> = { PATH: launcherPath }
  for (const name of [runUidVariable, mutatedStackVariable]) if (runEnv[name] !== undefined) env[name] = runEnv[name]
  return { command: '/bin/sh', args: ['-c', [...steps, 'exec "$@"'].join(' && '), 'oarlock-start', ...argv], env }
}

/**
 * Like {@link launch}, for a program that gets its environment from the shell itself, immediately before it replaces the shell. The values are
 * passed under neutral names, in the environment and not in the arguments, which every user can read.
 */
export function launchProgram(steps: readonly string[], { command, args, env }: Command): Launch {
  const names = Object.keys(env).filter(isShellName)
  const exported = names.map((name, index) => `export ${name}="$${valueName(index)}" && unset ${valueName(index)}`)
  const started = launch([...steps, ...exported], [command, ...args], env)
  for (const [index, name] of names.entries()) started.env[valueName(index)] = env[name]!
  return started
}

const valueName = (index: number): string => `OARLOCK_LAUNCH_VALUE_${index}`

/** A shell passes no other names on (dash drops them), and some shells reserve a few, which end the shell when they are set. */
const isShellName = (name: string): boolean =>
  /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !['UID', 'EUID', 'PPID', 'BASHOPTS', 'SHELLOPTS', 'BASH_VERSINFO'].includes(name)

export const quoteForShell = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
