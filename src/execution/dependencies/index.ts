/**
 * @module execution/dependencies: packages that the program of a Stack needs, installed once per digest of everything that they depend on, and
 * shared by the Runs of a trust domain. Start reading at `dependency-input.ts` (what the digest covers), `detect/` (which project a
 * directory belongs to), `store/dependency-store.ts` (one installer at a time, sealed trees) and `attach-tree.ts` (how a Run gets one).
 * In: the source of a Run, the directory of its project, a way to run the package manager. Out: trees of packages in the Run's directory, which
 * it cannot change for others, and a record of their inputs. `managers/` has what differs between package managers, `archives/` what trust
 * domains share: archives that the lock file of each names by digest.
 * Out of scope: what a program does with its packages (`execution/engine/`), plugins of engines (`execution/workspace/content-store.ts`), which
 * Runs form a trust domain (`execution/worker/`), and where a Run is placed (`controllers/dispatch/`).
 */
export { ArchiveStore } from './archives/archive-store.ts'
export { type AttachedAs, type AttachTarget, attachTree, linkChecker } from './attach-tree.ts'
export { DependencyError, type DependencyErrorReason } from './dependency-error.ts'
export { type DependencyInput, type DependencyInputKind, dependencyDigest } from './dependency-input.ts'
export { detectDependencies, type Runtime } from './detect/index.ts'
export type { DependencyHost, InstallContext, InstallOptions } from './install-context.ts'
export { type InstalledDependencies, installDependencies, type StoredPackages } from './install-dependencies.ts'
export { type DetectedDependencies, type ManagerName, managerNames } from './managers/package-manager.ts'
export { SourceFiles } from './source-files.ts'
export {
  DependencyStore,
  type DependencyStoreOptions,
  type InstallLock,
  type InstallProgress,
  type NewTree,
  type StoredTree,
} from './store/dependency-store.ts'
export { evictDependencies, listDependencies, removeEntry, type StoredEntry } from './store/evict-dependencies.ts'
export type { TreePlace, TreeRecord } from './store/tree-record.ts'
