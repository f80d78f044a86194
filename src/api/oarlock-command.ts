/** The command line that a message suggests for an object, such as `oarlock run hello -n default`. `command` may contain a type: `describe stack`. */
export const oarlockCommand = (command: string, { name, namespace = 'default' }: { name: string; namespace?: string }): string =>
  `oarlock ${command} ${name} -n ${namespace}`
