import type { KubeObject, StatusCause } from '../../../object/index.ts'

/** The fields of one value, whose types match its schema. */
export type Fields = Record<string, unknown>

/** Where the validated value is: its path in the object, the object, and the stored object before the write, if any. */
export type ValidationContext = { path: string; object: KubeObject; oldObject: KubeObject | undefined }

/**
 * The defaults and validation of one Kubernetes type, wherever the type is used: a container has the same defaults in a Pod and in the
 * template of a CronJob.
 */
export type TypeRules = {
  /** Values of missing fields. */
  defaults?: Readonly<Fields>
  /**
   * Sets defaults that depend on other fields, after `defaults`. It may set fields of `value` but must not change nested values, which may
   * be shared with the stored object. It runs before the defaults of nested types.
   */
  setDefaults?: (value: Fields) => void
  /** Fields that must not be missing or empty, with the message after `Required value`, which may be empty. */
  required?: Readonly<Record<string, string>>
  /** The order of the `enum` values of a field in messages, where Kubernetes does not sort them. */
  enumOrder?: Readonly<Record<string, readonly string[]>>
  /** Fields whose `enum` is not validated here: not at all, or by `validate`. */
  uncheckedEnums?: readonly string[]
  /** The validation errors of a value, whose fields have the types of its schema. */
  validate?: (value: Fields, context: ValidationContext) => StatusCause[]
}

export type RuleTable = Readonly<Record<string, TypeRules>>
