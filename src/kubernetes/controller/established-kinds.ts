import type { CrdBody } from '../client/index.ts'
import { isConditionTrue, type KubeObject, type Resource } from '../object/index.ts'
import type { Informer, InformerOptions } from './informer.ts'

type Follower = { readonly version: string; isServed: boolean; readonly onChange: (isServed: boolean) => void }

/** What the cache of CRDs keeps: their schemas are large, and nothing here reads them. */
export const crdInformer: InformerOptions<CrdBody> = {
  transform: ({ apiVersion, kind, metadata, spec, status }) => {
    const versions = (spec.versions as { name: string; served: boolean }[] | undefined) ?? []
    const { name, uid, resourceVersion, creationTimestamp } = metadata
    return {
      ...{ apiVersion, kind, metadata: { name, uid, resourceVersion, creationTimestamp } },
      spec: { versions: versions.map(version => ({ name: version.name, served: version.served })) },
      status: { conditions: status?.conditions?.map(({ type, status: value }) => ({ type, status: value })) },
    }
  },
}

/** Reports when the CRD of a kind is Established with the kind's version, and when it no longer is. */
export class EstablishedKinds {
  readonly #followers = new Map<string, Follower[]>()
  readonly #crds: Informer<CrdBody>

  constructor(crds: Informer<CrdBody>) {
    this.#crds = crds
    crds.onChange({ changed: ({ type, object }) => this.#changed(object, type === 'deleted') })
  }

  /** Calls `onChange` at every change; the first time only if the kind is served. */
  follow({ plural, group, version }: Resource<unknown>, onChange: (isServed: boolean) => void): void {
    const name = `${plural}.${group}`
    const crd = this.#crds.get(name)
    const follower = { version, isServed: false, onChange }
    this.#followers.set(name, [...(this.#followers.get(name) ?? []), follower])
    if (crd) this.#changed(crd, false)
  }

  #changed(crd: KubeObject<CrdBody>, isDeleted: boolean): void {
    const isEstablished = !isDeleted && isConditionTrue(crd.status?.conditions as never, 'Established')
    const versions = crd.spec.versions as { name: string; served: boolean }[]
    for (const follower of this.#followers.get(crd.metadata.name) ?? []) {
      const isServed = isEstablished && versions.some(({ name, served }) => served && name === follower.version)
      if (isServed === follower.isServed) continue
      follower.isServed = isServed
      follower.onChange(isServed)
    }
  }
}
