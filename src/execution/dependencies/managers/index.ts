/** The package managers, by name. */
import { galaxy } from './galaxy.ts'
import { goModules } from './go-modules.ts'
import { bun, npm, pnpm, yarn, yarnBerry } from './node-managers.ts'
import type { ManagerName, PackageManager } from './package-manager.ts'
import { pip, poetry, uv } from './python-managers.ts'

export const packageManagers: Readonly<Record<ManagerName, PackageManager>> = {
  ...{ npm, pnpm, yarn, 'yarn-berry': yarnBerry, bun },
  ...{ pip, uv, poetry },
  go: goModules,
  galaxy,
}
