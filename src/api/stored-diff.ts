import type { Json } from '../kubernetes/object/index.ts'

/** What the plan of a Run would change, as the state store keeps it and users read it. Sensitive values and secrets are hidden. */
export type StoredDiff = {
  runName: string
  /** Of the plan: the value to approve. */
  digest: string
  engine: string
  add: number
  change: number
  destroy: number
  /** In the engine's own format, without colors. */
  text: string
  /** For programs: of terraform and opentofu what `show -json` prints, without `configuration`. Undefined if it is larger than {@link maxDiffBytes}. */
  document?: Json
  /** What is missing in `text`, because it is larger than {@link maxDiffBytes}. */
  missing?: { lines: number; bytes: number }
}

/** For `text` and for `document`, each. */
export const maxDiffBytes = 10 * 1024 * 1024
