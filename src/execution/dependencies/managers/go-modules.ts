import { join } from 'node:path'
import type { PackageManager } from './package-manager.ts'

/** In the Run's directory for files that are no part of the source. */
export const moduleCachePath = 'go-modules'

/** https://go.dev/ref/mod#go-mod-download. Its cache has the archives too, which `go` verifies against go.sum. */
export const goModules: PackageManager = {
  name: 'go',
  program: 'go',
  versions: [{ kind: 'manager', program: 'go', args: ['version'] }],
  howToInstall: 'install Go on the worker: https://go.dev/doc/install',
  environment: /^(GOFLAGS|GOPROXY|GOPRIVATE|GONOPROXY|GOSUMDB|GONOSUMDB|GOTOOLCHAIN|GOWORK|GOINSECURE)$/,
  machineFiles: [],
  trees: 'moduleCache',
  install: paths => ({
    commands: [{ command: 'go', args: ['mod', 'download'], cwd: paths.root }],
    // With its read-only directories no file could be removed.
    env: { GOMODCACHE: join(paths.scratch, moduleCachePath), GOFLAGS: '-modcacherw' },
  }),
  programEnv: path => ({ GOMODCACHE: path({ base: 'scratch', path: moduleCachePath }) }),
}
