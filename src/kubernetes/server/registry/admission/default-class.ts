import type { KubeObject } from '../../../object/index.ts'

/** The name of the class that one of `annotations` marks as the default. Of several it is the newest, then the first by name. */
export function defaultClass(classes: Iterable<KubeObject>, annotations: readonly string[]): string | undefined {
  let best: KubeObject['metadata'] | undefined
  for (const { metadata } of classes) {
    if (!annotations.some(key => metadata.annotations?.[key] === 'true')) continue
    if (best === undefined || isBefore(metadata, best)) best = metadata
  }
  return best?.name
}

function isBefore(a: KubeObject['metadata'], b: KubeObject['metadata']): boolean {
  const [newer, older] = [a.creationTimestamp ?? '', b.creationTimestamp ?? '']
  return newer === older ? a.name < b.name : newer > older
}
