import { equalJson, type KubeObject } from '../object/index.ts'

/** A change as predicates see it. `isInitial` is true for objects of the initial list. */
export type Change<Body = unknown> =
  | { type: 'added'; object: KubeObject<Body>; isInitial: boolean }
  | { type: 'updated'; object: KubeObject<Body>; old: KubeObject<Body> }
  | { type: 'deleted'; object: KubeObject<Body> }

/**
 * Whether a change triggers a reconcile. The method form makes the parameter bivariant, so that predicates of a more general or more
 * specific type can be used for a kind.
 */
export type Predicate<Body = unknown> = { test(change: Change<Body>): boolean }['test']

const updated =
  (hasChanged: (old: KubeObject<unknown>, object: KubeObject<unknown>) => boolean): Predicate =>
  change =>
    change.type !== 'updated' || hasChanged(change.old, change.object)

export const predicates: {
  /** Passes updates that changed the spec or started the deletion; filters out the controller's own status writes. */
  readonly generationChanged: Predicate
  readonly labelsChanged: Predicate
  readonly annotationsChanged: Predicate
  and<Body>(...all: Predicate<Body>[]): Predicate<Body>
  or<Body>(...some: Predicate<Body>[]): Predicate<Body>
  not<Body>(predicate: Predicate<Body>): Predicate<Body>
} = {
  generationChanged: updated(
    (old, { metadata }) => metadata.generation !== old.metadata.generation || metadata.deletionTimestamp !== old.metadata.deletionTimestamp,
  ),
  labelsChanged: updated((old, { metadata }) => !equalJson(old.metadata.labels ?? {}, metadata.labels ?? {})),
  annotationsChanged: updated((old, { metadata }) => !equalJson(old.metadata.annotations ?? {}, metadata.annotations ?? {})),
  and:
    (...all) =>
    change =>
      all.every(predicate => predicate(change)),
  or:
    (...some) =>
    change =>
      some.some(predicate => predicate(change)),
  not: predicate => change => !predicate(change),
}
