/**
 * @module execution/pulumi-backend: serves Pulumi's HTTP backend protocol to the CLI of one Run. Start reading at `pulumi-handler.ts`, which translates requests to calls of an
 * injected `PulumiBackend`; `listen.ts` opens a loopback port or a Unix socket for it.
 * Input: requests of the CLI. Output: responses, and calls with journal entries, checkpoints, values to encrypt, and typed events of the engine.
 * Out of scope: the format of states and journals (`stores/pulumi`), where they are stored and encrypted (`stores/state`), who may write them, and starting the CLI
 * (`execution/engine`).
 */
export { isJournalTested, journalVersion, parseCliVersion, testedCliVersions } from './cli-version.ts'
export { listenPulumi, type PulumiEndpoint } from './listen.ts'
export * from './pulumi-backend.ts'
export { type PulumiDiagnosticSeverity, type PulumiEvent, type PulumiResourceStep, parsePulumiEvent } from './pulumi-event.ts'
export { createPulumiHandler, type PulumiHandler, type PulumiHandlerOptions } from './pulumi-handler.ts'
