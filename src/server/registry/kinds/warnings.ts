import { type KubeObject, nameErrors } from '../../../kube/index.ts'

/** A workload whose name is no label, told when it is made: its Pods' names begin with it. */
export function nameWarnings({ metadata: { name } }: KubeObject, before: KubeObject | undefined): string[] {
  const whys = before ? [] : nameErrors(name, 'dns1123Label')
  if (whys.length === 0) return []
  const effect = 'this is used in Pod names and hostnames, which can result in surprising behavior'
  return [`metadata.name: ${effect}; a DNS label is recommended: [${whys.join(' ')}]`]
}
