import { serialize } from '../output/print-objects.ts'
import { print } from '../terminal.ts'
import { packageVersion } from '../version.ts'

/** `oarlock version [-o json|yaml]` */
export async function version({ output }: { output?: string }): Promise<void> {
  const facts = { version: packageVersion(), node: process.version, platform: `${process.platform}-${process.arch}` }
  if (output === 'json' || output === 'yaml') print(await serialize(facts, output))
  else print(`oarlock ${facts.version} (node ${facts.node}, ${facts.platform})`)
}
