import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import type { Command } from 'commander'
import { makeProgram } from './program.ts'

const exitWith = () => undefined
const all = await makeProgram(undefined, exitWith)
const withSubcommands = (command: Command): Command[] => [command, ...command.commands.flatMap(withSubcommands)]

test('help of every command fits 80 columns, and describes every argument and option', () => {
  for (const command of withSubcommands(all)) {
    command.configureOutput({ getOutHelpWidth: () => 80 })
    const tooLong = command
      .helpInformation()
      .split('\n')
      .filter(line => line.length > 80)
    deepEqual(tooLong, [], command.name())
    for (const { description } of [...command.options, ...command.registeredArguments]) ok(description !== '', command.name())
  }
})

test('oarlock --help has one line for each command', () => {
  const lines = all.helpInformation().split('\n')
  const width = Math.max(...all.commands.map(command => command.name().length))
  for (const command of all.commands) ok(lines.includes(`  ${command.name().padEnd(width)}  ${command.description()}`), command.name())
})

test('only the command that is named is declared, under its own name', async () => {
  for (const { name } of all.commands.map(command => ({ name: command.name() }))) {
    const program = await makeProgram(name, exitWith)
    if (name !== 'completion')
      deepEqual(
        program.commands.map(command => command.name()),
        [name],
      )
  }
  equal((await makeProgram('unknown', exitWith)).commands.length, all.commands.length)
})
