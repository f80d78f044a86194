import { installation } from '../../app/index.ts'
import { serialize } from '../output/print-objects.ts'
import { print } from '../terminal.ts'

/** `oarlock manifests`: one YAML document per object. */
export async function manifests(options: { policies: boolean; externalMetrics?: boolean }): Promise<void> {
  const { installationObjects } = await installation()
  for (const object of installationObjects(options)) print(`---\n${(await serialize(object, 'yaml')).trimEnd()}`)
}
