import { installation } from '../../app/index.ts'
import { print } from '../console.ts'
import { serialize } from '../output/print-objects.ts'

/** `oarlock manifests`: one YAML document per object. */
export async function manifests(options: { policies: boolean; externalMetrics?: boolean }): Promise<void> {
  const { installationObjects } = await installation()
  for (const object of installationObjects(options)) print(`---\n${(await serialize(object, 'yaml')).trimEnd()}`)
}
