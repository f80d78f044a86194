/**
 * @module stores/pulumi: what the Pulumi CLI reads and writes.
 * Format: states (`deployment.ts`), the journal of an update (`split-journal-batch.ts`, `journal-entry.ts`) and what the two result in; start reading at `replay-journal.ts`.
 * Input: the CLI's JSON. Output: typed values, a state, or what of it this version of Oarlock does not understand.
 * Protocol: `pulumi-handler.ts` serves the HTTP backend protocol that the CLI of one Run speaks, and translates its requests to calls of an injected `PulumiBackend`;
 * `listen.ts` opens a loopback port or a Unix socket for it. Input: requests. Output: answers, and calls with journal entries, checkpoints, values to encrypt, and typed
 * events of the engine.
 * Out of scope: where they are stored and encrypted (`stores/state`), who may write them, and starting the CLI (`execution/engine`).
 */
export { isJournalTested, journalVersion, parseCliVersion, testedCliVersions } from './cli-version.ts'
export * from './format.ts'
export { listenPulumi, type PulumiEndpoint } from './listen.ts'
export * from './pulumi-backend.ts'
export type { PulumiDiagnosticSeverity, PulumiEvent, PulumiResourceStep } from './pulumi-event.ts'
export { createPulumiHandler, type PulumiHandler, type PulumiHandlerOptions } from './pulumi-handler.ts'
