import { serveProcessRequests } from '../../../kubernetes/util/index.ts'
import type { Diagnostic } from '../diagnostics.ts'
import { EngineError } from '../engine-error.ts'
import { type Manifest, type ManifestFile, parseManifests } from './parse-manifests.ts'

export type ParseReply = { manifests: Manifest[] } | { message: string; diagnostics: Diagnostic[] }

// The process that parses long manifests: the worker renews its Lease meanwhile, and other Runs continue, whatever the manifests need.
serveProcessRequests((files: readonly ManifestFile[]): ParseReply => {
  try {
    return { manifests: parseManifests(files) }
  } catch (error) {
    if (!(error instanceof EngineError)) throw error
    return { message: error.message, diagnostics: error.diagnostics }
  }
})
