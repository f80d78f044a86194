import type { RunStatus } from '../../../api/index.ts'
import type { Unsplittable } from '../../workspace/index.ts'

/** The log of a Run. Never blocks and never fails: an unreachable log store does not stop the engine. */
export type RunLog = {
  /** Appends one line, without its line break; secrets are masked. */
  append(text: string): void
  /** The log has reached its limit: what is appended is dropped. */
  readonly isFull: boolean
  /** Counts bytes that were dropped because the log is full, before they were lines. */
  drop(bytes: number): void
  /** Masks these texts from now on. */
  addSecrets(secrets: readonly string[]): void
  /** The secrets: a line that was divided inside of one would show both halves. */
  readonly secrets: Unsplittable
  /** Returns the text with every secret masked. */
  mask(text: string): string
  /** Sends the remaining lines; returns the size of the log. */
  close(): Promise<RunStatus['log']>
}
