/** A role that runs in a process of its own. */
export type RoleProcess = {
  readonly url: string
  /** The reasons why the role is not ready, with the texts of errors, which its `/readyz` omits; empty if it is. */
  notReady(): readonly string[]
  stop(): Promise<void>
}
