import { after, afterEach, before } from 'node:test'
import type { Registry } from 'prom-client'
import { type Client, configMapResource } from '../../src/kubernetes/client/index.ts'
import {
  type Controller,
  type ControllerOptions,
  controller,
  Manager,
  type ReconcileRequest,
  type Result,
  type ShardOptions,
  silentLog,
} from '../../src/kubernetes/controller/index.ts'
import { defineResource, type ObjectOf, Type } from '../../src/kubernetes/object/index.ts'
import { startTestServer, type TestServer } from '../../src/kubernetes/testing/index.ts'
import { eventually } from './eventually.ts'

export const boatResource = defineResource({
  group: 'sharding.example',
  version: 'v1',
  kind: 'Boat',
  plural: 'boats',
  scope: 'Namespaced',
  description: 'A boat.',
  spec: Type.Object({ seats: Type.Optional(Type.Integer()) }),
  status: Type.Object({ crew: Type.Optional(Type.Integer()) }),
})
export type Boat = ObjectOf<typeof boatResource>
export type BoatRequest = ReconcileRequest<Boat>
export type Reconcile = (request: BoatRequest) => Promise<Result>

export const namespace = 'default'

/** A member of a ring: its manager, its controller of Boats, which own ConfigMaps, and the reconciles that began. */
export type Member = { manager: Manager; boats: Controller; requests: BoatRequest[]; reconciled: Map<string, number> }

export type ShardedBoatsOptions = {
  durations: Pick<ShardOptions, 'leaseDurationMs' | 'renewDeadlineMs' | 'retryPeriodMs'>
  watches?: ControllerOptions<Boat>['watches']
}

/** A server for the tests of one file, and members of rings on it, which stop after each test; the Boats are deleted then. Call it at the top of the file. */
export class ShardedBoats {
  readonly #options: ShardedBoatsOptions
  readonly #managers = new Set<Manager>()
  #server: TestServer | undefined
  #rings = 0

  constructor(options: ShardedBoatsOptions) {
    this.#options = options
    before(async () => {
      this.#server = await startTestServer({ kinds: [boatResource] })
    })
    after(() => this.api.close())
    afterEach(async () => {
      await Promise.all([...this.#managers].map(manager => manager.stop({ graceMs: 1_000 })))
      this.#managers.clear()
      await this.api.client.request({ method: 'DELETE', path: `/apis/sharding.example/v1/namespaces/${namespace}/boats` })
    })
  }

  get api(): TestServer {
    if (!this.#server) throw new Error('the server of the Boats has not started: use it in tests only')
    return this.#server
  }

  newRing(slots: number): ShardOptions {
    return { name: `ring${this.#rings++}`, namespace, slots, ...this.#options.durations }
  }

  async start(
    shards: ShardOptions,
    reconcile: Reconcile = async () => undefined,
    options: { registry?: Registry; client?: Client } = {},
  ): Promise<Member> {
    const manager = new Manager({ client: this.api.client, log: silentLog, shards, ...options })
    const requests: BoatRequest[] = []
    const reconciled = new Map<string, number>()
    const boats = controller({
      name: 'boats',
      for: boatResource,
      owns: [configMapResource],
      watches: this.#options.watches,
      async reconcile(typed) {
        const request = typed as BoatRequest
        reconciled.set(request.key, (reconciled.get(request.key) ?? 0) + 1)
        requests.push(request)
        // Read when it begins: tests look at it later.
        void request.object
        return await reconcile(request)
      },
    })
    manager.add(boats)
    this.#managers.add(manager)
    await manager.start()
    return { manager, boats, requests, reconciled }
  }

  /** Members that share all buckets equally. */
  async startTwo(reconcile?: Reconcile): Promise<[Member, Member]> {
    const ring = this.newRing(2)
    const members: [Member, Member] = [await this.start(ring, reconcile), await this.start(ring, reconcile)]
    await eventually(() => members.every(member => activeOf(member) === 512), 'two halves')
    return members
  }

  create(name: string): Promise<Boat> {
    return this.api.client.resource(boatResource).create({ metadata: { name, namespace }, spec: {} })
  }
}

/** How many buckets a member works on. */
export const activeOf = ({ manager }: Member): number => manager.shards?.counts().active ?? 0

export const owns = ({ manager }: Member, { metadata }: { metadata: { uid: string } }): boolean =>
  manager.shards?.owns(metadata.uid) === true

/** The owner of a Boat and the other one of two members. */
export const ownerFirst = (members: readonly [Member, Member], boat: Boat): [Member, Member] =>
  owns(members[0], boat) ? [members[0], members[1]] : [members[1], members[0]]

export const keyOf = ({ metadata }: Boat): string => `${namespace}/${metadata.name}`

/** Resolves when each of the Boats has been reconciled by one of the members. */
export async function untilReconciled(boats: readonly Boat[], members: readonly Member[]): Promise<void> {
  await eventually(() => boats.every(boat => members.some(({ reconciled }) => reconciled.has(keyOf(boat)))), 'all keys')
}
