/** An external system in memory that accepts duplicates and counts them, and the kind and controller of its resources. */
import { defineResource, type Resource, Type } from '../../kubernetes/object/index.ts'
import { type ManagedOptions, managedSpec, managedStatus } from './index.ts'

export const bucketResource = defineResource({
  group: 'cloud.example',
  version: 'v1',
  kind: 'Bucket',
  plural: 'buckets',
  scope: 'Namespaced',
  description: 'A bucket of the fake cloud.',
  spec: managedSpec(
    Type.Object({
      size: Type.Optional(Type.Integer()),
      region: Type.Optional(Type.String()),
      owner: Type.Optional(Type.String()),
      ownerRef: Type.Optional(Type.Object({ name: Type.String() })),
    }),
  ),
  status: managedStatus(Type.Object({ size: Type.Optional(Type.Integer()) })),
})

export type BucketBody = typeof bucketResource extends Resource<infer Body> ? Body : never

type Thing = { id: string; name: string; size: number; region: string }

/** Calls of the fake cloud, in order, and what exists in it. */
export class FakeCloud {
  readonly things: Thing[] = []
  readonly calls: string[] = []
  connections = 0
  /** Called before a creation takes effect, and after it. */
  beforeCreate: (() => Promise<void> | void) | undefined
  afterCreate: (() => Promise<void> | void) | undefined

  /** How many things there are beyond the first of each name. */
  get duplicates(): number {
    return this.things.length - new Set(this.things.map(({ name }) => name)).size
  }
}

type Connection = { cloud: FakeCloud }

/** The author's part of a provider for the fake cloud. */
export function bucketOptions(cloud: FakeCloud): ManagedOptions<BucketBody, Connection, Thing> {
  const count = (call: string) => cloud.calls.push(call)
  return {
    kind: bucketResource,
    async connect() {
      cloud.connections++
      return { cloud }
    },
    async disconnect() {
      cloud.connections--
    },
    async observe(_, { object, externalName }) {
      count(`observe ${object.metadata.name}`)
      const thing = cloud.things.find(({ id, name }) => id === externalName || name === externalName)
      if (!thing) return { exists: false }
      const { size = thing.size } = object.spec.forProvider
      return {
        ...{ exists: true, isUpToDate: size === thing.size, diff: `size: ${thing.size} -> ${size}`, state: thing },
        ...{ atProvider: { size: thing.size }, connectionDetails: { url: `cloud://${thing.id}` } },
      }
    },
    async create(_, { object, externalName }) {
      count(`create ${object.metadata.name}`)
      await cloud.beforeCreate?.()
      const { size = 1, region = 'eu' } = object.spec.forProvider
      const thing = { id: `id-${cloud.things.length}`, name: externalName ?? object.metadata.name, size, region }
      cloud.things.push(thing)
      await cloud.afterCreate?.()
      return { connectionDetails: { password: 'secret' } }
    },
    async update(_, { object }, { state }) {
      count(`update ${object.metadata.name}`)
      if (state) state.size = object.spec.forProvider.size ?? state.size
    },
    async delete(_, { object }, { state }) {
      count(`delete ${object.metadata.name}`)
      if (state) cloud.things.splice(cloud.things.indexOf(state), 1)
    },
    lateInitialize: ({ state }) => state && { region: state.region },
  }
}
