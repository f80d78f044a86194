import { isJsonObject, type KubeObject } from '../../../object/index.ts'

/** The names of the objects that a kubelet needs to run a Pod, in the namespace of the Pod. */
export type PodReferences = {
  readonly secrets: ReadonlySet<string>
  readonly configMaps: ReadonlySet<string>
  readonly claims: ReadonlySet<string>
  readonly serviceAccount: string
  /** Of service account tokens that its volumes project; empty for the audience of the API server. */
  readonly tokenAudiences: ReadonlySet<string>
}

const mirrorAnnotation = 'kubernetes.io/config.mirror'

/** A mirror Pod shows a static Pod, which a kubelet runs from a file: the kubelet itself creates it. */
export const isMirrorPod = ({ metadata }: KubeObject): boolean => metadata.annotations?.[mirrorAnnotation] !== undefined

/** Reads what the spec of a Pod refers to. */
export function podReferences(pod: KubeObject): PodReferences {
  const secrets = new Set<string>()
  const configMaps = new Set<string>()
  const claims = new Set<string>()
  const tokenAudiences = new Set<string>()
  const add = (to: Set<string>, name: unknown) => {
    if (typeof name === 'string' && name !== '') to.add(name)
  }
  const spec = fields(pod.spec)
  for (const { name } of items(spec.imagePullSecrets)) add(secrets, name)
  for (const container of [...items(spec.initContainers), ...items(spec.containers), ...items(spec.ephemeralContainers)]) {
    for (const { secretRef, configMapRef } of items(container.envFrom)) {
      add(secrets, fields(secretRef).name)
      add(configMaps, fields(configMapRef).name)
    }
    for (const { valueFrom } of items(container.env)) {
      add(secrets, fields(fields(valueFrom).secretKeyRef).name)
      add(configMaps, fields(fields(valueFrom).configMapKeyRef).name)
    }
  }
  for (const volume of items(spec.volumes)) {
    add(claims, fields(volume.persistentVolumeClaim).claimName)
    if (volume.ephemeral !== undefined) add(claims, `${pod.metadata.name}-${String(volume.name)}`)
    add(configMaps, fields(volume.configMap).name)
    add(secrets, fields(volume.secret).secretName)
    // azureFile names its Secret in the same way, the other drivers by a reference.
    add(secrets, fields(volume.azureFile).secretName)
    for (const source of Object.values(volume)) {
      add(secrets, fields(fields(source).secretRef).name)
      add(secrets, fields(fields(source).nodePublishSecretRef).name)
    }
    for (const { secret, configMap, serviceAccountToken } of items(fields(volume.projected).sources)) {
      add(secrets, fields(secret).name)
      add(configMaps, fields(configMap).name)
      if (serviceAccountToken !== undefined) tokenAudiences.add(String(fields(serviceAccountToken).audience ?? ''))
    }
  }
  return { secrets, configMaps, claims, serviceAccount: String(spec.serviceAccountName ?? ''), tokenAudiences }
}

/** The Secrets, as `namespace/name`, that the driver of a PersistentVolume gets. */
export function volumeSecrets({ spec }: KubeObject): Set<string> {
  const found = new Set<string>()
  const claimNamespace = fields(fields(spec).claimRef).namespace
  for (const source of Object.values(fields(spec))) {
    for (const [field, reference] of Object.entries(fields(source))) {
      const { name, namespace = claimNamespace } = fields(reference)
      // Not those of the controller, which runs elsewhere.
      if (/^(secretRef|nodeStageSecretRef|nodePublishSecretRef|nodeExpandSecretRef)$/.test(field)) found.add(`${namespace}/${name}`)
    }
    const { secretName, secretNamespace } = fields(source)
    if (typeof secretName === 'string') found.add(`${secretNamespace ?? claimNamespace}/${secretName}`)
  }
  return found
}

const fields = (value: unknown): Record<string, unknown> => (isJsonObject(value) ? value : {})
const items = (value: unknown): Record<string, unknown>[] => (Array.isArray(value) ? value.map(fields) : [])
