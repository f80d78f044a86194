import { join } from 'node:path'
import type { InstallPaths, InstallPlan, PackageManager } from './package-manager.ts'

const node = { kind: 'runtime', program: 'node', args: ['--version'] } as const
const common = {
  trees: 'node_modules',
  // NODE_ENV=production omits development dependencies.
  environment:
    /^(npm_config_|NPM_CONFIG_|pnpm_config_|PNPM_CONFIG_|YARN_|BUN_|COREPACK_|NODE_ENV$|NODE_OPTIONS$|CC$|CXX$|CFLAGS$|CXXFLAGS$|LDFLAGS$)/,
  machineFiles: ['/etc/npmrc', '/usr/etc/npmrc', '/usr/local/etc/npmrc', '/etc/yarnrc'],
} as const
const inRoot = ({ root }: InstallPaths, command: string, args: string[], env: Record<string, string> = {}): InstallPlan => ({
  commands: [{ command, args, cwd: root }],
  env: { CI: 'true', ...env },
})

/**
 * https://docs.npmjs.com/cli/commands/npm-ci; without a lock file `npm install`, which writes none: it would not be part of the source of the
 * next Run.
 */
export const npm: PackageManager = {
  ...common,
  name: 'npm',
  program: 'npm',
  versions: [{ kind: 'manager', program: 'npm', args: ['--version'] }, node],
  howToInstall: 'install Node.js, which has npm, on the worker: https://nodejs.org',
  install: paths =>
    inRoot(paths, 'npm', [
      ...(paths.isLocked ? ['ci'] : ['install', '--no-package-lock']),
      ...['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=warn'],
    ]),
}

/** https://pnpm.io/cli/install. Its own store is in the Run, whose files are removed: hard links into it would be copied anyway. */
export const pnpm: PackageManager = {
  ...common,
  name: 'pnpm',
  program: 'pnpm',
  versions: [{ kind: 'manager', program: 'pnpm', args: ['--version'] }, node],
  howToInstall: 'npm install --global pnpm on the worker: https://pnpm.io/installation',
  install: paths =>
    inRoot(paths, 'pnpm', [
      'install',
      ...(paths.isLocked ? ['--frozen-lockfile'] : ['--no-lockfile']),
      ...['--reporter=append-only', '--package-import-method=clone-or-copy', `--store-dir=${join(paths.scratch, 'pnpm-store')}`],
    ]),
}

/** https://classic.yarnpkg.com/lang/en/docs/cli/install/ */
export const yarn: PackageManager = {
  ...common,
  name: 'yarn',
  program: 'yarn',
  versions: [{ kind: 'manager', program: 'yarn', args: ['--version'] }, node],
  howToInstall: 'npm install --global yarn on the worker: https://classic.yarnpkg.com/lang/en/docs/install/',
  install: paths =>
    inRoot(paths, 'yarn', [
      'install',
      ...(paths.isLocked ? ['--frozen-lockfile'] : ['--pure-lockfile']),
      '--non-interactive',
      '--no-progress',
    ]),
}

/** https://yarnpkg.com/cli/install. Always with node_modules: Pulumi and others load programs without Plug'n'Play. */
export const yarnBerry: PackageManager = {
  ...common,
  name: 'yarn-berry',
  program: 'yarn',
  versions: [{ kind: 'manager', program: 'yarn', args: ['--version'] }, node],
  howToInstall: 'corepack enable on the worker, or set yarnPath in .yarnrc.yml: https://yarnpkg.com/getting-started/install',
  install: paths =>
    inRoot(paths, 'yarn', ['install', paths.isLocked ? '--immutable' : '--no-immutable'], {
      YARN_NODE_LINKER: 'node-modules',
      YARN_NM_MODE: 'classic',
      YARN_ENABLE_GLOBAL_CACHE: 'true',
      YARN_ENABLE_TELEMETRY: 'false',
      YARN_ENABLE_PROGRESS_BARS: 'false',
    }),
}

/** https://bun.com/docs/cli/install */
export const bun: PackageManager = {
  ...common,
  name: 'bun',
  program: 'bun',
  versions: [{ kind: 'manager', program: 'bun', args: ['--version'] }],
  howToInstall: 'npm install --global bun on the worker: https://bun.com/docs/installation',
  install: paths =>
    inRoot(paths, 'bun', ['install', paths.isLocked ? '--frozen-lockfile' : '--no-save', '--no-progress', '--backend=copyfile']),
}
