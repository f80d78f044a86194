/** A role that runs in a process of its own. */
export type RoleProcess = { readonly url: string; stop(): Promise<void> }
