import type { RunStatus } from '../../../api/index.ts'

/** Where the lines of a Run go. Never blocks and never fails: a log that cannot be sent does not stop the engine. */
export type RunLog = {
  /** One line without its end; secrets are masked here. */
  append(text: string): void
  /** From now on these texts are masked. */
  addSecrets(secrets: readonly string[]): void
  /** The text with every secret replaced. */
  mask(text: string): string
  /** Sends what is left; says how much there was. */
  close(): Promise<RunStatus['log']>
}
