import type { KubeObject, StatusCause } from '../../object/index.ts'

/**
 * What happens to an object of one kind between decoding and storing. The names are those of Kubernetes' registry strategies
 * (`k8s.io/apiserver/pkg/registry/rest`). Functions with a parameter `oldObject` serve creates too, where it is undefined.
 * The order of a write: {@link default}, {@link prepareForWrite}, {@link prepareForCreate}, {@link validate}, {@link validateAdmission}.
 */
export type Strategy = {
  /** Fields that the Go type of the kind always has, with their initial values. They have no owner in `metadata.managedFields`. */
  readonly zeroValue?: { [field: string]: unknown }
  /**
   * Only for kinds with a Kubernetes type; it replaces validation against `schema` and the defaults of `schema`. Returns the object in the
   * form of its Go type, with all defaults. The argument is not changed.
   * @throws {StatusError} BadRequest for a field of the wrong type.
   */
  readonly default?: (object: KubeObject) => KubeObject
  /** `PrepareForCreate` and `PrepareForUpdate`: sets the fields that the server decides, on a copy that may be changed. */
  readonly prepareForWrite?: (object: KubeObject, oldObject: KubeObject | undefined) => void
  /**
   * Sets generated fields of a new object after {@link prepareForWrite}, on a copy whose nested values must not be changed.
   * Unlike the rest of the object they have no owner in `metadata.managedFields`.
   */
  readonly prepareForCreate?: (object: KubeObject) => void
  /** As {@link prepareForWrite}, for a write through the status subresource. */
  readonly prepareForStatusUpdate?: (object: KubeObject, oldObject: KubeObject) => void
  /** Rules that the schema cannot express. */
  readonly validate?: (object: KubeObject, oldObject: KubeObject | undefined) => StatusCause[]
  /** Rules for a write through the status subresource; default: {@link validate}. */
  readonly validateStatusUpdate?: Strategy['validate']
  /**
   * Validating admission of a valid object; it may read other objects.
   * @throws {StatusError} Forbidden.
   */
  readonly validateAdmission?: (object: KubeObject, oldObject: KubeObject | undefined) => void
  /** `WarningsOnCreate` and `WarningsOnUpdate`: texts for Warning headers. */
  readonly warnings?: (object: KubeObject, oldObject: KubeObject | undefined) => string[]
  /** Whether an update increments `metadata.generation`; default: every change outside metadata and status does. */
  readonly incrementsGeneration?: (object: KubeObject, oldObject: KubeObject) => boolean
  /**
   * An update that is acknowledged before it is on disk, because its content is worth nothing after some seconds. The one exception to
   * invariants 5 and 6: a crash may undo it, see `storage/deferred-writes.ts`. Default: none.
   */
  readonly isRenewal?: (object: KubeObject, oldObject: KubeObject) => boolean
  /** An update of an object that does not exist creates it, if the user may create it. */
  readonly allowCreateOnUpdate?: boolean
  /** Why `object` may not be deleted; undefined if it may. */
  readonly validateDelete?: (object: KubeObject) => string | undefined
  /** `CheckGracefulDelete`: the grace period for deleting `object`, in seconds; `requested` is the client's. Default: none. */
  readonly gracePeriodSeconds?: (object: KubeObject, requested: number | undefined) => number
  /** Deleting without a propagation policy orphans the dependents; this text is sent in a Warning header. */
  readonly orphanByDefaultWarning?: string
  /** A delete is answered with the deleted object instead of a Status. */
  readonly returnDeletedObject?: boolean
}
