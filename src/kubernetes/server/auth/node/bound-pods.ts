import { isJsonObject, type KubeObject } from '../../../object/index.ts'
import { parseEntry, type Store, type StoredEntry, type Table } from '../../storage/index.ts'
import { isMirrorPod, type PodReferences, podReferences, volumeSecrets } from './pod-references.ts'

type BoundPod = { readonly pod: KubeObject; readonly references: PodReferences }

/**
 * What the Pods bound to a Node refer to. It is read from the stored Pods for each question: a kubelet asks when a Pod starts, and a Pod is
 * parsed once for all questions.
 */
export class BoundPods {
  readonly #pods: Table
  readonly #claims: Table
  readonly #volumes: Table
  readonly #parsed = new WeakMap<StoredEntry, BoundPod>()

  constructor(store: Store) {
    this.#pods = store.table('pods')
    this.#claims = store.table('persistentvolumeclaims')
    this.#volumes = store.table('persistentvolumes')
  }

  /** The Pod, if it is bound to the Node. */
  find(node: string, namespace: string, name: string): BoundPod | undefined {
    const entry = this.#pods.get(`${namespace}/${name}`)
    return entry && this.#isOn(entry, node) ? this.#parse(entry) : undefined
  }

  /** Whether a Pod of the namespace that is bound to the Node refers to the object. A mirror Pod gives no right: its kubelet wrote it. */
  refers(node: string, namespace: string, wanted: (references: PodReferences) => boolean): boolean {
    for (const { references } of this.#on(node, this.#pods.inNamespace(namespace))) if (wanted(references)) return true
    return false
  }

  /** Whether a volume is bound to a claim of a Pod that is bound to the Node. */
  usesVolume(node: string, volume: string): boolean {
    const claim = this.#claimOf(volume)
    return claim !== undefined && this.refers(node, claim.namespace, ({ claims }) => claims.has(claim.name))
  }

  /** Whether the driver of such a volume needs the Secret. */
  volumeNeedsSecret(node: string, namespace: string, name: string): boolean {
    const secret = `${namespace}/${name}`
    for (const { pod, references } of this.#on(node, this.#pods.values())) {
      for (const claim of references.claims) {
        const entry = this.#claims.get(`${pod.metadata.namespace}/${claim}`)
        const { volumeName } = fields(entry && parseEntry(entry).spec)
        const volume = typeof volumeName === 'string' && this.usesVolume(node, volumeName) ? this.#volumes.get(volumeName) : undefined
        if (volume && volumeSecrets(parseEntry(volume)).has(secret)) return true
      }
    }
    return false
  }

  #claimOf(volumeName: string): { namespace: string; name: string } | undefined {
    const volume = this.#volumes.get(volumeName)
    const { namespace, name, uid } = fields(volume && fields(parseEntry(volume).spec).claimRef)
    if (typeof namespace !== 'string' || typeof name !== 'string') return undefined
    const claim = this.#claims.get(`${namespace}/${name}`)
    // The volume of a deleted claim is not that of a new one with its name.
    if (!claim || claim.uid !== uid || fields(parseEntry(claim).spec).volumeName !== volumeName) return undefined
    return { namespace, name }
  }

  *#on(node: string, entries: Iterable<StoredEntry>): Generator<BoundPod> {
    for (const entry of entries) {
      if (!this.#isOn(entry, node)) continue
      const found = this.#parse(entry)
      if (!isMirrorPod(found.pod)) yield found
    }
  }

  #isOn({ fields: values }: StoredEntry, node: string): boolean {
    const index = this.#pods.fieldNames.indexOf('spec.nodeName')
    return index >= 0 && values?.[index] === node
  }

  #parse(entry: StoredEntry): BoundPod {
    let found = this.#parsed.get(entry)
    if (!found) {
      const pod = parseEntry(entry)
      found = { pod, references: podReferences(pod) }
      this.#parsed.set(entry, found)
    }
    return found
  }
}

const fields = (value: unknown): Record<string, unknown> => (isJsonObject(value) ? value : {})
