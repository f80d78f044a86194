import type { KubeObject, StatusCause } from '../../../object/index.ts'

/** The fields of one value, typed as its schema says. */
export type Fields = Record<string, unknown>

/** Where a value stands: its path in the object, the whole object, and what was stored before, if anything. */
export type ValidationContext = { path: string; object: KubeObject; before: KubeObject | undefined }

/**
 * What Kubernetes does with every value of one type, wherever the type is used: a container's defaults are the same in a
 * Pod and in the template of a CronJob.
 */
export type TypeRules = {
  /** What fields without a value are given. */
  defaults?: Readonly<Fields>
  /**
   * Defaults that depend on other fields, after `defaults`. May set fields of `value`, but must not change what stands in
   * them: such parts may be shared with the stored object. Runs before those of the types within.
   */
  setDefaults?: (value: Fields) => void
  /** Fields that may not be missing or empty: message after `Required value`, or an empty text. */
  required?: Readonly<Record<string, string>>
  /** Values of a field with an `enum`, in the order in which Kubernetes tells them where that is not the alphabet's. */
  enumOrder?: Readonly<Record<string, readonly string[]>>
  /** Fields whose `enum` is not checked, or by `check`. */
  uncheckedEnums?: readonly string[]
  /** What is wrong with a value; everything in it has the type it should have. */
  validate?: (value: Fields, place: ValidationContext) => StatusCause[]
}

export type RuleTable = Readonly<Record<string, TypeRules>>
