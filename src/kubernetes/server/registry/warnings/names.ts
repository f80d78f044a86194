import { type KubeObject, nameErrors } from '../../../object/index.ts'

function warn({ metadata: { name } }: KubeObject, oldObject: KubeObject | undefined, use: string): string[] {
  const reasons = oldObject ? [] : nameErrors(name, 'dns1123Label')
  if (reasons.length === 0) return []
  return [
    `metadata.name: this is used in ${use}, which can result in surprising behavior; a DNS label is recommended: [${reasons.join(' ')}]`,
  ]
}

/** Warns about a new workload whose name is not a DNS label: the names of its Pods begin with it. */
export function workloadNameWarnings(object: KubeObject, oldObject: KubeObject | undefined): string[] {
  return warn(object, oldObject, 'Pod names and hostnames')
}

export function podNameWarnings(pod: KubeObject, oldObject: KubeObject | undefined): string[] {
  return warn(pod, oldObject, "the Pod's hostname")
}
