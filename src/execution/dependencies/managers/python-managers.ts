import { join } from 'node:path'
import type { InstallPaths, PackageManager } from './package-manager.ts'

const python = { kind: 'runtime', program: 'python3', args: ['-VV'] } as const
const common = {
  trees: 'virtualEnvironment',
  environment: /^(PIP_|UV_|POETRY_|PYTHON|CC$|CXX$|CFLAGS$|CXXFLAGS$|LDFLAGS$)/,
} as const
const absolute = ({ sourceRoot, virtualEnvironment }: InstallPaths): string => join(sourceRoot, virtualEnvironment)

/** https://pip.pypa.io/en/stable/cli/pip_install/. pip is the one that comes with the module venv of Python. */
export const pip: PackageManager = {
  ...common,
  name: 'pip',
  program: 'python3',
  versions: [python],
  howToInstall: 'install Python with its module venv on the worker, such as with apt-get install python3-venv',
  machineFiles: ['/etc/pip.conf', '/etc/xdg/pip/pip.conf'],
  install: paths => ({
    commands: [
      { command: 'python3', args: ['-m', 'venv', absolute(paths)], cwd: paths.root },
      {
        command: join(absolute(paths), 'bin/python'),
        args: [
          '-m',
          'pip',
          'install',
          '--no-input',
          '--disable-pip-version-check',
          '--progress-bar=off',
          '--requirement',
          'requirements.txt',
        ],
        cwd: paths.root,
      },
    ],
    env: {},
  }),
}

/** https://docs.astral.sh/uv/reference/cli/#uv-sync. It uses the Python of the worker: one that it downloads would be in the Run. */
export const uv: PackageManager = {
  ...common,
  name: 'uv',
  program: 'uv',
  versions: [{ kind: 'manager', program: 'uv', args: ['--version'] }, python],
  howToInstall: 'pip install uv on the worker: https://docs.astral.sh/uv/getting-started/installation/',
  machineFiles: ['/etc/uv/uv.toml'],
  install: paths => ({
    commands: [
      {
        command: 'uv',
        args: ['sync', ...(paths.isLocked ? ['--frozen'] : []), '--no-progress', '--compile-bytecode', '--link-mode=copy'],
        cwd: paths.root,
      },
    ],
    env: { UV_PROJECT_ENVIRONMENT: absolute(paths), UV_PYTHON_DOWNLOADS: 'never', UV_NO_MANAGED_PYTHON: '1' },
  }),
}

/** https://python-poetry.org/docs/cli/#install */
export const poetry: PackageManager = {
  ...common,
  name: 'poetry',
  program: 'poetry',
  versions: [{ kind: 'manager', program: 'poetry', args: ['--version'] }, python],
  howToInstall: 'pipx install poetry on the worker: https://python-poetry.org/docs/#installation',
  machineFiles: [],
  install: paths => ({
    commands: [
      { command: 'poetry', args: ['install', '--no-root', '--sync', '--no-interaction', '--no-ansi', '--compile'], cwd: paths.root },
    ],
    env: { POETRY_VIRTUALENVS_IN_PROJECT: 'true', POETRY_VIRTUALENVS_CREATE: 'true' },
  }),
}
