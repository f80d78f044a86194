import type { Command } from 'commander'
import { usageError } from '../cli-error.ts'
import { print } from '../terminal.ts'

export const shells = ['bash', 'zsh', 'fish'] as const

/** The types that are offered; others work too. */
const types = ['stacks', 'runs', 'workers', 'workerpools', 'secrets', 'configmaps', 'namespaces', 'events', 'leases', 'oarlock']
const stackCommands = ['plan', 'run', 'approve', 'reject', 'destroy', 'logs', 'cancel', 'suspend', 'resume', 'shards']
const workerCommands = ['cordon', 'uncordon', 'drain']
/** Has commands of its own, most of which take a Stack. */
const nestedCommand = 'state'
const typeCommands = ['get', 'describe', 'delete']

type CompletedCommand = { name: string; description: string; options: string[]; commands: string[] }

/** `oarlock completion bash|zsh|fish`: prints a completion script. */
export function completion(program: Command, shell: string): void {
  const commands: CompletedCommand[] = program.commands.map(command => ({
    name: command.name(),
    description: command.description(),
    options: [...new Set([command, ...command.commands].flatMap(({ options }) => options.flatMap(({ long }) => (long ? [long] : []))))],
    commands: command.commands.map(each => each.name()),
  }))
  if (shell === 'bash') print(bash(commands))
  else if (shell === 'zsh') print(zsh(commands))
  else if (shell === 'fish') print(fish(commands))
  else throw usageError(`shell must be one of ${shells.join(', ')}, got ${JSON.stringify(shell)}`)
}

const bash = (commands: readonly CompletedCommand[]) => `# oarlock completion for bash: source <(oarlock completion bash)
_oarlock() {
  local word="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" command="\${COMP_WORDS[1]}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then words="${commands.map(({ name }) => name).join(' ')}"
  elif [ "$previous" = -o ] || [ "$previous" = --output ]; then words="json yaml wide name jsonpath="
  elif [ "$previous" = -n ] || [ "$previous" = --namespace ]; then words="$(oarlock get namespaces -o name 2>/dev/null | cut -d/ -f2)"
  elif [[ "$word" = -* ]]; then case "$command" in
${commands.map(({ name, options }) => `    ${name}) words="${options.join(' ')}" ;;`).join('\n')}
    esac
  else case "$command" in
    ${typeCommands.join('|')}) [ "$COMP_CWORD" -eq 2 ] && words="${types.join(' ')}" ;;
    ${stackCommands.join('|')}) words="$(oarlock get stacks -o name 2>/dev/null | cut -d/ -f2)" ;;
    ${workerCommands.join('|')}) words="$(oarlock get workers -o name 2>/dev/null | cut -d/ -f2)" ;;
    ${nestedCommand}) if [ "$COMP_CWORD" -eq 2 ]; then words="${commands.find(({ name }) => name === nestedCommand)?.commands.join(' ')}"
      else words="$(oarlock get stacks -o name 2>/dev/null | cut -d/ -f2)"; fi ;;
    cache) [ "$COMP_CWORD" -eq 2 ] && words="${commands.find(({ name }) => name === 'cache')?.commands.join(' ')}" ;;
    completion) words="${shells.join(' ')}" ;;
    *) COMPREPLY=($(compgen -f -- "$word")); return ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -F _oarlock oarlock`

const zsh = (commands: readonly CompletedCommand[]) => `#compdef oarlock
# oarlock completion for zsh: source <(oarlock completion zsh)
autoload -U +X bashcompinit && bashcompinit
${bash(commands)}`

const quoted = (text: string) => `'${text.replaceAll("'", "\\'")}'`
const fish = (commands: readonly CompletedCommand[]) => `# oarlock completion for fish: oarlock completion fish | source
complete -c oarlock -f
${commands
  .flatMap(({ name, description, options }) => [
    `complete -c oarlock -n __fish_use_subcommand -a ${name} -d ${quoted(description)}`,
    ...options.map(option => `complete -c oarlock -n '__fish_seen_subcommand_from ${name}' -l ${option.slice(2)}`),
  ])
  .join('\n')}
complete -c oarlock -n '__fish_seen_subcommand_from ${typeCommands.join(' ')}' -a '${types.join(' ')}'
complete -c oarlock -n '__fish_seen_subcommand_from ${stackCommands.join(' ')}' -a '(oarlock get stacks -o name 2>/dev/null | string replace -r ".*/" "")'
complete -c oarlock -n '__fish_seen_subcommand_from ${workerCommands.join(' ')}' -a '(oarlock get workers -o name 2>/dev/null | string replace -r ".*/" "")'
complete -c oarlock -n '__fish_seen_subcommand_from ${nestedCommand}' -a '${commands.find(({ name }) => name === nestedCommand)?.commands.join(' ')} (oarlock get stacks -o name 2>/dev/null | string replace -r ".*/" "")'
complete -c oarlock -n '__fish_seen_subcommand_from cache' -a '${commands.find(({ name }) => name === 'cache')?.commands.join(' ')}'
complete -c oarlock -n '__fish_seen_subcommand_from apply delete' -F`
